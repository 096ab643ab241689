package store

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"
)

// Encoded is an answer in the forms in which it is digested, sent and kept for repetitions of the request.
type Encoded struct {
	Status int
	Record []byte // JSON of the record alone, which digests in the audit trail cover
	Sent   []byte // JSON as the client gets it
	ETag   string // validator of the record, without quotes; empty when it has none
}

// Responder is a request that encodes what its transactions answer with.
type Responder interface {
	// Encode encodes an answer. It may run on the goroutine of the writer; it must read the database with [QuerierFrom].
	Encode(ctx context.Context, body any) (Encoded, error)
	// Answered reports that the transaction that answers so is safely stored. The client must get these bytes. It may be
	// called from any goroutine, also after the request has ended.
	Answered(Encoded)
}

// Answer is what a request answers with, encoded once: for the client, for repetitions with the same Idempotency-Key and
// for digests. Make one with [DB.Answer] before the transaction, and hand it to [Tx.Respond].
type Answer struct {
	body    any
	ready   bool // encoded is there, or err
	encoded Encoded
	sealed  string // Encoded.Sent as it is stored; empty unless the request has an idempotency key
	err     error
}

// Answer encodes what the request of the context answers with, and seals it where the request has an idempotency key. It
// must be called before the transaction, with what the transaction answers.
func (db *DB) Answer(ctx context.Context, body any) *Answer {
	a, c := &Answer{body: body}, claimOf(ctx)
	a.encode(ctx, c)
	if c != nil && c.Key != "" {
		a.seal(db, c)
	}
	return a
}

// Respond says what the request answers: an [Answer] or the body of one. It is stored with the transaction when the request has
// an idempotency key. For a request that does not create, nothing happens.
func (tx *Tx) Respond(body any) {
	if tx.claim == nil {
		return
	}
	prepared, ok := body.(*Answer)
	if !ok {
		prepared = &Answer{body: body}
	}
	tx.answer = prepared
}

func (a *Answer) encode(ctx context.Context, c *claim) {
	if a.ready {
		return
	}
	a.ready = true
	if c != nil && c.responder != nil {
		a.encoded, a.err = c.responder.Encode(ctx, a.body)
	} else {
		a.encoded.Record, a.err = encodeBody(a.body)
		a.encoded.Sent, a.encoded.ETag = a.encoded.Record, etagOf(a.body)
		if c != nil {
			a.encoded.Status = c.Status
		}
	}
	if a.err != nil {
		a.err = fmt.Errorf("encode the answer: %w", a.err)
	}
}

func (a *Answer) seal(db *DB, c *claim) {
	if a.sealed == "" && a.err == nil {
		a.sealed, a.err = db.Seal("idempotency_keys", "body", c.rowID(), a.encoded.Sent)
	}
}

// etagOf returns the validator of a record, as the server puts it into the header.
func etagOf(body any) string {
	if tagged, ok := body.(interface{ ETag() string }); ok {
		return tagged.ETag()
	}
	return ""
}

// encodeBody returns the JSON of a record. Bytes are taken as they are.
func encodeBody(body any) ([]byte, error) {
	switch b := body.(type) {
	case nil:
		return nil, nil
	case []byte:
		return b, nil
	case *Answer:
		return b.encoded.Record, b.err
	}
	return json.Marshal(body, json.Deterministic(true))
}

type querierKey struct{}

// WithQuerier returns a context whose code reads the database through q, see [QuerierFrom].
func WithQuerier(ctx context.Context, q Querier) context.Context {
	return context.WithValue(ctx, querierKey{}, q)
}

// QuerierFrom returns what code that is called by the store must read the database through: the transaction in which it
// is called, or else db.
func QuerierFrom(ctx context.Context, db *DB) Querier {
	if q, ok := ctx.Value(querierKey{}).(Querier); ok {
		return q
	}
	return db
}
