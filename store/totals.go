package store

import (
	"context"
	"errors"
	"strconv"
	"sync"

	"kontor/store/engine"
	"kontor/store/query"
)

type (
	// Counting is a statement that counts rows, whose result survives commits.
	Counting = engine.Counting
	// KeyedTable is a table whose rows are counted.
	KeyedTable = engine.KeyedTable
	// Alternatives is a condition of a Counting.
	Alternatives = engine.Alternatives
	// Equal is a part of Alternatives.
	Equal = engine.Equal
	// Group is a counted value with its number of rows.
	Group = engine.Group
)

const (
	// totalsLimit bounds the remembered totals. Beyond it, those that were not asked for lately are forgotten.
	totalsLimit = 4096
	// maxGroups bounds the groups of a total that is remembered.
	maxGroups = 1000
)

// Words returns the words of a statement in lower case, without comments and quoted values.
func Words(sql string) []string { return engine.Words(sql) }

// ErrTooManyGroups is returned by [DB.Count] when there are, or lately were, more groups than Counting.MaxGroups.
var ErrTooManyGroups = errors.New("too many groups")

// totals remembers what was counted.
type totals struct {
	mu      sync.Mutex
	entries map[string]*total
}

// total is a count that is known as of a commit, or being found out.
type total struct {
	mu      sync.Mutex
	known   bool
	at      int64  // the commit whose state was counted
	version uint64 // of the tables that are not followed, taken before counting
	groups  []Group
	tooMany bool          // there were more groups than Counting.MaxGroups
	running chan struct{} // closed when the present counting ends; nil: there is none
	used    bool          // since the last clearing; guarded by totals.mu
}

// Count returns the groups that c counts, in no order and without empty ones. They are remembered under the key, which must
// stand for the statement with its arguments, and kept right while commits touch the tables: only touched rows are counted
// again. A caller never gets a count that is older than a commit which was acknowledged before the call. Concurrent callers
// share one counting. The caller must not change the groups.
//
// On an engine that does not follow touched rows, the count is forgotten when one of the tables changes. More than 1000
// groups are not remembered.
func (db *DB) Count(ctx context.Context, key string, c *Counting) ([]Group, error) {
	e := db.totals.entry(key)
	counter, follows := db.engine.(engine.Counter)
	needed := int64(0)
	if follows {
		needed = counter.Committed()
	}
	version, err := db.versionOf(ctx, c, follows)
	if err != nil {
		return nil, err
	}
	for {
		e.mu.Lock()
		if e.tooMany {
			e.mu.Unlock()
			return nil, ErrTooManyGroups
		}
		if e.known && e.version >= version && (!follows || e.at >= needed || counter.Unchanged(c, e.at)) {
			groups := e.groups
			e.mu.Unlock()
			return groups, nil
		}
		if running := e.running; running != nil {
			e.mu.Unlock()
			select {
			case <-running:
				continue
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		e.running = make(chan struct{})
		found := total{known: e.known && e.version >= version, at: e.at, version: version, groups: e.groups}
		e.mu.Unlock()
		return db.bringUpToDate(ctx, e, &found, c)
	}
}

// CountRows returns the number of rows that c counts, without groups.
func (db *DB) CountRows(ctx context.Context, key string, c *Counting) (int64, error) {
	groups, err := db.Count(ctx, key, c)
	if err != nil || len(groups) == 0 {
		return 0, err
	}
	return groups[0].Rows, nil
}

// versionOf returns the version of the tables that the engine does not follow.
func (db *DB) versionOf(ctx context.Context, c *Counting, follows bool) (uint64, error) {
	tables := c.Tables
	if !follows {
		tables = tables[:len(tables):len(tables)]
		for _, t := range c.Rows {
			tables = append(tables, t.Table)
		}
	}
	if len(tables) == 0 {
		return 0, nil
	}
	return db.Version(ctx, tables...)
}

// bringUpToDate counts what has changed since found, or everything, and stores the result. If it fails, e keeps what it holds.
func (db *DB) bringUpToDate(ctx context.Context, e, found *total, c *Counting) (groups []Group, err error) {
	completed := false
	defer func() { // also after a panic
		e.mu.Lock()
		defer e.mu.Unlock()
		if completed && errors.Is(err, ErrTooManyGroups) {
			e.tooMany = true
		}
		if completed && err == nil {
			e.known, e.at, e.version, e.groups = len(found.groups) <= maxGroups, found.at, found.version, found.groups
			if !e.known {
				e.groups = nil
			}
		}
		close(e.running)
		e.running = nil
	}()
	err = db.count(ctx, found, c)
	completed = true
	return found.groups, err
}

func (db *DB) count(ctx context.Context, found *total, c *Counting) (err error) {
	counter, follows := db.engine.(engine.Counter)
	if !follows {
		if found.groups, err = db.countPlainly(ctx, c); err == nil {
			err = bounded(found, c)
		}
		return err
	}
	if found.known {
		changes, now, known, err := counter.Difference(ctx, c, found.at)
		if err != nil {
			return err
		}
		if known {
			groups, ok := added(found.groups, changes)
			// Touched rows were counted with what the other tables hold now, and all others with what they held before.
			if version, err := db.versionOf(ctx, c, true); err != nil {
				return err
			} else if ok && version == found.version {
				found.groups, found.at = groups, now
				return bounded(found, c)
			} else if found.version = version; ok {
				return db.countAll(ctx, counter, found, c)
			}
			db.log.Error("a remembered total became negative and is counted again", "statement", c.SQL)
		}
	}
	return db.countAll(ctx, counter, found, c)
}

func (db *DB) countAll(ctx context.Context, counter engine.Counter, found *total, c *Counting) error {
	groups, at, err := counter.Count(ctx, c)
	if err != nil {
		return err
	}
	found.groups, found.at = nonEmpty(groups), at
	return bounded(found, c)
}

// bounded returns ErrTooManyGroups for more groups than c allows.
func bounded(found *total, c *Counting) error {
	if c.MaxGroups > 0 && len(found.groups) > c.MaxGroups {
		return ErrTooManyGroups
	}
	return nil
}

// countPlainly runs the statement.
func (db *DB) countPlainly(ctx context.Context, c *Counting) (groups []Group, err error) {
	sql, args := c.SQL, c.Args
	if c.Whole != "" {
		sql, args = c.Whole, c.WholeArgs
	}
	if c.MaxGroups > 0 {
		sql += " LIMIT " + strconv.Itoa(c.MaxGroups+1)
	}
	groups, err = query.All(ctx, db, func(row Scanner) (g Group, err error) {
		err = row.Scan(&g.Value, &g.Rows)
		return g, err
	}, sql, args...)
	return nonEmpty(groups), err
}

// added returns the groups with the changes. It returns false when a number would be negative, which means that the statement
// is not what Counting promises.
func added(groups, changes []Group) ([]Group, bool) {
	if len(changes) == 0 {
		return groups, true
	}
	rows := make(map[any]int64, len(groups)+len(changes))
	sum := make([]Group, 0, len(groups)+len(changes))
	for _, list := range [][]Group{groups, changes} {
		for _, g := range list {
			if _, known := rows[g.Value]; !known {
				sum = append(sum, Group{Value: g.Value})
			}
			rows[g.Value] += g.Rows
		}
	}
	for i := range sum {
		if sum[i].Rows = rows[sum[i].Value]; sum[i].Rows < 0 {
			return nil, false
		}
	}
	return nonEmpty(sum), true
}

func nonEmpty(groups []Group) []Group {
	kept := groups[:0:len(groups)]
	for _, g := range groups {
		if g.Rows != 0 {
			kept = append(kept, g)
		}
	}
	return kept
}

// entry returns the entry of a key, or a new one.
func (t *totals) entry(key string) *total {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.entries[key]
	if e == nil {
		if len(t.entries) >= totalsLimit {
			t.forget()
		}
		if t.entries == nil {
			t.entries = map[string]*total{}
		}
		e = &total{}
		t.entries[key] = e
	}
	e.used = true
	return e
}

// forget forgets the entries that were not used since the last call, or half of all.
func (t *totals) forget() {
	for key, e := range t.entries {
		if !e.used {
			delete(t.entries, key)
		}
		e.used = false
	}
	for key := range t.entries {
		if len(t.entries) <= totalsLimit/2 {
			return
		}
		delete(t.entries, key)
	}
}
