package idempotency

import (
	"context"
	"fmt"

	"kontor/store/audittrail"
	"kontor/store/sealing"
)

// Encoded is an answer in the forms in which it is digested, sent and kept for repetitions of the request. It has no name of
// its own, so that requests can encode without importing the database.
type Encoded = struct {
	Status int
	Record []byte // JSON of the record alone, which digests in the audit trail cover
	Sent   []byte // JSON as the client gets it
	ETag   string // validator of the record, without quotes; empty when it has none
}

// Responder is a request that encodes the answers of its transactions.
type Responder interface {
	// Encode encodes an answer. It may run on the goroutine of the writer.
	Encode(ctx context.Context, body any) (Encoded, error)
	// Answered reports that the transaction with this answer is durable. The client must get these bytes. It may be called from
	// any goroutine, also after the request has ended.
	Answered(*Encoded)
}

// ResponderKey is the key under which a context holds the [Responder] of its request.
type ResponderKey struct{}

// ResponderOf returns the responder of a context, or nil.
func ResponderOf(ctx context.Context) Responder {
	r, _ := ctx.Value(ResponderKey{}).(Responder)
	return r
}

// Answer is the answer of a request, encoded once: for the client, for repetitions and for digests.
type Answer struct {
	body    any
	ready   bool // encoded is set, or err
	encoded Encoded
	sealed  string // Encoded.Sent as it is stored; empty unless the request has a key
	err     error  // reported by Store
}

// NewAnswer returns an answer that is not encoded yet.
func NewAnswer(body any) *Answer { return &Answer{body: body} }

// Ready reports whether the answer is encoded, or its encoding has failed.
func (a *Answer) Ready() bool { return a.ready }

// Err returns the error of encoding.
func (a *Answer) Err() error { return a.err }

// EncodedRecord returns the JSON of the record alone. It must be called after Encode.
func (a *Answer) EncodedRecord() ([]byte, error) { return a.encoded.Record, a.err }

// Encode encodes the answer once, by the responder if there is one. c may be nil.
func (a *Answer) Encode(ctx context.Context, c *Claim, r Responder) {
	if a.ready {
		return
	}
	a.ready = true
	if r != nil {
		a.encoded, a.err = r.Encode(ctx, a.body)
	} else {
		a.encodePlain(c)
	}
	if a.err != nil {
		a.err = fmt.Errorf("encode the answer: %w", a.err)
	}
}

// encodePlain encodes the record as the server writes it.
func (a *Answer) encodePlain(c *Claim) {
	a.encoded.Record, a.err = audittrail.EncodeAnswer(a.body)
	a.encoded.Sent = a.encoded.Record
	if tagged, ok := a.body.(interface{ ETag() string }); ok {
		a.encoded.ETag = tagged.ETag()
	}
	if c != nil {
		a.encoded.Status = c.Status
	}
}

// Sealed reports whether the answer is encrypted already, with the newest key.
func (a *Answer) Sealed(keys *sealing.Keys) bool { return keys.IsNewest(a.sealed) || a.err != nil }

// Seal encrypts the answer for a claim with a key: it may contain secrets that are shown once, such as a new API key.
func (a *Answer) Seal(keys *sealing.Keys, c *Claim) {
	if !a.Sealed(keys) {
		a.sealed = keys.Seal(sealedTable, sealedColumn, c.rowID(), a.encoded.Sent)
	}
}
