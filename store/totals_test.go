package store_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"kontor/store"
	"kontor/store/storetest"
)

const createCounted = `CREATE TABLE counted (id TEXT NOT NULL PRIMARY KEY, owner TEXT NOT NULL, number BIGINT NOT NULL)`

func openCounted(t *testing.T) *store.DB {
	t.Helper()
	db := storetest.Open(t)
	change(t, db, createCounted)
	return db
}

func change(t *testing.T, db *store.DB, sql string, args ...any) {
	t.Helper()
	if err := db.InTx(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(t.Context(), sql, args...)
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

func countingOf(owner string) *store.Counting {
	return &store.Counting{
		SQL: `SELECT NULL AS value, count(*) AS rows FROM counted WHERE owner = $1`, Args: []any{owner},
		Rows: []store.KeyedTable{{Table: "counted", Key: "id"}},
		Only: func(context.Context) ([]store.Alternatives, error) {
			return []store.Alternatives{{Equal: []store.Equal{{Column: "owner", Value: owner}}}}, nil
		},
	}
}

func expectRows(t *testing.T, db *store.DB, owner string, want int64) {
	t.Helper()
	if got, err := db.CountRows(t.Context(), owner, countingOf(owner)); err != nil || got != want {
		t.Errorf("%s has %d rows, %v; want %d", owner, got, err, want)
	}
}

// A caller that has committed rows gets a total with them, whatever others count and write at the same time.
func TestCount_NeverOlderThanTheCallersOwnCommit(t *testing.T) {
	db := openCounted(t)
	ctx := t.Context()
	const writers, rounds = 4, 60
	var committed atomic.Int64
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range rounds {
				err := db.InTx(ctx, func(tx *store.Tx) error {
					_, err := tx.Exec(ctx, `INSERT INTO counted (id, owner, number) VALUES ($1, 'anna', 1)`, fmt.Sprint(w, "-", i))
					if err == nil && i%7 == 6 {
						return errors.New("undone")
					}
					return err
				})
				if err == nil {
					committed.Add(1)
				}
				before := committed.Load()
				n, err := db.CountRows(ctx, "anna", countingOf("anna"))
				if err != nil || n < before || n > writers*rounds {
					t.Errorf("%d rows, %v; %d were committed before", n, err, before)
				}
			}
		})
	}
	all.Wait()
	expectRows(t, db, "anna", committed.Load())
}

// More changes than are kept, changes of the key, and a total that asks for further columns are counted right.
func TestCount_BeyondWhatIsKept(t *testing.T) {
	db := openCounted(t)
	expectRows(t, db, "anna", 0)
	change(t, db, `INSERT INTO counted (id, owner, number) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
		SELECT CAST(i AS TEXT), CASE WHEN i % 2 = 0 THEN 'anna' ELSE 'bob' END, i FROM n`)
	expectRows(t, db, "anna", 10_000)
	expectRows(t, db, "bob", 10_000)
	change(t, db, `UPDATE counted SET owner = 'anna' WHERE number <= 10`)
	expectRows(t, db, "anna", 10_005)
	high := &store.Counting{SQL: `SELECT NULL AS value, count(*) AS rows FROM counted WHERE number > 19990`, Rows: []store.KeyedTable{{Table: "counted", Key: "id"}}}
	for i := range 3 {
		if n, err := db.CountRows(t.Context(), "high", high); err != nil || n != int64(10-i) {
			t.Errorf("%d rows are high, %v; want %d", n, err, 10-i)
		}
		change(t, db, `UPDATE counted SET number = 0, id = 'moved ' || id WHERE number = $1`, 20_000-i)
	}
	expectRows(t, db, "anna", 10_005)
	change(t, db, `DELETE FROM counted`)
	expectRows(t, db, "anna", 0)
}

// A total of tables whose rows are not followed is counted again when one of them has changed, and only then.
func TestCount_OfTablesAlone(t *testing.T) {
	db := openCounted(t)
	c := &store.Counting{SQL: `SELECT NULL AS value, count(*) AS rows FROM counted`, Tables: []string{"counted"}}
	for want := range int64(3) {
		for range 2 {
			if got, err := db.CountRows(t.Context(), "all", c); err != nil || got != want {
				t.Errorf("%d rows, %v; want %d", got, err, want)
			}
		}
		change(t, db, `INSERT INTO counted (id, owner, number) VALUES ($1, 'anna', 1)`, fmt.Sprint(want))
	}
	before, err := db.CountRows(t.Context(), "all", c)
	if err != nil {
		t.Fatal(err)
	}
	change(t, db, `UPDATE roles SET name = name`)
	remembered := &store.Counting{SQL: `SELECT`, Tables: c.Tables} // fails when it is run
	if got, err := db.CountRows(t.Context(), "all", remembered); err != nil || got != before {
		t.Errorf("after a change of another table: %d, %v; want the remembered %d", got, err, before)
	}
}

func TestCount_KeepsNoError(t *testing.T) {
	db := openCounted(t)
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := db.CountRows(ended, "anna", countingOf("anna")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	change(t, db, `INSERT INTO counted (id, owner, number) VALUES ('1', 'anna', 1)`)
	expectRows(t, db, "anna", 1)
	groups := &store.Counting{SQL: `SELECT number AS value, count(*) AS rows FROM counted GROUP BY 1`, MaxGroups: 2, Rows: []store.KeyedTable{{Table: "counted", Key: "id"}}}
	for i := 2; i < 5; i++ {
		found, err := db.Count(t.Context(), "groups", groups)
		if (i < 4) != (err == nil) || (i == 4) != errors.Is(err, store.ErrTooManyGroups) {
			t.Errorf("%v, %v with %d values", found, err, i-1)
		}
		change(t, db, `INSERT INTO counted (id, owner, number) VALUES ($1, 'anna', $2)`, fmt.Sprint(i), i)
	}
}
