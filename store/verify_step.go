package store

import "context"

// AuditPosition is how far a walk along the audit trail has come. The zero position is its beginning.
type AuditPosition struct{ last head }

// Seq is the number of the last entry that was walked past, 0 at the beginning.
func (p AuditPosition) Seq() int64 { return p.last.seq }

const selectTrailFrom = `
	SELECT ` + trailColumns + `
	FROM audit_entries
	WHERE seq > $1
	ORDER BY seq
	LIMIT $2`

// VerifyAuditStep walks past at most limit entries of the audit trail and gives the new position, for a walk that must
// not take long at a time. At the end it compares the last entry with the signed one; ended tells that it got there.
// The error is an *AuditBreak for the first entry that was changed, removed or put in. What changes behind the walk is
// not seen: begin again from time to time.
func (db *DB) VerifyAuditStep(ctx context.Context, from AuditPosition, limit int) (to AuditPosition, ended bool, err error) {
	to = from
	err = db.View(ctx, func(v *View) error {
		walked, err := walk(ctx, v, &to.last, limit)
		if err != nil || walked == limit {
			return err
		}
		ended = true
		return verifyEnd(ctx, v, db.secrets, to.last)
	})
	return to, ended, err
}

// walk verifies entries after the last one and moves it on.
func walk(ctx context.Context, q Querier, last *head, limit int) (walked int, err error) {
	rows, err := q.Query(ctx, selectTrailFrom, last.seq, limit)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		next, err := verifyEntry(rows, *last)
		if err != nil {
			return walked, err
		}
		*last = next
		walked++
	}
	return walked, rows.Err()
}
