package store

import (
	"context"
	"fmt"
	"slices"

	"kontor/store/internal/sqlite"
)

// Tx is a transaction while its closure runs. It belongs to the closure's goroutine and is dead
// afterwards.
type Tx struct {
	db   *DB
	conn *sqlite.Conn
	now  Time

	err     error // of the first statement that failed; nothing more is accepted
	ended   bool
	touched []*table
	hooks   []func()
	entries []auditRow
	claim   *claim
	answer  *Answer
}

// Now is the time at which the closure began, the same throughout.
func (tx *Tx) Now() Time { return tx.now }

// Query runs a statement that gives rows; it may also write, with RETURNING.
func (tx *Tx) Query(ctx context.Context, sql string, args ...any) (*Rows, error) {
	return query(ctx, tx, sql, args)
}

// QueryRow prepares to read one row.
func (tx *Tx) QueryRow(ctx context.Context, sql string, args ...any) *Row {
	return &Row{ctx: ctx, from: tx, sql: sql, args: args}
}

// Exec runs a statement and tells how many rows it changed. After an error nothing more is accepted:
// return it, and the closure is rolled back.
func (tx *Tx) Exec(ctx context.Context, sql string, args ...any) (changed int64, err error) {
	s, _, err := tx.statement(ctx, sql)
	if err != nil {
		return 0, err
	}
	_, more, err := start(s, args)
	if err != nil {
		return 0, tx.note(err)
	}
	for more && err == nil {
		more, err = s.Step()
	}
	s.Reset()
	if err != nil {
		return 0, tx.note(translate(err))
	}
	if len(s.Tag.([]*table)) == 0 {
		return 0, nil
	}
	return tx.conn.Changed(), nil
}

// AfterCommit calls f once, when what the closure wrote is safely stored: events, cache entries to
// drop. Functions run in the order of the commits, before InTx returns to the caller. f must be quick
// and may read the database; InTx returns ErrNested within f.
func (tx *Tx) AfterCommit(f func()) { tx.hooks = append(tx.hooks, f) }

func (tx *Tx) note(err error) error {
	if err != nil && tx.err == nil {
		tx.err = err
	}
	return err
}

// statement compiles sql and notes which tables it writes to. The context is not bound to the
// connection: interrupting a write would end the transaction of everybody in the group.
func (tx *Tx) statement(_ context.Context, sql string) (*sqlite.Stmt, *reader, error) {
	if tx.ended {
		return nil, nil, fmt.Errorf("transaction: %w", ErrClosed)
	}
	if tx.err != nil {
		return nil, nil, fmt.Errorf("transaction failed before: %w", tx.err)
	}
	s, err := tx.conn.Prepare(sql)
	if err != nil {
		return nil, nil, tx.note(translate(err))
	}
	if s.Tag == nil {
		names := writtenTables(sql)
		tables := make([]*table, len(names))
		for i, name := range names {
			tables[i] = tx.db.versions.table(name)
		}
		s.Tag = tables
	}
	for _, t := range s.Tag.([]*table) {
		if !slices.Contains(tx.touched, t) {
			tx.touched = append(tx.touched, t)
		}
	}
	return s, nil, nil
}
