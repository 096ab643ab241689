package store_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"kontor/store"
	"kontor/store/storetest"
)

const insertRole = `
	INSERT INTO roles (id, name, name_key, created_at, created_by, modified_at, modified_by)
	VALUES ($1, $2, $2, $3, $4, $3, $4)`

// fill inserts n roles and returns their ids.
func fill(b *testing.B, db *store.DB, n int) []string {
	b.Helper()
	ctx := b.Context()
	ids := make([]string, n)
	err := db.InTx(ctx, func(tx *store.Tx) error {
		for i := range ids {
			ids[i] = store.NewID()
			if _, err := tx.Exec(ctx, insertRole, ids[i], fmt.Sprint("role ", i), tx.Now(), store.NilID); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	for before := db.Stats().Checkpoints; db.Stats().Checkpoints == before; {
		runtime.Gosched() // until the rows are in the database file, as most rows are
	}
	return ids
}

// BenchmarkOpen opens a new database: directory, key, schema, connections.
func BenchmarkOpen(b *testing.B) {
	for b.Loop() {
		storetest.Open(b).Close()
	}
}

// BenchmarkPointRead reads one row of nine columns by its id.
func BenchmarkPointRead(b *testing.B) {
	db := storetest.Open(b)
	ids := fill(b, db, 10_000)
	ctx := context.Background()
	var next atomic.Int64
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		var r struct {
			id, name, description, createdBy, modifiedBy string
			builtin                                      bool
			createdAt, modifiedAt                        store.Time
			version                                      int64
		}
		for pb.Next() {
			err := db.QueryRow(ctx, `SELECT id, name, description, builtin, created_at, created_by, modified_at, modified_by, version
				FROM roles WHERE id = $1`, ids[int(next.Add(7919))%len(ids)]).
				Scan(&r.id, &r.name, &r.description, &r.builtin, &r.createdAt, &r.createdBy, &r.modifiedAt, &r.modifiedBy, &r.version)
			if err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkList reads a page of ten rows of nine columns.
func BenchmarkList(b *testing.B) {
	db := storetest.Open(b)
	fill(b, db, 10_000)
	ctx := context.Background()
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		var r struct {
			id, name, description, createdBy, modifiedBy string
			builtin                                      bool
			createdAt, modifiedAt                        store.Time
			version                                      int64
		}
		for pb.Next() {
			rows, err := db.Query(ctx, `SELECT id, name, description, builtin, created_at, created_by, modified_at, modified_by, version
				FROM roles ORDER BY id DESC LIMIT $1`, 10)
			if err != nil {
				b.Fatal(err)
			}
			for rows.Next() {
				if err := rows.Scan(&r.id, &r.name, &r.description, &r.builtin, &r.createdAt, &r.createdBy,
					&r.modifiedAt, &r.modifiedBy, &r.version); err != nil {
					b.Fatal(err)
				}
			}
			if err := rows.Err(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkWrite stores rows with their audit entries, durably, from 64 goroutines.
func BenchmarkWrite(b *testing.B) {
	db := storetest.Open(b)
	ctx := context.Background()
	var left atomic.Int64
	left.Store(int64(b.N))
	before := db.Stats()
	b.ReportAllocs()
	b.ResetTimer()
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				id := store.NewID()
				after := map[string]any{"id": id, "name": "role"}
				err := db.InTx(ctx, func(tx *store.Tx) error {
					if _, err := tx.Exec(ctx, insertRole, id, id, tx.Now(), store.NilID); err != nil {
						return err
					}
					tx.Audit(store.AuditEntry{Actor: store.NilID, Action: "roles.create", RecType: "roles", RecID: id, After: after})
					return nil
				})
				if err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	stats := db.Stats()
	b.ReportMetric(float64(stats.Commits-before.Commits)/float64(stats.Writes-before.Writes), "syncs/write")
}
