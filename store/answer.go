package store

import (
	"context"

	"kontor/store/idempotency"
)

// WithIdempotency returns a context whose transactions claim an idempotency key.
func WithIdempotency(ctx context.Context, claimed Idempotency) context.Context {
	return idempotency.WithRequest(ctx, claimed)
}

// Answer encodes the answer of the context's request, and seals it if the request has an idempotency key. It must be called
// before the transaction, with what the transaction answers.
func (db *DB) Answer(ctx context.Context, body any) *Answer {
	a, c := idempotency.NewAnswer(body), idempotency.ClaimOf(ctx)
	a.Encode(ctx, c, idempotency.ResponderOf(ctx))
	if c != nil && c.Key != "" {
		db.sealAnswer(a, c)
	}
	return a
}

func (db *DB) sealAnswer(a *Answer, c *idempotency.Claim) {
	if !a.Sealed(db.keys) {
		db.Heavy("seal")
		a.Seal(db.keys, c)
	}
}

// Respond sets the answer of the request: an [Answer] or the body of one. It is stored with the transaction if the request has
// an idempotency key. For a request that does not create, it does nothing.
func (tx *Tx) Respond(body any) {
	if tx.claim == nil && tx.responder == nil {
		return
	}
	prepared, ok := body.(*Answer)
	if !ok {
		prepared = idempotency.NewAnswer(body)
	}
	tx.answer = prepared
}

// findReplay returns a *Replay when the request was answered before.
func (tx *Tx) findReplay(ctx context.Context) error {
	tx.claim, tx.responder = idempotency.ClaimOf(ctx), idempotency.ResponderOf(ctx)
	if tx.claim == nil || tx.claim.Key == "" {
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

// storeAnswer stores the answer of a request with a key. Without a key, the server encodes an answer that was not prepared.
func (tx *Tx) storeAnswer(ctx context.Context) error {
	c, a := tx.claim, tx.answer
	if a == nil {
		return nil
	}
	if c == nil || c.Key == "" {
		if !a.Ready() {
			tx.answer = nil
			return nil
		}
		return a.Err()
	}
	a.Encode(WithQuerier(ctx, tx), c, tx.responder)
	tx.db.sealAnswer(a, c)
	return idempotency.Store(ctx, tx, tx.db.keys, c, a)
}

type querierKey struct{}

// WithQuerier returns a context whose code reads the database through q, see [QuerierFrom].
func WithQuerier(ctx context.Context, q Querier) context.Context {
	return context.WithValue(ctx, querierKey{}, q)
}

// QuerierFrom returns what code that is called by the store must read the database through: the transaction in which it is
// called, or else db.
func QuerierFrom(ctx context.Context, db *DB) Querier {
	if q, ok := ctx.Value(querierKey{}).(Querier); ok {
		return q
	}
	return db
}

// Replay returns the stored answer to a request, or nil when there is none. InTx looks again, inside the transaction;
// this call only saves the work before it.
func (db *DB) Replay(ctx context.Context, claimed Idempotency) (*Replay, error) {
	replay, err := db.findReplay(ctx, db, claimed)
	if db.missesKey(ctx, err) {
		replay, err = db.findReplay(ctx, db, claimed)
	}
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

// ForgetAnswers deletes the stored answers of and about a record, in small transactions.
func (db *DB) ForgetAnswers(ctx context.Context, id string) error {
	for after := ""; ; {
		err := db.InTx(ctx, func(tx *Tx) (err error) {
			after, err = idempotency.Forget(ctx, tx, db.keys, id, after)
			return err
		})
		if err != nil || after == "" {
			return err
		}
	}
}
