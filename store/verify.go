package store

import (
	"context"
	"encoding/hex"
	"fmt"
)

// AuditBreak says where the audit trail does not hold.
type AuditBreak struct {
	Seq    int64 // of the first entry that is wrong or missing; 0 when it is the trail as a whole
	Reason string
}

// Error names the entry.
func (b *AuditBreak) Error() string {
	if b.Seq == 0 {
		return "audit trail: " + b.Reason
	}
	return fmt.Sprintf("audit entry %d: %s", b.Seq, b.Reason)
}

const selectTrail = `
	SELECT ` + trailColumns + `
	FROM audit_entries
	ORDER BY seq`

// VerifyAudit walks the audit trail from its beginning and tells how many entries it has. The error is
// an *AuditBreak for the first entry that was changed, removed or put in.
func (db *DB) VerifyAudit(ctx context.Context) (entries int64, err error) {
	err = db.View(ctx, func(v *View) error {
		entries, err = verifyTrail(ctx, v, db.secrets)
		return err
	})
	return entries, err
}

// verifyTrail walks the chain row by row. Without secrets the signature of its end is not verified.
func verifyTrail(ctx context.Context, q Querier, s *secrets) (int64, error) {
	rows, err := q.Query(ctx, selectTrail)
	if err != nil {
		rows, err = q.Query(ctx, selectTrailOfForm1) // a backup from before migration 21 is checked as it is
	}
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	var last head
	for rows.Next() {
		next, err := verifyEntry(rows, last)
		if err != nil {
			return last.seq, err
		}
		last = next
	}
	if err := rows.Err(); err != nil {
		return last.seq, err
	}
	return last.seq, verifyEnd(ctx, q, s, last)
}

// verifyEntry compares one row with what has to follow on the last.
func verifyEntry(rows *Rows, last head) (head, error) {
	next := head{}
	seq, e, prev, hash, err := scanTrail(rows)
	if err != nil {
		return head{}, err
	}
	next.seq = seq
	if next.seq != last.seq+1 {
		return head{}, &AuditBreak{Seq: last.seq + 1, Reason: "it is missing"}
	}
	if prev != hex.EncodeToString(last.hash[:]) {
		return head{}, &AuditBreak{Seq: next.seq, Reason: "it does not follow on the entry before"}
	}
	next.hash = chainHash(last.hash, next.seq, &e)
	if hash != hex.EncodeToString(next.hash[:]) {
		return head{}, &AuditBreak{Seq: next.seq, Reason: "it was changed"}
	}
	return next, nil
}
