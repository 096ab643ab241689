package store_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"kontor/store"
	"kontor/store/storetest"
	"kontor/store/testenv"
)

// cached is a cache of the numbers of counted rows, with how often a row was read.
type cached struct {
	*store.RowCache[int64]
	t  *testing.T
	db *store.DB
}

func newCached(t *testing.T, db *store.DB) cached {
	t.Helper()
	return cached{store.NewRowCache[int64](db, "counted", "id"), t, db}
}

// openWatched returns a cache of a new database, unless the rows of this engine are not watched.
func openWatched(t *testing.T) (c cached, ok bool) {
	t.Helper()
	if storetest.SQLiteOnly(t, "rows are not watched on PostgreSQL") {
		return cached{}, false
	}
	return newCached(t, openCounted(t)), true
}

// add inserts a row with a number.
func (c cached) add(id string, number int64) {
	c.t.Helper()
	change(c.t, c.db, `INSERT INTO counted (id, owner, number) VALUES ($1, 'anna', $2)`, id, number)
}

func (c cached) read(id string) (number int64) {
	c.t.Helper()
	if err := c.db.QueryRow(c.t.Context(), `SELECT number FROM counted WHERE id = $1`, id).Scan(&number); err != nil {
		c.t.Error(err)
	}
	return number
}

// load returns the number of a row, and remembers it.
func (c cached) load(id string) int64 {
	c.t.Helper()
	if number, ok := c.Get(id); ok {
		return number
	}
	began := c.Begin(c.t.Context())
	number := c.read(id)
	c.Put(began, id, number, 8)
	return number
}

func (c cached) known(id string) bool {
	_, ok := c.Get(id)
	return ok
}

func TestRowCache_ForgetsChangedRowsOnly(t *testing.T) {
	c, ok := openWatched(t)
	if !ok {
		return
	}
	db := c.db
	for i := range 4 {
		c.add(fmt.Sprint(i), 1)
		c.load(fmt.Sprint(i))
	}
	change(t, db, `UPDATE counted SET number = 2 WHERE id = '1'`)
	change(t, db, `DELETE FROM counted WHERE id = '2'`)
	c.add("new", 1)
	for id, want := range map[string]bool{"0": true, "1": false, "2": false, "3": true, "new": false} {
		if got := c.known(id); got != want {
			t.Errorf("row %s is known: %v, want %v", id, got, want)
		}
	}
	if got := c.load("1"); got != 2 {
		t.Errorf("got %d after the update", got)
	}
	change(t, db, `UPDATE counted SET id = '5' WHERE id = '3'`)
	if c.known("3") || c.load("5") != 1 {
		t.Error("a row that has another key is known by the former one")
	}
	undone := errors.New("undone")
	if err := db.InTx(t.Context(), func(tx *store.Tx) error {
		if _, err := tx.Exec(t.Context(), `UPDATE counted SET number = 9`); err != nil {
			return err
		}
		return undone
	}); !errors.Is(err, undone) {
		t.Fatal(err)
	}
	if got := c.load("0"); got != 1 {
		t.Errorf("got %d, which was never committed", got)
	}
}

// A value that was read before a commit must not be remembered after it.
func TestRowCache_DropsWhatWasReadBeforeACommit(t *testing.T) {
	c, ok := openWatched(t)
	if !ok {
		return
	}
	db := c.db
	c.add("a", 1)
	c.add("b", 1)
	began := c.Begin(t.Context())
	old := c.read("a")
	change(t, db, `UPDATE counted SET number = 2 WHERE id = 'a'`)
	c.Put(began, "a", old, 8)
	if c.known("a") || c.load("a") != 2 {
		t.Error("the number from before the commit is remembered")
	}
	if err := db.InTx(t.Context(), func(tx *store.Tx) error { // a transaction that is open does not concern readers
		_, err := tx.Exec(t.Context(), `UPDATE counted SET number = 3 WHERE id = 'a'`)
		if number, ok := c.Get("a"); !ok || number != 2 {
			t.Error("an uncommitted change is visible")
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if got := c.load("a"); got != 3 {
		t.Errorf("got %d", got)
	}
}

// A cache whose first use falls into an open transaction does not miss the changes of that transaction.
func TestRowCache_BeginsWhileATransactionIsOpen(t *testing.T) {
	if storetest.SQLiteOnly(t, "rows are not watched on PostgreSQL") {
		return
	}
	db := openCounted(t)
	change(t, db, `INSERT INTO counted (id, owner, number) VALUES ('a', 'anna', 1)`)
	c := newCached(t, db)
	if err := db.InTx(t.Context(), func(tx *store.Tx) error {
		if _, err := tx.Exec(t.Context(), `UPDATE counted SET number = 2 WHERE id = 'a'`); err != nil {
			return err
		}
		loaded := make(chan struct{})
		go func() {
			defer close(loaded)
			c.load("a")
		}()
		<-loaded
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if got := c.load("a"); got != 2 {
		t.Errorf("got %d, want what was committed", got)
	}
	if c.load("a"); !c.known("a") {
		t.Error("nothing is remembered after the transaction")
	}
}

func TestRowCache_ManyChangesAtOnceForgetAll(t *testing.T) {
	c, ok := openWatched(t)
	if !ok {
		return
	}
	db := c.db
	change(t, db, `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
		INSERT INTO counted (id, owner, number) SELECT CAST(i AS TEXT), 'anna', i FROM n`)
	for i := 1; i <= 5000; i += 7 {
		c.load(fmt.Sprint(i))
	}
	change(t, db, `UPDATE counted SET number = -number`)
	if c.Bytes() != 0 {
		t.Errorf("%d bytes are left", c.Bytes())
	}
	for i := 1; i <= 5000; i += 7 {
		if got := c.load(fmt.Sprint(i)); got != int64(-i) {
			t.Fatalf("row %d is %d", i, got)
		}
	}
}

func TestRowCache_IsBounded(t *testing.T) {
	c, ok := openWatched(t)
	if !ok {
		return
	}
	began := c.Begin(t.Context())
	const size = 10_000
	for i := range 2 * store.RowCacheBytes / size {
		c.Put(began, fmt.Sprint(i), 1, size)
		c.Get(fmt.Sprint(i))
		c.Get("0")
	}
	if bytes := c.Bytes(); bytes > store.RowCacheBytes || bytes < store.RowCacheBytes/2 {
		t.Errorf("%d bytes, want at most %d and more than half of that", bytes, store.RowCacheBytes)
	}
	c.Put(began, "large", 1, 1<<20)
	if c.known("large") {
		t.Error("a large value displaces others")
	}
}

func TestRowCache_RemembersNothingOfWhatCannotBeWatched(t *testing.T) {
	db := openCounted(t)
	change(t, db, `CREATE VIEW seen AS SELECT id, number FROM counted`)
	for _, at := range [][2]string{{"seen", "id"}, {"counted", "nothing"}, {"nothing", "id"}} {
		c := store.NewRowCache[int64](db, at[0], at[1])
		c.Put(c.Begin(t.Context()), "a", 1, 8)
		if _, ok := c.Get("a"); ok {
			t.Errorf("%s by %s is remembered", at[0], at[1])
		}
	}
}

// Values of rows whose ids a statement has found are those that the statement would have read, if Holds reports so.
func TestRowCache_HoldsOnlyWithoutACommitInBetween(t *testing.T) {
	c, ok := openWatched(t)
	if !ok {
		return
	}
	db := c.db
	c.add("a", 1)
	c.add("b", 1)
	c.load("a")
	began := c.Begin(t.Context())
	if number, ok := c.Lookup([]byte("a")); !ok || number != 1 || !c.Holds(began) {
		t.Error("a known number is not current without a commit")
	}
	c.add("c", 1)
	if !c.Holds(began) {
		t.Error("a new row concerns the known ones")
	}
	change(t, db, `UPDATE counted SET number = 2 WHERE id = 'b'`)
	if c.Holds(began) || !c.Holds(c.Begin(t.Context())) {
		t.Error("a number may be newer than what was read before the commit")
	}
}

// Readers never see a number that is lower than the last acknowledged one, nor one that goes back.
func TestRowCache_NeverOlderThanAnAcknowledgedCommit(t *testing.T) {
	db := openCounted(t)
	c := newCached(t, db)
	const rows, rounds = 3, 120
	var acknowledged [rows]atomic.Int64
	for i := range rows {
		c.add(fmt.Sprint(i), 0)
	}
	var writing, all sync.WaitGroup
	var ended atomic.Bool
	for i := range rows {
		writing.Go(func() {
			for n := int64(1); n <= rounds; n++ {
				err := db.InTx(t.Context(), func(tx *store.Tx) error {
					_, err := tx.Exec(t.Context(), `UPDATE counted SET number = $2 WHERE id = $1`, fmt.Sprint(i), n)
					if err == nil && n%10 == 3 {
						return errors.New("undone")
					}
					return err
				})
				if err == nil {
					acknowledged[i].Store(n)
				}
			}
		})
	}
	for range 4 {
		all.Go(func() {
			var last [rows]int64
			for !ended.Load() {
				for i := range rows {
					least := acknowledged[i].Load()
					got := c.load(fmt.Sprint(i))
					if got < least || got < last[i] {
						t.Errorf("row %d is %d after %d was acknowledged and %d was read", i, got, least, last[i])
						return
					}
					last[i] = got
				}
			}
		})
	}
	writing.Wait()
	ended.Store(true)
	all.Wait()
}

// While rows change all the time, numbers that are in memory and hold are those of one state of the database.
func TestRowCache_WhatHoldsIsOneState(t *testing.T) {
	c, ok := openWatched(t)
	if !ok {
		return
	}
	db := c.db
	const rows, rounds = 4, 100
	for i := range rows {
		c.add(fmt.Sprint(i), 0)
	}
	var ended atomic.Bool
	var held atomic.Int64
	var reading sync.WaitGroup
	for range 2 {
		reading.Go(func() {
			for !ended.Load() {
				began := c.Begin(t.Context())
				found, known := map[string]int64{}, map[string]int64{}
				list, err := db.Query(t.Context(), `SELECT id, number FROM counted`)
				if err != nil {
					t.Error(err)
					return
				}
				var id store.ReusedText
				var number int64
				for list.Next() {
					if err := list.Scan(&id, &number); err != nil {
						t.Error(err)
					}
					found[string(id)] = number
					if value, ok := c.Lookup(id); ok {
						known[string(id)] = value
					}
				}
				if c.Holds(began) {
					for id, value := range known {
						held.Add(1)
						if value != found[id] {
							t.Errorf("row %s is known as %d and was read as %d", id, value, found[id])
						}
					}
				}
				for i := range rows {
					c.load(fmt.Sprint(i))
				}
			}
		})
	}
	for n := range rounds {
		change(t, db, `UPDATE counted SET number = $2 WHERE id = $1`, fmt.Sprint(n%rows), n)
	}
	testenv.Wait(t, "numbers that hold", func() bool { return held.Load() > 0 || t.Failed() }) // nothing changes any more
	ended.Store(true)
	reading.Wait()
}
