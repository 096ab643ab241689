package store_test

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"kontor/store"
)

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
	for held.Load() == 0 && !t.Failed() {
		runtime.Gosched() // nothing changes any more
	}
	ended.Store(true)
	reading.Wait()
}
