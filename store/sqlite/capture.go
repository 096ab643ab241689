package sqlite

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"kontor/store/clock"
	"kontor/store/datadir"
	"kontor/store/engine"
	"kontor/store/query"
	"kontor/store/sqlite/internal/binding"
)

// A Recorder takes states of a database that is being served, each with the pages that have changed since the last one that was
// kept. A state is durable and complete: it is taken between two transactions of the writer, and read beside it. The methods of a
// Recorder and of its recordings belong to one goroutine at a time.
type Recorder struct {
	engine  *Engine
	conn    *binding.Conn
	changes *binding.Changes
	pending []int64 // changed pages of states that were not kept
}

// Record begins to collect the pages that change. There is one Recorder for each database at a time. Close it before the engine.
func (e *Engine) Record() (*Recorder, error) {
	path := e.dir.File(datadir.Database)
	conn, err := connect(path, binding.ReadOnly, readerPragmas)
	if err != nil {
		return nil, err
	}
	changes, err := binding.TrackChanges(path)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &Recorder{engine: e, conn: conn, changes: changes}, nil
}

// A Recording is one state of a database. Its pages are read until Close. The log cannot start again meanwhile.
type Recording struct {
	Extent
	Lineage
	Schema  int64
	Commits int64         // number of the newest commit
	Head    engine.Anchor // the newest entry of the audit trail
	At      clock.Time    // when the state was taken
	Changed []int64       // the pages that have changed since the last recording that was kept, or since Record

	recorder *Recorder
}

// Changed reports whether something was committed since the last recording that was kept.
func (r *Recorder) Changed() bool { return len(r.pending) > 0 || r.changes.Any() }

// Take takes the present state. Close it before the next one.
func (r *Recorder) Take(ctx context.Context) (*Recording, error) {
	taken := &Recording{recorder: r}
	w := r.engine.writer
	var failed error
	// The writer begins the read transaction after its commit, when no other transaction is open. Write returns when all
	// commits so far are durable. It must not return while the writer may still use the connection.
	err := r.engine.Write(context.WithoutCancel(ctx), func(engine.Tx) error {
		if !w.lineageSaved { // a state that leaves the machine says where it comes from
			if err := w.lineage.save(w.conn); err != nil {
				return err
			}
		}
		w.onCommit = func() {
			if failed = r.beginRead(); failed != nil {
				return
			}
			r.pending = append(r.pending, r.changes.Take()...)
			slices.Sort(r.pending)
			r.pending = slices.Compact(r.pending)
			taken.Changed, taken.Commits, taken.At = r.pending, w.position.commits, clock.Of(w.clock.Now())
			taken.Head, taken.Lineage = w.position.head, w.lineage
		}
		return nil
	})
	if err = errors.Join(err, failed); err == nil {
		err = taken.describe(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("record a state of the database: %w", err), taken.Close())
	}
	return taken, nil
}

// beginRead begins a transaction that sees the present state. It begins with its first read.
func (r *Recorder) beginRead() error {
	if err := runKept(r.conn, beginRead); err != nil {
		return err
	}
	return readRow(r.conn, selectSchemaCookie, nil, new(int64))
}

const selectSchemaCookie = "PRAGMA schema_version"

func (t *Recording) describe(ctx context.Context) (err error) {
	if t.Schema, err = schemaVersion(t.recorder.conn); err == nil {
		t.Extent, err = source{t.recorder.conn}.Extent(ctx)
	}
	return err
}

// Source reads from the state.
func (t *Recording) Source() engine.Source { return source{t.recorder.conn} }

// EachPage calls fn for each of the pages.
func (t *Recording) EachPage(ctx context.Context, numbers iter.Seq[int64], fn func(number int64, page []byte) error) error {
	return source{t.recorder.conn}.EachPage(ctx, numbers, fn)
}

// Keep says that the changed pages were stored: the next recording lists only those that change from here on.
func (t *Recording) Keep() { t.recorder.pending = nil }

// Close ends the reading of the state.
func (t *Recording) Close() error {
	t.recorder.conn.ResetAll()
	if !t.recorder.conn.InTransaction() {
		return nil
	}
	return translate(runKept(t.recorder.conn, rollback))
}

// Close ends the collection.
func (r *Recorder) Close() error {
	r.changes.Close()
	return r.conn.Close()
}

const selectPage = `SELECT data FROM sqlite_dbpage WHERE pgno = $1`

// Extent is the size of a database.
type Extent struct {
	PageSize int64 `json:"page_size"` // bytes of a page
	Pages    int64 `json:"pages"`     // that are numbered from 1
}

// Bytes returns the size of the database file.
func (e Extent) Bytes() int64 { return e.PageSize * e.Pages }

// All returns the numbers of all pages.
func (e Extent) All() iter.Seq[int64] {
	return func(yield func(int64) bool) {
		for n := int64(1); n <= e.Pages && yield(n); n++ {
		}
	}
}

// Extent returns the size of the state that the source reads.
func (s source) Extent(ctx context.Context) (e Extent, err error) {
	if err = query.NewRow(ctx, s, "PRAGMA page_size", nil).Scan(&e.PageSize); err == nil {
		err = query.NewRow(ctx, s, "PRAGMA page_count", nil).Scan(&e.Pages)
	}
	return e, err
}

// EachPage calls fn for each of the pages of that state, as a file would hold them after a checkpoint. The memory of a page belongs to fn
// until it returns.
func (s source) EachPage(ctx context.Context, numbers iter.Seq[int64], fn func(number int64, page []byte) error) error {
	for n := range numbers {
		var page []byte
		if err := query.NewRow(ctx, s, selectPage, []any{n}).Scan(&page); err != nil {
			return fmt.Errorf("read page %d: %w", n, err)
		}
		s.conn.AsWritten(page, n)
		if err := fn(n, page); err != nil {
			return err
		}
	}
	return nil
}

// HasChecksums reports whether the pages of the file have checksums. Those of databases of early versions have none.
func (f *File) HasChecksums(ctx context.Context) (bool, error) {
	if err := query.NewRow(ctx, f, "PRAGMA page_count", nil).Scan(new(int64)); err != nil { // the file layer reads the first page
		return false, explain(f.path, err)
	}
	return f.conn.HasChecksums(), nil
}
