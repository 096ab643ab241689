package store

import (
	"context"
	"fmt"
	"slices"
)

// Each calls read with each row of a statement.
func Each(ctx context.Context, q Querier, read func(row Scanner) error, statement string, args ...any) error {
	rows, err := q.Query(ctx, statement, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := read(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// EachOf calls read with each row of a statement that contains %s for a list of ids. There may be any number of ids: it runs the
// statement for some at a time.
func EachOf(ctx context.Context, q Querier, read func(row Scanner) error, statement string, ids []string) error {
	for part := range slices.Chunk(ids, pairsAtOnce) {
		if err := Each(ctx, q, read, fmt.Sprintf(statement, In(1, len(part))), AppendIn(nil, part)...); err != nil {
			return err
		}
	}
	return nil
}

// InBatches runs fn in one transaction after another, as long as it handles a whole batch of size rows.
func (db *DB) InBatches(ctx context.Context, size int64, fn func(tx *Tx) (n int64, err error)) error {
	for n := size; n == size; {
		err := db.InTx(ctx, func(tx *Tx) (err error) {
			n, err = fn(tx)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
