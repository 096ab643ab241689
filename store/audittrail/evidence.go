package audittrail

import (
	"context"
	"encoding/hex"
	"errors"

	"kontor/store/clock"
	"kontor/store/query"
	"kontor/store/sealing"
)

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
	return hex.EncodeToString(e.digests.answers.sum(nil, answer)[:digestHalf])
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
		rows, err := e.Query(ctx, selectStated, seq)
		if err != nil {
			return err
		}
		var page []stated
		for rows.Next() {
			var s stated
			if err := rows.Scan(&seq, &s.recType, &s.id); err != nil {
				return errors.Join(err, rows.Close())
			}
			page = append(page, s)
		}
		if err := rows.Err(); err != nil || len(page) == 0 {
			return err
		}
		for _, s := range page {
			if err := f(s.recType, s.id); err != nil {
				return err
			}
		}
	}
}
