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
	"strings"
	"sync/atomic"
	"time"

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

// Execer writes, at one moment.
type Execer interface {
	query.Querier
	Exec(ctx context.Context, sql string, args ...any) (changed int64, err error)
}

// Store writes the answer of a claim. The answer must be sealed.
func Store(ctx context.Context, tx Execer, keys *sealing.Keys, c *Claim, answer *Answer) error {
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
func Purge(ctx context.Context, tx Execer) (purged int64, err error) {
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
func Forget(ctx context.Context, tx Execer, keys *sealing.Keys, id, after string) (next string, err error) {
	stored, err := readStored(ctx, tx, after)
	if err != nil {
		return "", err
	}
	for _, s := range stored {
		next = s.Caller + " " + s.Path + " " + s.Key
		about := s.Caller == id || strings.Contains(s.Path, id)
		if !about {
			body, err := keys.Unseal("idempotency_keys", "body", s.rowID(), s.sealed)
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

func readStored(ctx context.Context, tx Execer, after string) ([]storedAnswer, error) {
	rows, err := tx.Query(ctx, selectStored, after, forgetBatch)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var stored []storedAnswer
	for rows.Next() {
		var s storedAnswer
		if err := rows.Scan(&s.Caller, &s.Path, &s.Key, &s.sealed); err != nil {
			return nil, err
		}
		stored = append(stored, s)
	}
	return stored, rows.Err()
}
