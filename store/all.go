package store

import "context"

// Scanner is a row whose columns a function reads.
type Scanner = interface{ Scan(dest ...any) error }

// All returns what scan returns for each row of a statement. The number of rows must be bounded.
func All[T any](ctx context.Context, q Querier, scan func(row Scanner) (T, error), statement string, args ...any) ([]T, error) {
	rows, err := q.Query(ctx, statement, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var found []T
	for rows.Next() {
		one, err := scan(rows)
		if err != nil {
			return nil, err
		}
		found = append(found, one)
	}
	return found, rows.Err()
}

// Text reads the one text column of a row, for [All].
func Text(row Scanner) (text string, err error) {
	err = row.Scan(&text)
	return text, err
}
