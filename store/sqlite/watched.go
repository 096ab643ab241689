package sqlite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"kontor/store/engine"
	"kontor/store/query"
	"kontor/store/sqlite/internal/binding"
)

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
