package store

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
)

// AuditBreak says where the audit trail does not hold.
type AuditBreak struct {
	Seq    int64 // of the first entry that is wrong or missing
	Reason string
}

// Error names the entry.
func (b *AuditBreak) Error() string { return fmt.Sprintf("audit entry %d: %s", b.Seq, b.Reason) }

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

// verifyTrail walks the chain row by row. Without secrets the signature of its end is not looked at.
func verifyTrail(ctx context.Context, q Querier, s *secrets) (int64, error) {
	rows, err := q.Query(ctx, selectTrail)
	if err != nil {
		rows, err = q.Query(ctx, selectTrailOfForm1) // a backup from before migration 28 is checked as it is
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
	if s == nil {
		return last.seq, nil
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

// verifyEnd compares the end of the chain with the one that was signed last.
func verifyEnd(ctx context.Context, q Querier, s *secrets, last head) error {
	var signed string
	err := q.QueryRow(ctx, selectMeta, metaAuditHead).Scan(&signed)
	if errors.Is(err, ErrNotFound) {
		if last.seq == 0 {
			return nil
		}
		return &AuditBreak{Seq: last.seq, Reason: "the signature of the newest entry is missing"}
	}
	if err != nil {
		return err
	}
	if hmac.Equal([]byte(signed), []byte(s.signHead(last))) {
		return nil
	}
	var end head
	var hash, signature string
	if _, err := fmt.Sscanf(signed, "%d %s %s", &end.seq, &hash, &signature); err == nil && len(hash) == 2*sha256.Size && end.seq > last.seq {
		return &AuditBreak{Seq: last.seq + 1, Reason: fmt.Sprintf("it is missing; the trail was signed up to entry %d", end.seq)}
	}
	return &AuditBreak{Seq: last.seq, Reason: "it is not the one that was signed as the newest"}
}
