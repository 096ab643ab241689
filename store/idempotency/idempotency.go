// Package idempotency keeps answers for requests that are repeated with the same Idempotency-Key.
//
// An answer is stored in the transaction that made it, encrypted, and kept for 24 hours. A repeated request gets the stored
// answer and changes nothing.
package idempotency

import (
	"bytes"
	"context"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"kontor/store/audittrail"
	"kontor/store/engine"
	"kontor/store/query"
	"kontor/store/sealing"
)

// keepFor is how long an answer is kept.
const keepFor = 24 * time.Hour

// Request says that requests with this key are one request. Key, Caller and Path together identify it; BodyHash shows
// whether the body is the same. Without a Key nothing is claimed.
type Request struct {
	Key, Caller, Path string
	BodyHash          []byte
	Status            int // of a success
}

// rowID identifies the row of the request for sealing.
func (r *Request) rowID() string { return r.Caller + "\n" + r.Path + "\n" + r.Key }

// Replay is the error of a request that was answered before. It holds the answer.
type Replay struct {
	Status int
	Body   []byte
	ETag   string // of the record in the body, without quotes; empty when it has none
	// BodyDiffers says that the key was used with another body before.
	BodyDiffers bool
}

// Error describes the replay.
func (r *Replay) Error() string { return "request was answered before" }

// Claim is what a request with an idempotency key brings to its transactions.
type Claim struct {
	Request
	// answered is set when this request has stored its answer, so that its later transactions do not find a replay.
	answered atomic.Bool
}

// MarkAnswered says that the answer is stored, and reports it to the responder. c and r may be nil.
func (a *Answer) MarkAnswered(c *Claim, r Responder) {
	if c != nil {
		c.answered.Store(true)
	}
	if r != nil {
		r.Answered(&a.encoded)
	}
}

type contextKey struct{}

// WithRequest returns a context whose transactions claim the request.
func WithRequest(ctx context.Context, r Request) context.Context {
	return context.WithValue(ctx, contextKey{}, &Claim{Request: r})
}

// ClaimOf returns the claim of a context. It returns nil when there is none, and when the request has stored its answer.
func ClaimOf(ctx context.Context) *Claim {
	c, ok := ctx.Value(contextKey{}).(*Claim)
	if !ok || c.answered.Load() {
		return nil
	}
	return c
}

const upsertAnswer = `
	INSERT INTO idempotency_keys (caller, path, key, body_hash, status, body, etag, created_at, expires_at)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
	ON CONFLICT (caller, path, key) DO UPDATE SET
		body_hash = excluded.body_hash, status = excluded.status, body = excluded.body, etag = excluded.etag,
		created_at = excluded.created_at, expires_at = excluded.expires_at`

// Store writes the answer of a claim. The answer must be sealed.
func Store(ctx context.Context, tx query.Writer, keys *sealing.Keys, c *Claim, answer *Answer) error {
	if answer.err != nil {
		return answer.err
	}
	_, err := tx.Exec(ctx, upsertAnswer, c.Caller, c.Path, c.Key, bodyDigest(keys, c.BodyHash),
		answer.encoded.Status, answer.sealed, answer.encoded.ETag, tx.Now(), tx.Now().Add(keepFor))
	return err
}

// bodyDigest returns what is stored of a body's hash. It is keyed, because a body may contain a password that could be
// guessed from its hash.
func bodyDigest(keys *sealing.Keys, hash []byte) string {
	return hex.EncodeToString(keys.Keyed(bodyPurpose, hash))
}

const bodyPurpose = "idempotency body"

// isBodyDigest compares what is stored of a body's hash, also from before a rotation of the master key.
func isBodyDigest(keys *sealing.Keys, hash []byte, stored string) bool {
	if subtle.ConstantTimeCompare([]byte(stored), []byte(bodyDigest(keys, hash))) == 1 {
		return true
	}
	for _, older := range keys.KeyedOlder(bodyPurpose, hash) {
		if subtle.ConstantTimeCompare([]byte(stored), []byte(hex.EncodeToString(older))) == 1 {
			return true
		}
	}
	return false
}

const selectAnswer = `
	SELECT body_hash, status, body, etag FROM idempotency_keys
	WHERE caller = $1 AND path = $2 AND key = $3 AND expires_at > $4`

// Find returns the stored answer to a request, or nil when there is none.
func Find(ctx context.Context, q query.Querier, keys *sealing.Keys, r Request) (*Replay, error) {
	var bodyHash, sealed string
	replay := &Replay{}
	err := q.QueryRow(ctx, selectAnswer, r.Caller, r.Path, r.Key, q.Now()).Scan(&bodyHash, &replay.Status, &sealed, &replay.ETag)
	if errors.Is(err, engine.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !isBodyDigest(keys, r.BodyHash, bodyHash) {
		replay.BodyDiffers = true
		return replay, nil
	}
	replay.Body, err = keys.Unseal(sealedTable, sealedColumn, r.rowID(), sealed)
	return replay, err
}

const deleteExpired = `DELETE FROM idempotency_keys WHERE expires_at <= $1`

// Purge deletes expired answers and returns how many there were.
func Purge(ctx context.Context, tx query.Writer) (purged int64, err error) {
	return tx.Exec(ctx, deleteExpired, tx.Now())
}

const (
	selectStored = `
		SELECT caller, path, key, body FROM idempotency_keys
		WHERE caller || ' ' || path || ' ' || key > $1
		ORDER BY caller || ' ' || path || ' ' || key LIMIT $2`

	deleteAnswer = `DELETE FROM idempotency_keys WHERE caller = $1 AND path = $2 AND key = $3`
)

// forgetBatch is the number of answers that Forget reads at once.
const forgetBatch = 100

// Forget deletes stored answers of and about a record in one batch: of the caller with the id, to a path with the id, and with
// the id in the answer. It returns the position to continue after, or an empty text at the end.
func Forget(ctx context.Context, tx query.Writer, keys *sealing.Keys, id, after string) (next string, err error) {
	stored, err := query.All(ctx, tx, scanStored, selectStored, after, forgetBatch)
	if err != nil {
		return "", err
	}
	for _, s := range stored {
		next = s.Caller + " " + s.Path + " " + s.Key
		about := s.Caller == id || strings.Contains(s.Path, id)
		if !about {
			body, err := keys.Unseal(sealedTable, sealedColumn, s.rowID(), s.sealed)
			if err != nil {
				return "", err
			}
			about = bytes.Contains(body, []byte(id))
		}
		if !about {
			continue
		}
		if _, err := tx.Exec(ctx, deleteAnswer, s.Caller, s.Path, s.Key); err != nil {
			return "", err
		}
	}
	if len(stored) < forgetBatch {
		return "", nil
	}
	return next, nil
}

// storedAnswer is a stored answer with its request.
type storedAnswer struct {
	Request
	sealed string
}

func scanStored(row query.Scanner) (s storedAnswer, err error) {
	err = row.Scan(&s.Caller, &s.Path, &s.Key, &s.sealed)
	return s, err
}

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

	storedAnswer
	resealed string
}

// FindOld returns at most limit answers after a row that do not have the pattern of the newest key.
func FindOld(ctx context.Context, q query.Querier, newest, after string, limit int) ([]Old, error) {
	var last [3]string
	copy(last[:], strings.SplitN(after, "\n", len(last)))
	return query.All(ctx, q, func(row query.Scanner) (Old, error) {
		stored, err := scanStored(row)
		return Old{After: stored.rowID(), storedAnswer: stored}, err
	}, selectOld, newest, last[0], last[1], last[2], limit)
}

// Reseal seals the answer with the newest key.
func (o *Old) Reseal(keys *sealing.Keys) error {
	plain, err := keys.Unseal(sealedTable, sealedColumn, o.rowID(), o.sealed)
	if err == nil {
		o.resealed = keys.Seal(sealedTable, sealedColumn, o.rowID(), plain)
	}
	return err
}

// Write stores the answer if it has not changed.
func (o *Old) Write(ctx context.Context, tx query.Writer) error {
	_, err := tx.Exec(ctx, updateBody, o.Caller, o.Path, o.Key, o.sealed, o.resealed)
	return err
}
