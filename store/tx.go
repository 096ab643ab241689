package store

import (
	"context"
	"errors"

	"kontor/store/audittrail"
	"kontor/store/engine"
	"kontor/store/idempotency"
	"kontor/store/query"
)

// Tx is a transaction while its function runs. It belongs to that function's goroutine, and its statements fail with
// ErrClosed afterwards.
type Tx struct {
	db  *DB
	tx  engine.Tx
	now Time

	entries []audittrail.Pending
	answer  *Answer

	removals [][2]string // types and ids of audit entries whose documents are removed

	claim     *idempotency.Claim // nil without an idempotency key
	responder Responder          // nil: the plain JSON of the record is sent
}

// InTx runs fn in a transaction and returns when its writes, or the reason for its failure, are durable. An error from fn,
// or a panic, undoes the writes of this fn and no others. fn may run more than once, so it must not have effects except
// through tx. It must be quick, because all other writes wait. It must use only tx: InTx, View and the queries of DB return
// ErrNested within fn.
//
// InTx returns ErrBusy when too many writes wait, and the context's error when it ended before fn had begun. It returns
// *Replay when the context carries an idempotency key that was answered before, and ErrOutcomeUnknown when the context has
// ended and the disk does not respond.
func (db *DB) InTx(ctx context.Context, fn func(tx *Tx) error) error {
	if err := db.keysLost(); err != nil {
		return err
	}
	db.followClock(ctx)
	var last *Tx // of the run that was committed
	err := db.engine.Write(ctx, func(etx engine.Tx) error {
		last = &Tx{db: db, tx: etx, now: db.Now()}
		db.noteTime(last.now)
		return last.run(ctx, fn)
	})
	switch {
	case err == nil && last.answer != nil:
		last.answer.MarkAnswered(last.claim, last.responder)
	case errors.Is(err, ErrWrongKey) && db.Shared():
		return errors.Join(err, db.RenewKeys(ctx)) // another node has replaced the master key
	}
	return err
}

// run runs fn, and stores what belongs to its writes: the answer for repeated requests and the audit entries.
func (tx *Tx) run(ctx context.Context, fn func(tx *Tx) error) error {
	if err := tx.findReplay(ctx); err != nil {
		return err
	}
	if err := fn(tx); err != nil {
		return err
	}
	if err := tx.tx.Err(); err != nil { // fn continued after a failed statement
		return err
	}
	if err := tx.removeTexts(ctx); err != nil {
		return err
	}
	if err := tx.storeAnswer(ctx); err != nil {
		return err
	}
	if err := tx.db.guard.Append(ctx, tx.tx, tx.entries, func() Origin { return tx.db.originOf(ctx) }); err != nil {
		return err
	}
	tx.announceEntries()
	return nil
}

// Now returns the time at which fn began. It stays the same throughout.
func (tx *Tx) Now() Time { return tx.now }

// Query runs a statement that returns rows. It may also write, with RETURNING.
func (tx *Tx) Query(ctx context.Context, sql string, args ...any) (*Rows, error) {
	return query.Query(ctx, tx.tx, sql, args)
}

// QueryRow runs a statement that returns one row.
func (tx *Tx) QueryRow(ctx context.Context, sql string, args ...any) *Row {
	return query.NewRow(ctx, tx.tx, sql, args)
}

// Exec runs a statement and returns how many rows it changed. After an error the transaction accepts no further statements:
// return the error.
func (tx *Tx) Exec(ctx context.Context, sql string, args ...any) (changed int64, err error) {
	return query.Exec(ctx, tx.tx, sql, args)
}

// Run is Exec for callers who need not know how many rows changed.
func (tx *Tx) Run(ctx context.Context, sql string, args ...any) error {
	_, err := tx.Exec(ctx, sql, args...)
	return err
}

// RunEach runs statements about one id, in their order.
func (tx *Tx) RunEach(ctx context.Context, id string, statements ...string) error {
	for _, statement := range statements {
		if err := tx.Run(ctx, statement, id); err != nil {
			return err
		}
	}
	return nil
}

// AfterCommit calls f once, after the writes are durable and before InTx returns: for events, and to drop cache entries.
// Functions run in the order of the commits. f must be quick. It may read the database; InTx returns ErrNested within f.
func (tx *Tx) AfterCommit(f func()) { tx.tx.AfterCommit(f) }

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
