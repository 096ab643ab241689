package store

import (
	"context"

	"kontor/store/engine"
	"kontor/store/query"
)

// CountValues returns the number of different values that c counts; NULL is one. It is remembered as [DB.Count] remembers groups, with
// the number of rows of each value: a commit costs what it has touched. It returns ErrTooManyGroups for more than a million values, and
// on an engine that does not follow touched rows.
func (db *DB) CountValues(ctx context.Context, key string, c *Counting) (int64, error) {
	if _, follows := db.engine.(engine.Counter); !follows {
		return 0, ErrTooManyGroups
	}
	groups, err := db.counted(ctx, db.totals.entry(key+" values"), c, db.countValues)
	if err != nil {
		return 0, err
	}
	return countedRows(groups), nil
}

// countValues counts the values of rows that have changed since found, or of all rows. The number of values becomes the only group.
func (db *DB) countValues(ctx context.Context, found *total, c *Counting) error {
	counter := db.engine.(engine.Counter) //nolint:forcetypeassert // CountValues has looked
	if found.different = true; found.known && found.values != nil && found.values.Valid() {
		changes, now, known, err := counter.Difference(ctx, c, found.at)
		if err != nil {
			return err
		}
		version, err := db.versionOf(ctx, c, true)
		if err != nil {
			return err
		}
		if known && version == found.version {
			if found.apply(changes) {
				found.at = now
				return nil
			}
			db.log.Error("the remembered values of a field became negative or too many and are counted again", "statement", c.SQL)
		}
		found.version = version
	}
	values, at, err := counter.CountValues(ctx, c, maxValues)
	if err != nil {
		return err
	}
	if values.Full() {
		return ErrTooManyGroups
	}
	found.values, found.at, found.groups = values, at, []Group{{Rows: int64(values.Len())}}
	db.totals.hold(found)
	return nil
}

// apply adds changes to the values. After false they are wrong.
func (t *total) apply(changes []Group) bool {
	sums := make(map[any]int64, len(changes))
	for _, g := range changes {
		sums[g.Value] += g.Rows
	}
	for value, rows := range sums {
		if rows != 0 && !t.values.Add(value, rows) {
			return false
		}
	}
	t.groups = []Group{{Rows: int64(t.values.Len())}}
	return true
}

// hold makes room for the values of a total: beyond maxAllValues, those of the others are forgotten. Their numbers stay until a commit
// changes them.
func (t *totals) hold(found *total) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.values += found.values.Len(); t.values <= maxAllValues {
		return
	}
	for _, e := range t.entries {
		e.mu.Lock()
		if e.running == nil {
			e.values = nil
		}
		e.mu.Unlock()
	}
	t.values = found.values.Len()
}

// CountDifferent returns the number of different values of a statement with the column value. NULL counts as one. It is not remembered.
func (db *DB) CountDifferent(ctx context.Context, sql string, args []any) (n int64, err error) {
	if counter, follows := db.engine.(engine.Counter); follows {
		values, _, err := counter.CountValues(ctx, &Counting{Each: sql, Args: args}, 0)
		if err != nil {
			return 0, err
		}
		return int64(values.Len()), nil
	}
	sql = "SELECT count(*) FROM (SELECT DISTINCT value FROM (" + sql + ") AS each) AS found"
	return n, query.NewRow(ctx, db.engine, sql, args).Scan(&n)
}
