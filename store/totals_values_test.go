package store_test

import (
	"errors"
	"testing"

	"kontor/store"
	"kontor/store/storetest"
)

// valuesOf counts the numbers of an owner.
func valuesOf(owner string) *store.Counting {
	c := countingOf(owner)
	c.Each = `SELECT number AS value FROM counted WHERE owner = $1`
	c.SQL = `SELECT number AS value, count(*) AS rows FROM counted WHERE owner = $1 GROUP BY 1`
	return c
}

func expectValues(t *testing.T, db *store.DB, want int64) {
	t.Helper()
	if got, err := db.CountValues(t.Context(), "values of anna", valuesOf("anna")); err != nil || got != want {
		t.Errorf("%d values, %v; want %d", got, err, want)
	}
}

// The number of many different values follows each commit, and only rows that were touched are read again.
func TestCountValues_FollowsCommits(t *testing.T) {
	if storetest.SQLiteOnly(t, "only SQLite follows touched rows") {
		return
	}
	db := openCounted(t)
	change(t, db, `INSERT INTO counted (id, owner, number) WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000)
		SELECT 'row ' || i, 'anna', i / 2 FROM n`)
	expectValues(t, db, 2001)
	for _, step := range []struct {
		sql  string
		want int64
	}{
		{`DELETE FROM counted WHERE id = 'row 10'`, 2001},            // another row has its value
		{`DELETE FROM counted WHERE number = 5`, 2000},               // the last one of its value
		{`UPDATE counted SET number = 7 WHERE id = 'row 1'`, 1999},   // the only one of 0
		{`UPDATE counted SET number = -3 WHERE number = 9`, 1999},    // two rows with one value instead of another
		{`UPDATE counted SET owner = 'bob' WHERE number < 20`, 1981}, // rows leave
		{`UPDATE counted SET owner = 'anna', number = number + 90000 WHERE owner = 'bob'`, 1999},
		{`INSERT INTO counted (id, owner, number) VALUES ('new', 'anna', 12345), ('other', 'bob', 54321)`, 2000},
	} {
		change(t, db, step.sql)
		expectValues(t, db, step.want)
	}
	// A statement that cannot count all rows shows that only touched ones are read.
	unusable := valuesOf("anna")
	unusable.Each = `SELECT number AS value FROM missing WHERE owner = $1`
	change(t, db, `INSERT INTO counted (id, owner, number) VALUES ('newer', 'anna', 99999)`)
	if n, err := db.CountValues(t.Context(), "values of anna", unusable); err != nil || n != 2001 {
		t.Errorf("%d values, %v; want 2001", n, err)
	}
	if _, err := db.CountValues(t.Context(), "of no table", unusable); err == nil {
		t.Error("a statement without its table was counted")
	}
	expectValues(t, db, 2001)
}

// A value of text is not that of a number, and NULL is one.
func TestCountValues_TellsTypesApart(t *testing.T) {
	if storetest.SQLiteOnly(t, "only SQLite follows touched rows, and mixes types") {
		return
	}
	db := openCounted(t)
	change(t, db, `CREATE TABLE mixed (id TEXT NOT NULL PRIMARY KEY, value)`)
	change(t, db, `INSERT INTO mixed (id, value) VALUES ('a', 1), ('b', '1'), ('c', NULL), ('d', NULL), ('e', ''), ('f', 0), ('g', '1')`)
	c := &store.Counting{SQL: `SELECT value AS value, count(*) AS rows FROM mixed GROUP BY 1`, Each: `SELECT value AS value FROM mixed`, Rows: []store.KeyedTable{{Table: "mixed", Key: "id"}}}
	expect := func(want int64) {
		t.Helper()
		if n, err := db.CountValues(t.Context(), "mixed", c); err != nil || n != want {
			t.Errorf("%d values, %v; want %d", n, err, want)
		}
		if n, err := db.CountDifferent(t.Context(), c.Each, nil); err != nil || n != want {
			t.Errorf("%d different values, %v; want %d", n, err, want)
		}
		if groups, err := db.Count(t.Context(), "groups", c); err != nil || int64(len(groups)) != want {
			t.Errorf("groups %v, %v; want %d", groups, err, want)
		}
	}
	expect(5)
	change(t, db, `DELETE FROM mixed WHERE id = 'd'`)
	expect(5)
	change(t, db, `DELETE FROM mixed WHERE value IS NULL`)
	expect(4)
	change(t, db, `UPDATE mixed SET value = 1 WHERE value = '1'`)
	expect(3)
}

// A number of values is kept while no process runs, and counted again after the first change.
func TestCountValues_AreKept(t *testing.T) {
	dir := keptDirectory(t)
	if dir == "" {
		return
	}
	db := openKept(t, dir)
	expectValues(t, db, 100_000)
	closeKept(t, db)
	db = openKept(t, dir)
	unusable := valuesOf("anna")
	unusable.Each = `SELECT number AS value FROM missing WHERE owner = $1`
	if n, err := db.CountValues(t.Context(), "values of anna", unusable); err != nil || n != 100_000 {
		t.Errorf("the kept number is %d, %v", n, err)
	}
	change(t, db, `INSERT INTO counted (id, owner, number) VALUES ('more', 'anna', -1)`)
	expectValues(t, db, 100_001)
	closeKept(t, db)
}

// An engine that does not follow rows says so, and its caller counts.
func TestCountValues_OnAnEngineThatDoesNotFollow(t *testing.T) {
	db := openCounted(t)
	change(t, db, `INSERT INTO counted (id, owner, number) VALUES ('1', 'anna', 1), ('2', 'anna', 1), ('3', 'anna', 2)`)
	n, err := db.CountValues(t.Context(), "values of anna", valuesOf("anna"))
	if storetest.OnPostgreSQL() {
		if !errors.Is(err, store.ErrTooManyGroups) {
			t.Errorf("%d values, %v", n, err)
		}
		if n, err := db.CountDifferent(t.Context(), valuesOf("anna").Each, []any{"anna"}); err != nil || n != 2 {
			t.Errorf("%d different values, %v", n, err)
		}
	} else if err != nil || n != 2 {
		t.Errorf("%d values, %v", n, err)
	}
}
