package store

import (
	"context"

	"kontor/store/idempotency"
)

// answer is what a repeated request is answered.
type answer struct {
	status int
	body   any
}

// WithIdempotency returns a context whose transactions claim an idempotency key.
func WithIdempotency(ctx context.Context, claimed Idempotency) context.Context {
	return idempotency.WithRequest(ctx, claimed)
}

// Respond sets the answer to repetitions of this request: body is encoded as the server writes JSON, bytes are kept as they
// are. The answer is stored with the transaction. Without an idempotency key it does nothing.
func (tx *Tx) Respond(status int, body any) {
	if tx.claim != nil {
		tx.answer = &answer{status: status, body: body}
	}
}

// Answer prepares a body for Respond before the transaction: if the request has an idempotency key, it is encoded and
// sealed. It must be the body that the transaction would answer with.
func (db *DB) Answer(ctx context.Context, body any) any {
	c := idempotency.ClaimOf(ctx)
	if c == nil {
		return body
	}
	return db.sealAnswer(c, body)
}

func (db *DB) sealAnswer(c *idempotency.Claim, body any) *idempotency.SealedAnswer {
	if _, done := body.(*idempotency.SealedAnswer); !done {
		db.Heavy("seal")
	}
	return idempotency.SealAnswer(db.keys, c, body)
}

// findReplay returns a *Replay when the request was answered before.
func (tx *Tx) findReplay(ctx context.Context) error {
	tx.claim = idempotency.ClaimOf(ctx)
	if tx.claim == nil {
		return nil
	}
	replay, err := tx.db.findReplay(ctx, tx, tx.claim.Request)
	if err != nil {
		return err
	}
	if replay != nil {
		return replay
	}
	return nil
}

func (tx *Tx) storeAnswer(ctx context.Context) error {
	if tx.answer == nil {
		return nil
	}
	return idempotency.Store(ctx, tx, tx.db.keys, tx.claim, tx.answer.status, tx.db.sealAnswer(tx.claim, tx.answer.body))
}

// Replay returns the stored answer to a request, or nil when there is none. InTx looks again, inside the transaction;
// this call only saves the work before it.
func (db *DB) Replay(ctx context.Context, claimed Idempotency) (*Replay, error) {
	replay, err := db.findReplay(ctx, db, claimed)
	if replay == nil || err != nil {
		return nil, err
	}
	return replay, db.awaitDurable(ctx)
}

// awaitDurable waits until everything that can be read now is durable: readers may see a commit before that.
func (db *DB) awaitDurable(ctx context.Context) error {
	return db.InTx(ctx, func(*Tx) error { return nil })
}

func (db *DB) findReplay(ctx context.Context, q Querier, claimed Idempotency) (*Replay, error) {
	replay, err := idempotency.Find(ctx, q, db.keys, claimed)
	if replay != nil && !replay.BodyDiffers {
		db.Heavy("unseal")
	}
	return replay, err
}

// PurgeIdempotency deletes expired answers and returns how many there were.
func (db *DB) PurgeIdempotency(ctx context.Context) (purged int64, err error) {
	err = db.InTx(ctx, func(tx *Tx) error {
		purged, err = idempotency.Purge(ctx, tx)
		return err
	})
	return purged, err
}
