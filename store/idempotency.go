package store

import (
	"context"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
)

// replayFor is how long an answer is kept for replays.
const replayFor = 24 * time.Hour

// Idempotency is a client's claim that requests with this key are one request. Key, Caller and Path
// together identify it; BodyHash tells whether the body is the same.
type Idempotency struct {
	Key, Caller, Path string
	BodyHash          []byte
}

// Replay is the error of a request that has been answered before; the answer is in it.
type Replay struct {
	Status int
	Body   []byte
	ETag   string // of the record in the body, without quotes; empty when it has none
	// BodyDiffers says that the key came with another body before.
	BodyDiffers bool
}

// Error describes the replay.
func (r *Replay) Error() string { return "request was answered before" }

// claim is the idempotency claim of one request.
type claim struct {
	Idempotency
	// settled is set when this request itself stored its answer, so that its further transactions
	// do not take it for a replay.
	settled atomic.Bool
}

func (c *claim) settle(answer *response) {
	if c != nil && answer != nil {
		c.settled.Store(true)
	}
}

type claimKey struct{}

// WithIdempotency gives the transactions under the context an idempotency claim.
func WithIdempotency(ctx context.Context, claimed Idempotency) context.Context {
	return context.WithValue(ctx, claimKey{}, &claim{Idempotency: claimed})
}

// response is what a replay answers.
type response struct {
	status int
	body   any
}

// Respond says what a replay of this request must answer: body is written as the server writes JSON, bytes as they are.
// It is stored with the transaction; for a request without a key nothing happens.
func (tx *Tx) Respond(status int, body any) {
	if tx.claim != nil {
		tx.answer = &response{status: status, body: body}
	}
}

// Answer prepares a body for Respond before the transaction: where the request has an idempotency key, it is encoded and
// sealed. It must be the same body that the transaction would answer with.
func (db *DB) Answer(ctx context.Context, body any) any {
	c, ok := ctx.Value(claimKey{}).(*claim)
	if !ok || c.settled.Load() {
		return body
	}
	return db.sealAnswer(c, body)
}

// sealedAnswer is the body of an answer as it is stored.
type sealedAnswer struct {
	text, etag string
	err        error
}

func (db *DB) sealAnswer(c *claim, body any) *sealedAnswer {
	if sealed, ok := body.(*sealedAnswer); ok {
		return sealed
	}
	encoded, err := answerBytes(body)
	if err != nil {
		return &sealedAnswer{err: fmt.Errorf("idempotency answer: %w", err)}
	}
	text, err := db.Seal("idempotency_keys", "body", c.rowID(), encoded)
	return &sealedAnswer{text: text, etag: etagOf(body), err: err}
}

// begin refuses a closure whose request has been answered.
func (tx *Tx) begin(ctx context.Context) error {
	c, ok := ctx.Value(claimKey{}).(*claim)
	if !ok || c.settled.Load() {
		return nil
	}
	tx.claim = c
	replay, err := tx.db.findReplay(ctx, tx, c.Idempotency)
	if err != nil {
		return err
	}
	if replay != nil {
		return replay
	}
	return nil
}

// finish stores what belongs to a closure that succeeded.
func (tx *Tx) finish(ctx context.Context, t *trail) error {
	if tx.answer != nil {
		if err := tx.storeAnswer(ctx); err != nil {
			return err
		}
	}
	return t.append(ctx, tx)
}

const selectReplay = `
	SELECT body_hash, status, body, etag FROM idempotency_keys
	WHERE caller = $1 AND path = $2 AND key = $3 AND expires_at > $4`

const upsertReplay = `
	INSERT INTO idempotency_keys (caller, path, key, body_hash, status, body, etag, created_at, expires_at)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
	ON CONFLICT (caller, path, key) DO UPDATE SET
		body_hash = excluded.body_hash, status = excluded.status, body = excluded.body, etag = excluded.etag,
		created_at = excluded.created_at, expires_at = excluded.expires_at`

const purgeReplays = `DELETE FROM idempotency_keys WHERE expires_at <= $1`

// storeAnswer keeps the answer, sealed: it may hold what is shown only once, such as a new API key.
func (tx *Tx) storeAnswer(ctx context.Context) error {
	c := tx.claim
	sealed := tx.db.sealAnswer(c, tx.answer.body)
	if sealed.err != nil {
		return sealed.err
	}
	_, err := tx.Exec(ctx, upsertReplay, c.Caller, c.Path, c.Key, tx.db.bodyDigest(c.BodyHash),
		tx.answer.status, sealed.text, sealed.etag, tx.now, tx.now.Add(replayFor))
	return err
}

// etagOf is the validator of a record, as the server puts it into the header.
func etagOf(body any) string {
	if tagged, ok := body.(interface{ ETag() string }); ok {
		return tagged.ETag()
	}
	return ""
}

func answerBytes(body any) ([]byte, error) {
	switch b := body.(type) {
	case nil:
		return nil, nil
	case []byte:
		return b, nil
	}
	return json.Marshal(body, json.Deterministic(true))
}

// bodyDigest is what is stored of a body's hash: keyed, for a body may hold a password that could be
// guessed from its hash.
func (db *DB) bodyDigest(hash []byte) string {
	return hex.EncodeToString(db.Keyed("idempotency body", hash))
}

func (i *Idempotency) rowID() string { return i.Caller + "\n" + i.Path + "\n" + i.Key }

// Replay looks whether a claim has been answered, and gives nil if not. InTx looks again, inside the
// transaction: this call only saves the work before it.
func (db *DB) Replay(ctx context.Context, claimed Idempotency) (*Replay, error) {
	replay, err := db.findReplay(ctx, db, claimed)
	if replay == nil || err != nil {
		return nil, err
	}
	return replay, db.synced(ctx)
}

func (db *DB) findReplay(ctx context.Context, q Querier, claimed Idempotency) (*Replay, error) {
	var bodyHash, sealed string
	replay := &Replay{}
	err := q.QueryRow(ctx, selectReplay, claimed.Caller, claimed.Path, claimed.Key, q.Now()).
		Scan(&bodyHash, &replay.Status, &sealed, &replay.ETag)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if subtle.ConstantTimeCompare([]byte(bodyHash), []byte(db.bodyDigest(claimed.BodyHash))) == 0 {
		replay.BodyDiffers = true
		return replay, nil
	}
	replay.Body, err = db.Unseal("idempotency_keys", "body", claimed.rowID(), sealed)
	return replay, err
}

// PurgeIdempotency forgets the answers whose time is over and tells how many there were.
func (db *DB) PurgeIdempotency(ctx context.Context) (purged int64, err error) {
	err = db.InTx(ctx, func(tx *Tx) error {
		purged, err = tx.Exec(ctx, purgeReplays, tx.Now())
		return err
	})
	return purged, err
}
