package sqlite

import (
	"context"
	"fmt"
	"slices"

	"kontor/store/engine"
	"kontor/store/sqlite/internal/binding"
)

// tx is the transaction of one run of a job. It implements engine.Tx.
type tx struct {
	job      *job
	versions *engine.Versions
	conn     *binding.Conn
	err      error // of the first statement that failed
	ended    bool
	written  []*engine.Table

	// The first elements of the list, so that most transactions need no further allocation.
	writtenSpace [8]*engine.Table
}

// begin prepares a new transaction.
func (t *tx) begin(j *job, versions *engine.Versions, conn *binding.Conn) {
	t.job, t.versions, t.conn = j, versions, conn
	t.written = t.writtenSpace[:0]
}

// Prepare compiles a statement and records the tables that it writes to. The context does not interrupt the statement: that
// would end the transaction of the whole group.
func (t *tx) Prepare(_ context.Context, sql string) (engine.Statement, error) {
	if t.ended {
		return nil, fmt.Errorf("transaction: %w", engine.ErrClosed)
	}
	if t.err != nil {
		return nil, fmt.Errorf("transaction failed before: %w", t.err)
	}
	s, err := prepare(t.conn, sql)
	if err != nil {
		return nil, t.Failed(err)
	}
	if !s.parsed {
		s.written, s.parsed = t.versions.Written(sql), true
	}
	for _, table := range s.written {
		if !slices.Contains(t.written, table) {
			t.written = append(t.written, table)
		}
	}
	return s, nil
}

// Failed records the error of a statement: the transaction accepts no further ones.
func (t *tx) Failed(err error) error {
	if err != nil && t.err == nil {
		t.err = err
	}
	return err
}

// Err returns the error of the first statement that failed.
func (t *tx) Err() error { return t.err }

// AfterCommit registers a function to call after the commit.
func (t *tx) AfterCommit(f func()) { t.job.Hooks = append(t.job.Hooks, f) }

// Announce registers the receivers of this process: there are no other nodes.
func (t *tx) Announce(a engine.Announcement) {
	if a.Local != nil {
		t.AfterCommit(a.Local)
		return
	}
	topic, key := a.Topic, a.Key
	t.AfterCommit(func() { topic.Receive(key) })
}
