package sqlite

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"kontor/store/engine"
	"kontor/store/query"
	"kontor/store/sqlite/internal/binding"
)

const (
	// maxTouches and maxTouchBytes bound what is remembered of one table. Beyond it the older half is forgotten, and what was
	// counted before that must be counted again.
	maxTouches    = 1 << 14
	maxTouchBytes = 4 << 20
	// touchBytes is what a touch takes without its texts.
	touchBytes = 160
)

// touches remembers which rows the commits of this process have touched, with some columns of the rows before and after. The
// writer adds them; readers bring counts up to date with them. Only tables that were asked for are followed, so that a database
// without lists remembers nothing.
type touches struct {
	followed  atomic.Pointer[map[string]*touchedTable] // by name; replaced, never changed
	committed atomic.Int64                             // number of the newest commit
	mu        sync.Mutex                               // guards the touches of all tables, and replacing followed

	// The rest belongs to the writer.
	following map[string]*touchedTable // of the open transaction
	pending   []pendingTouch
}

// touchedTable holds the touches of one table in the order of the commits.
type touchedTable struct {
	columns []tableColumn
	adopted bool  // the writer follows the table
	since   int64 // all touches of later commits are known
	bytes   int
	rows    []touch
	// last is the newest commit that touched the table, math.MaxInt64 before it is followed. It stays when further columns are followed.
	last *atomic.Int64
}

// tableColumn is a column with its position in the table.
type tableColumn struct {
	name     string
	position int
}

// touch is one change of a row. before is nil for an insertion, after for a deletion. Both hold the columns of the table that
// are followed.
type touch struct {
	commit        int64
	row           int64
	before, after []any
}

type pendingTouch struct {
	table *touchedTable
	touch touch
}

// tables returns the followed tables.
func (t *touches) tables() map[string]*touchedTable {
	if f := t.followed.Load(); f != nil {
		return *f
	}
	return nil
}

// follow returns the table when the columns of it are followed. Otherwise the writer follows them from its next transaction on.
func (t *touches) follow(name string, columns []tableColumn) *touchedTable {
	if found := t.tables()[name]; found != nil && found.has(columns) {
		return found
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	next := map[string]*touchedTable{}
	maps.Copy(next, t.tables())
	table := &touchedTable{columns: slices.Clone(columns), last: &atomic.Int64{}}
	table.last.Store(math.MaxInt64) // not known before the writer follows it
	if before := next[name]; before != nil {
		if before.has(columns) {
			return before
		}
		table.last = before.last
		for _, c := range before.columns {
			if !slices.Contains(table.columns, c) {
				table.columns = append(table.columns, c)
			}
		}
	}
	next[name] = table
	t.followed.Store(&next)
	return table
}

func (t *touchedTable) has(columns []tableColumn) bool {
	for _, c := range columns {
		if !slices.Contains(t.columns, c) {
			return false
		}
	}
	return true
}

// place returns the position of a column among the followed ones, or -1.
func (t *touchedTable) place(column string) int {
	return slices.IndexFunc(t.columns, func(c tableColumn) bool { return c.name == column })
}

// begin is called at the beginning of each transaction. newest is the number of the commit before it.
func (t *touches) begin(newest int64) {
	t.pending = t.pending[:0]
	t.following = t.tables()
	for _, table := range t.following {
		if !table.adopted {
			t.mu.Lock()
			if table.last.CompareAndSwap(math.MaxInt64, newest) {
				table.since = newest
			} else {
				table.since = table.last.Load() // no later commit has touched the table
			}
			table.adopted = true
			t.mu.Unlock()
		}
	}
}

// note is called before each change of a row.
func (t *touches) note(r *binding.RowChange) {
	table := t.following[r.Table]
	if table == nil {
		return
	}
	noted := touch{row: r.OldRow}
	if r.Inserts {
		noted.row = r.NewRow
	}
	values := make([]any, 2*len(table.columns))
	if !r.Inserts {
		noted.before = values[:len(table.columns):len(table.columns)]
		for i, c := range table.columns {
			noted.before[i] = r.Old(c.position)
		}
	}
	if !r.Deletes {
		noted.after = values[len(table.columns):]
		for i, c := range table.columns {
			noted.after[i] = r.New(c.position)
		}
	}
	if !r.Inserts && !r.Deletes && r.OldRow != r.NewRow {
		t.pending = append(t.pending, pendingTouch{table, touch{row: r.NewRow, after: noted.after}})
		noted.after = nil
	}
	t.pending = append(t.pending, pendingTouch{table, noted})
}

// publish makes the touches of a transaction known, before its commit: a reader that sees the commit finds them.
func (t *touches) publish(commit int64) {
	if len(t.pending) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.pending {
		p := &t.pending[i]
		p.touch.commit = commit
		p.table.rows = append(p.table.rows, p.touch)
		p.table.bytes += p.touch.size()
	}
}

// withdraw takes the touches back after the commit has failed.
func (t *touches) withdraw(commit int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, table := range t.following {
		for n := len(table.rows); n > 0 && table.rows[n-1].commit >= commit; n-- {
			table.bytes -= table.rows[n-1].size()
			table.rows[n-1] = touch{}
			table.rows = table.rows[:n-1]
		}
	}
	t.pending = t.pending[:0]
}

// done is called after a commit and before anyone is answered.
func (t *touches) done(commit int64) {
	for i := range t.pending {
		t.pending[i].table.last.Store(commit)
	}
	t.committed.Store(commit)
	for i := range t.pending {
		if table := t.pending[i].table; len(table.rows) > maxTouches || table.bytes > maxTouchBytes {
			t.mu.Lock()
			table.forgetHalf()
			t.mu.Unlock()
		}
	}
	clear(t.pending)
	t.pending = t.pending[:0]
}

// forgetHalf forgets the older half, in whole commits.
func (t *touchedTable) forgetHalf() {
	cut := len(t.rows) / 2
	t.since = t.rows[cut].commit
	for cut < len(t.rows) && t.rows[cut].commit == t.since {
		cut++
	}
	t.rows = slices.Clone(t.rows[cut:])
	t.bytes = 0
	for i := range t.rows {
		t.bytes += t.rows[i].size()
	}
}

func (t *touch) size() int {
	n := touchBytes
	for _, values := range [][]any{t.before, t.after} {
		for _, v := range values {
			n += 16
			if s, ok := v.(string); ok {
				n += len(s)
			}
		}
	}
	return n
}

// between returns the touches of commits after the first number, up to the second. It returns false when they are not all known.
// The caller holds the lock.
func (t *touchedTable) between(after, until int64) ([]touch, bool) {
	if !t.adopted || after < t.since {
		return nil, false
	}
	first := sort.Search(len(t.rows), func(i int) bool { return t.rows[i].commit > after })
	end := sort.Search(len(t.rows), func(i int) bool { return t.rows[i].commit > until })
	return t.rows[first:end:end], true
}

// maxWatchedKeys bounds the keys of one commit. A commit that changes more rows of a table counts as a change of all of them.
const maxWatchedKeys = 1 << 12

// watches informs caches of the rows that commits change.
type watches struct {
	mu      sync.Mutex
	open    bool        // a transaction is open
	all     []*rowWatch // replaced, never changed
	waiting []*rowWatch // until the open transaction ends

	current []*rowWatch // of the open transaction; belongs to the writer
}

// rowWatch is a registered watch. Its fields belong to the writer.
type rowWatch struct {
	engine.RowWatch
	column int // position of the key in the table
	keys   []string
	many   bool // there are more keys than are noted, or one is no text
	begun  bool // Begin was called without End
}

// selectHasRows finds tables with row numbers, which are those whose changes the connection reports.
const selectHasRows = `SELECT 1 FROM pragma_table_list WHERE name = $1 AND schema = 'main' AND type = 'table' AND wr = 0`

// WatchRows registers a watch.
func (e *Engine) WatchRows(ctx context.Context, w engine.RowWatch) error {
	columns, err := e.plans.columnsOf(ctx, e, w.Table)
	if err != nil {
		return err
	}
	var one int
	err = query.NewRow(ctx, e, selectHasRows, []any{w.Table}).Scan(&one)
	column := slices.Index(columns, w.Key)
	if errors.Is(err, engine.ErrNotFound) || err == nil && column < 0 {
		return fmt.Errorf("changes of the table %s cannot be followed by %s", w.Table, w.Key)
	}
	if err == nil {
		e.watches.add(&rowWatch{RowWatch: w, column: column})
	}
	return err
}

// add registers a watch. It is complete at once when no transaction is open, and otherwise when that has ended.
func (w *watches) add(one *rowWatch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open {
		w.waiting = append(w.waiting, one)
		return
	}
	w.complete(one)
}

// complete makes a watch part of the next transaction. The caller holds the lock.
func (w *watches) complete(one *rowWatch) {
	w.all = append(w.all[:len(w.all):len(w.all)], one)
	one.End()
}

// begin is called before a transaction begins.
func (w *watches) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open, w.current = true, w.all
}

// note is called before each change of a row.
func (w *watches) note(r *binding.RowChange) {
	if r.Inserts {
		return
	}
	for _, one := range w.current {
		if one.Table == r.Table {
			one.note(r)
		}
	}
}

func (w *rowWatch) note(r *binding.RowChange) {
	if key, ok := r.Old(w.column).(string); ok && len(w.keys) < maxWatchedKeys {
		w.keys = append(w.keys, key)
	} else {
		w.many = true
	}
}

// committing is called before the commit of the transaction.
func (w *watches) committing() {
	for _, one := range w.current {
		switch {
		case one.many:
			one.begun = true
			one.Begin(nil)
		case len(one.keys) > 0:
			one.begun = true
			one.Begin(one.keys)
		}
	}
}

// end is called when the transaction was committed or undone, before a caller learns of it. A second call does nothing.
func (w *watches) end() {
	for _, one := range w.current {
		if one.begun {
			one.End()
		}
		clear(one.keys)
		one.keys, one.many, one.begun = one.keys[:0], false, false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open, w.current = false, nil
	for _, one := range w.waiting {
		w.complete(one)
	}
	w.waiting = nil
}
