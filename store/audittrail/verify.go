package audittrail

import (
	"context"
	"encoding/hex"
	"fmt"

	"kontor/store/query"
	"kontor/store/sealing"
)

// Break says where the audit trail is broken.
type Break struct {
	Seq    int64 // of the first entry that is wrong or missing; 0 for the trail as a whole
	Reason string
}

// Error names the entry.
func (b *Break) Error() string {
	if b.Seq == 0 {
		return "audit trail: " + b.Reason
	}
	return fmt.Sprintf("audit entry %d: %s", b.Seq, b.Reason)
}

// Verify verifies the whole trail and returns how many entries it has. Without keys it does not verify the signature of the
// head. The error is a *Break for the first entry that was changed, removed or inserted.
func Verify(ctx context.Context, q query.Querier, keys *sealing.Keys) (entries int64, err error) {
	rows, err := q.Query(ctx, selectEntries)
	if err != nil {
		rows, err = q.Query(ctx, selectEntriesOfForm1) // a backup from before migration 21 is checked as it is
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
	return last.seq, verifyEnd(ctx, q, keys, last)
}

// verifyEntry compares one row with its predecessor.
func verifyEntry(rows *query.Rows, last head) (head, error) {
	next := head{}
	seq, e, prev, hash, err := scanEntry(rows)
	if err != nil {
		return head{}, err
	}
	next.seq = seq
	if next.seq != last.seq+1 {
		return head{}, &Break{Seq: last.seq + 1, Reason: "it is missing"}
	}
	if prev != hex.EncodeToString(last.hash[:]) {
		return head{}, &Break{Seq: next.seq, Reason: "it does not continue the entry before"}
	}
	next.hash = chainHash(last.hash, next.seq, &e)
	if hash != hex.EncodeToString(next.hash[:]) {
		return head{}, &Break{Seq: next.seq, Reason: "it was changed"}
	}
	return next, nil
}

// Position is how far a verification in steps has come. The zero position is the beginning of the trail.
type Position struct{ last head }

// Seq returns the number of the last entry that was verified, 0 at the beginning.
func (p Position) Seq() int64 { return p.last.seq }

// VerifyStep verifies at most limit entries after a position and returns the new position, so that each step is short. At
// the end it compares the last entry with the signed head, and ended is true. The error is a *Break for the first entry
// that was changed, removed or inserted. Later changes of entries before the position are not noticed: begin again from
// time to time.
func VerifyStep(ctx context.Context, q query.Querier, keys *sealing.Keys, from Position, limit int) (to Position, ended bool, err error) {
	to = from
	verified, err := verifyAfter(ctx, q, &to.last, limit)
	if err != nil || verified == limit {
		return to, false, err
	}
	return to, true, verifyEnd(ctx, q, keys, to.last)
}

// verifyAfter verifies entries after the last one and moves it forward.
func verifyAfter(ctx context.Context, q query.Querier, last *head, limit int) (verified int, err error) {
	rows, err := q.Query(ctx, selectEntriesAfter, last.seq, limit)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		next, err := verifyEntry(rows, *last)
		if err != nil {
			return verified, err
		}
		*last = next
		verified++
	}
	return verified, rows.Err()
}
