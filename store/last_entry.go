package store

import "context"

const selectLastEntry = `SELECT COALESCE(MAX(seq), 0) FROM audit_entries WHERE rec_id = $1 AND rec_type = $2`

// LastAuditEntry returns the number of the newest audit entry of a record, or 0 when there is none.
func LastAuditEntry(ctx context.Context, q Querier, recType, recID string) (seq int64, err error) {
	err = q.QueryRow(ctx, selectLastEntry, recID, recType).Scan(&seq)
	return seq, err
}
