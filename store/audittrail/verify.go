package audittrail

import (
	"context"
	"encoding/hex"
	"fmt"

	"kontor/store/clock"
	"kontor/store/engine"
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
	var last engine.Anchor
	for rows.Next() {
		next, err := verifyEntry(rows, last)
		if err != nil {
			return last.Seq, err
		}
		last = next
	}
	if err := rows.Err(); err != nil {
		return last.Seq, err
	}
	return last.Seq, verifyEnd(ctx, q, keys, last)
}

// verifyEntry compares one row with its predecessor.
func verifyEntry(rows query.Scanner, last engine.Anchor) (engine.Anchor, error) {
	e, err := scanEntry(rows)
	if err != nil {
		return engine.Anchor{}, err
	}
	if e.Seq != last.Seq+1 {
		return engine.Anchor{}, &Break{Seq: last.Seq + 1, Reason: "it is missing"}
	}
	if e.PrevHash != hex.EncodeToString(last.Hash[:]) {
		return engine.Anchor{}, &Break{Seq: e.Seq, Reason: "it does not continue the entry before"}
	}
	next := engine.Anchor{Seq: e.Seq, Hash: chainHash(last.Hash, &e)}
	if e.Hash != hex.EncodeToString(next.Hash[:]) || next.Hash == [32]byte{} {
		return engine.Anchor{}, &Break{Seq: e.Seq, Reason: "it was changed"}
	}
	return next, nil
}

// Position is how far a verification in steps has come. The zero position is the beginning of the trail.
type Position struct{ last engine.Anchor }

// Seq returns the number of the last entry that was verified, 0 at the beginning.
func (p Position) Seq() int64 { return p.last.Seq }

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
func verifyAfter(ctx context.Context, q query.Querier, last *engine.Anchor, limit int) (verified int, err error) {
	err = query.Each(ctx, q, func(row query.Scanner) error {
		next, err := verifyEntry(row, *last)
		if err == nil {
			*last = next
			verified++
		}
		return err
	}, selectEntriesAfter, last.Seq, limit)
	return verified, err
}

// Evidence is a database that is being checked, with the key that its audit trail was made with.
type Evidence struct {
	*query.View
	// Schema is the number of the newest migration of the database, which may be of an earlier version.
	Schema  int64
	digests *Digester
	keys    *sealing.Keys
}

// NewEvidence returns the evidence of a view.
func NewEvidence(v *query.View, schema int64, keys *sealing.Keys) *Evidence {
	return &Evidence{View: v, Schema: schema, digests: NewDigester(keys), keys: keys}
}

// Unseal decrypts a sealed value of the database.
func (e *Evidence) Unseal(table, column, rowID, sealed string) ([]byte, error) {
	return e.keys.Unseal(table, column, rowID, sealed)
}

// Digest returns the digest of a record as an entry stores it.
func (e *Evidence) Digest(r Record) (string, error) {
	d := e.digests.ofRecord(r)
	return d.text, d.err
}

// AnswerDigest returns the half of a digest that depends on an answer's JSON alone.
func (e *Evidence) AnswerDigest(answer []byte) string {
	return hex.EncodeToString(e.digests.answers.Sum(nil, answer)[:digestHalf])
}

// Statement is what an audit entry says about the state of a record.
type Statement struct {
	Seq           int64
	At            clock.Time
	Actor, Action string
	Digest        string // empty when the record was deleted
}

const selectStatements = `
	SELECT seq, at, actor, action, after_hash FROM audit_entries
	WHERE rec_id = $1 AND rec_type = $2 AND (before_hash <> '' OR after_hash <> '') AND seq < $3
	ORDER BY seq DESC
	LIMIT 1`

// Newest returns the newest statement about a record. It returns ErrNotFound when there is none.
func (e *Evidence) Newest(ctx context.Context, recType, id string) (Statement, error) {
	return e.before(ctx, recType, id, 1<<62)
}

func (e *Evidence) before(ctx context.Context, recType, id string, seq int64) (s Statement, err error) {
	err = e.QueryRow(ctx, selectStatements, id, recType, seq).Scan(&s.Seq, &s.At, &s.Actor, &s.Action, &s.Digest)
	return s, err
}

// Find returns the newest statement about a record whose digest begins with the given half, and the newest of all. It
// returns ErrNotFound when there is none.
func (e *Evidence) Find(ctx context.Context, recType, id, half string) (found, newest Statement, err error) {
	found, err = e.Newest(ctx, recType, id)
	newest = found
	for err == nil && (len(found.Digest) < len(half) || found.Digest[:len(half)] != half) {
		found, err = e.before(ctx, recType, id, found.Seq)
	}
	return found, newest, err
}

const selectStated = `
	SELECT seq, rec_type, rec_id FROM audit_entries
	WHERE seq > $1 AND after_hash <> ''
	ORDER BY seq
	LIMIT 1000`

// EachStated calls f with every record that an entry after the given one says exists, in the order of the entries, once
// for each entry.
func (e *Evidence) EachStated(ctx context.Context, seq int64, f func(recType, id string) error) error {
	type stated struct{ recType, id string }
	for {
		page, err := query.All(ctx, e, func(row query.Scanner) (s stated, err error) {
			err = row.Scan(&seq, &s.recType, &s.id)
			return s, err
		}, selectStated, seq)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, s := range page {
			if err := f(s.recType, s.id); err != nil {
				return err
			}
		}
	}
}
