package idempotency

import (
	"context"
	"strings"

	"kontor/store/query"
	"kontor/store/sealing"
)

// The place of sealed answers.
const (
	sealedTable  = "idempotency_keys"
	sealedColumn = "body"
)

const (
	selectOld = `
		SELECT caller, path, key, body FROM idempotency_keys
		WHERE body NOT LIKE $1 AND (caller, path, key) > ($2, $3, $4)
		ORDER BY caller, path, key LIMIT $5`

	updateBody = `UPDATE idempotency_keys SET body = $5 WHERE caller = $1 AND path = $2 AND key = $3 AND body = $4`
)

// Old is a stored answer that is not sealed with the newest key.
type Old struct {
	// After identifies the row in its order.
	After string

	request  Request
	sealed   string
	resealed string
}

// FindOld returns at most limit answers after a row that do not have the pattern of the newest key.
func FindOld(ctx context.Context, q query.Querier, newest, after string, limit int) (found []Old, err error) {
	var last [3]string
	copy(last[:], strings.SplitN(after, "\n", len(last)))
	rows, err := q.Query(ctx, selectOld, newest, last[0], last[1], last[2], limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var o Old
		if err := rows.Scan(&o.request.Caller, &o.request.Path, &o.request.Key, &o.sealed); err != nil {
			return nil, err
		}
		o.After = o.request.rowID()
		found = append(found, o)
	}
	return found, rows.Err()
}

// Reseal seals the answer with the newest key.
func (o *Old) Reseal(keys *sealing.Keys) error {
	plain, err := keys.Unseal(sealedTable, sealedColumn, o.request.rowID(), o.sealed)
	if err == nil {
		o.resealed = keys.Seal(sealedTable, sealedColumn, o.request.rowID(), plain)
	}
	return err
}

// Write stores the answer if it has not changed.
func (o *Old) Write(ctx context.Context, tx Execer) error {
	_, err := tx.Exec(ctx, updateBody, o.request.Caller, o.request.Path, o.request.Key, o.sealed, o.resealed)
	return err
}
