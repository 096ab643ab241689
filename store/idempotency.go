package store

import (
	"context"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"sync/atomic"
	"time"
)

// replayFor is how long an answer is kept for replays.
const replayFor = 24 * time.Hour

// Idempotency is a client's claim that requests with this key are one request. Key, Caller and Path
// together identify it; BodyHash tells whether the body is the same. Without a Key nothing is claimed.
type Idempotency struct {
	Key, Caller, Path string
	BodyHash          []byte
	Status            int // of a success
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

// claim is what a request brings to its transactions: its idempotency key, if it has one, and who encodes its answer.
type claim struct {
	Idempotency
	responder Responder // nil: the plain JSON of the record is sent

	// settled is set when this request itself has answered, so that its further transactions
	// do not take it for a replay.
	settled atomic.Bool
}

func (c *claim) settle(answer *Answer) {
	if c == nil || answer == nil {
		return
	}
	c.settled.Store(true)
	if c.responder != nil {
		c.responder.Answered(answer.encoded)
	}
}

type claimKey struct{}

// WithIdempotency gives the transactions under the context an idempotency claim.
func WithIdempotency(ctx context.Context, claimed Idempotency) context.Context {
	return WithResponder(ctx, claimed, nil)
}

// WithResponder is WithIdempotency for a request that encodes its answers itself.
func WithResponder(ctx context.Context, claimed Idempotency, r Responder) context.Context {
	return context.WithValue(ctx, claimKey{}, &claim{Idempotency: claimed, responder: r})
}

// claimOf returns the claim of a context that is still open, or nil.
func claimOf(ctx context.Context) *claim {
	if c, ok := ctx.Value(claimKey{}).(*claim); ok && !c.settled.Load() {
		return c
	}
	return nil
}

// begin refuses a closure whose request has been answered.
func (tx *Tx) begin(ctx context.Context) error {
	c := claimOf(ctx)
	tx.claim = c
	if c == nil || c.Key == "" {
		return nil
	}
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
	c, a := tx.claim, tx.answer
	if c.Key != "" {
		a.encode(WithQuerier(ctx, tx), c)
		a.seal(tx.db, c)
	} else if !a.ready {
		tx.answer = nil // the server encodes it after the transaction
		return nil
	}
	if a.err != nil || c.Key == "" {
		return a.err
	}
	_, err := tx.Exec(ctx, upsertReplay, c.Caller, c.Path, c.Key, tx.db.bodyDigest(c.BodyHash),
		a.encoded.Status, a.sealed, a.encoded.ETag, tx.now, tx.now.Add(replayFor))
	return err
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
