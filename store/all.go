package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

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

// pairsAtOnce is how many keys one statement of Pairs takes.
const pairsAtOnce = 64

// Pairs returns the second column of a statement by the first. The statement contains %s for the list of the keys; there may be any
// number of them.
func Pairs(ctx context.Context, q Querier, statement string, keys []string) (map[string]string, error) {
	found := make(map[string]string, len(keys))
	for part := range slices.Chunk(keys, pairsAtOnce) {
		rows, err := q.Query(ctx, fmt.Sprintf(statement, In(1, len(part))), AppendIn(nil, part)...)
		if err != nil {
			return nil, err
		}
		for rows.Next() {
			var key, value string
			if err := rows.Scan(&key, &value); err != nil {
				return nil, errors.Join(err, rows.Close())
			}
			found[key] = value
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// EachFound calls each with every row that find returns, a batch in each transaction, until find returns none. find returns a bounded
// number of rows, and each changes its row so that find does not return it again. Without rows there is no transaction.
func EachFound[T any](ctx context.Context, db *DB, find func(q Querier) ([]T, error), each func(tx *Tx, row T) error) error {
	for {
		if found, err := find(db); err != nil || len(found) == 0 {
			return err
		}
		err := db.InTx(ctx, func(tx *Tx) error {
			found, err := find(tx)
			if err != nil {
				return err
			}
			for _, row := range found {
				if err := each(tx, row); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
}
