package store_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"kontor/store"
	"kontor/store/postgres/postgrestest"
	"kontor/store/storetest"
)

// BenchmarkEngines compares the engines in one run, on the same disk: SQLite, and PostgreSQL with one and with two nodes. PostgreSQL commits durably. The
// processor time is that of this process: without PostgreSQL's.
func BenchmarkEngines(b *testing.B) {
	server := postgrestest.Server(b, postgrestest.Options{Durable: true})
	engines := []struct {
		name string
		open func(b *testing.B) []*store.DB
	}{
		{"sqlite", func(b *testing.B) []*store.DB { return []*store.DB{openBench(b, store.Options{Dir: storetest.Dir(b)})} }},
		{"postgres", func(b *testing.B) []*store.DB { return openNodes(b, server, 1) }},
		{"postgres-2-nodes", func(b *testing.B) []*store.DB { return openNodes(b, server, 2) }},
		{"postgres-4-nodes", func(b *testing.B) []*store.DB { return openNodes(b, server, 4) }},
	}
	relaxed := postgrestest.Server(b, postgrestest.Options{})
	engines = append(engines, struct {
		name string
		open func(b *testing.B) []*store.DB
	}{"postgres-without-fsync", func(b *testing.B) []*store.DB { return openNodes(b, relaxed, 1) }})
	b.Run("write/one-transaction-per-caller", func(b *testing.B) { benchPerCaller(b, server, true) })
	b.Run("write/one-transaction-per-caller-unordered", func(b *testing.B) { benchPerCaller(b, server, false) })
	for _, e := range engines {
		b.Run("read/"+e.name, func(b *testing.B) { benchRead(b, e.open(b)[0]) })
		b.Run("write/"+e.name, func(b *testing.B) { benchWrite(b, e.open(b), 64) })
		b.Run("write-1-caller/"+e.name, func(b *testing.B) { benchWrite(b, e.open(b), 1) })
	}
}

var benchDatabases atomic.Int64

// openNodes opens several nodes on a new database.
func openNodes(b *testing.B, server *postgrestest.Instance, n int) (nodes []*store.DB) {
	b.Helper()
	name := "bench" + string(rune('a'+benchDatabases.Add(1)%26))
	if _, err := server.Psql(b, "postgres", "DROP DATABASE IF EXISTS "+name+" WITH (FORCE);"); err != nil {
		b.Fatal(err)
	}
	if _, err := server.Psql(b, "postgres", "CREATE DATABASE "+name+";"); err != nil {
		b.Fatal(err)
	}
	for range n {
		nodes = append(nodes, openBench(b, store.Options{URL: server.URL(name), SecretKey: "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}))
	}
	return nodes
}

func openBench(b *testing.B, o store.Options) *store.DB {
	b.Helper()
	db, err := store.Open(context.Background(), o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	return db
}

// benchPerCaller stores the same rows with a connection and a transaction for each of 64 callers, in three round trips. In order,
// each takes the lock of the writers and continues the one chain of audit entries; otherwise each caller has a chain of its own.
func benchPerCaller(b *testing.B, server *postgrestest.Instance, inOrder bool) {
	ctx := context.Background()
	db := openNodes(b, server, 1)[0]
	if err := db.InTx(ctx, func(tx *store.Tx) error { return nil }); err != nil {
		b.Fatal(err)
	}
	name := "bench" + string(rune('a'+benchDatabases.Load()%26))
	var left atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	b.ResetTimer()
	for i := range 64 {
		wg.Go(func() {
			c, err := pgconn.Connect(ctx, server.URL(name))
			if err != nil {
				b.Error(err)
				return
			}
			defer c.Close(ctx)
			for n := 0; left.Add(-1) >= 0; n++ {
				if err := storeAlone(ctx, c, i, n, inOrder); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "writes/s")
}

func storeAlone(ctx context.Context, c *pgconn.PgConn, caller, n int, inOrder bool) error {
	begin, seq := "BEGIN", fmt.Sprint(int64(caller)<<32+int64(n)+1)
	if inOrder {
		begin = "BEGIN; SELECT pg_advisory_xact_lock(1802465908, 1)"
		seq = "(SELECT COALESCE(MAX(seq), 0) + 1 FROM audit_entries)"
	}
	if err := c.Exec(ctx, begin+"; SELECT seq, hash FROM audit_entries ORDER BY seq DESC LIMIT 1").Close(); err != nil {
		return err
	}
	id, head := store.NewID(), fmt.Sprint("head ", caller)
	if inOrder {
		head = "head"
	}
	err := c.Exec(ctx, fmt.Sprintf(`INSERT INTO roles (id, name, name_key, created_at, created_by, modified_at, modified_by)
			VALUES ('%[1]s', '%[1]s', '%[1]s', 0, '', 0, '');
		INSERT INTO audit_entries (seq, form, at, actor, action, rec_type, rec_id, before_hash, after_hash, prev_hash, hash)
			VALUES (%[2]s, 2, 0, '', 'roles.create', 'roles', '%[1]s', '', '', '', '%[1]s')`, id, seq)).Close()
	if err != nil {
		return err
	}
	return c.Exec(ctx, fmt.Sprintf(`INSERT INTO meta (name, value) VALUES ('%s', '%s')
		ON CONFLICT (name) DO UPDATE SET value = excluded.value; COMMIT`, head, id)).Close()
}

// processorTime returns how long this process has used processors.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func benchRead(b *testing.B, db *store.DB) {
	ctx := context.Background()
	id := store.NewID()
	if err := db.InTx(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(ctx, insertRole, id, "role", tx.Now(), store.NilID)
		return err
	}); err != nil {
		b.Fatal(err)
	}
	before := processorTime()
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		ctx, cancel := context.WithCancel(ctx) // as that of a request
		defer cancel()
		var r struct {
			id, name, description, createdBy, modifiedBy string
			builtin                                      bool
			createdAt, modifiedAt                        store.Time
			version                                      int64
		}
		for pb.Next() {
			err := db.QueryRow(ctx, `SELECT id, name, description, builtin, created_at, created_by, modified_at, modified_by, version
				FROM roles WHERE id = $1`, id).
				Scan(&r.id, &r.name, &r.description, &r.builtin, &r.createdAt, &r.createdBy, &r.modifiedAt, &r.modifiedBy, &r.version)
			if err != nil {
				b.Fatal(err)
			}
		}
	})
	b.StopTimer()
	b.ReportMetric(float64((processorTime()-before).Nanoseconds())/float64(b.N), "cpu-ns/op")
}

func benchWrite(b *testing.B, nodes []*store.DB, callers int) {
	ctx := context.Background()
	var left atomic.Int64
	left.Store(int64(b.N))
	commits := func() (n uint64) {
		for _, db := range nodes {
			n += db.Stats().Commits
		}
		return n
	}
	groups, before := commits(), processorTime()
	b.ResetTimer()
	var wg sync.WaitGroup
	for i := range callers {
		db := nodes[i%len(nodes)]
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
	b.ReportMetric(float64((processorTime()-before).Nanoseconds())/float64(b.N), "cpu-ns/op")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "writes/s")
	b.ReportMetric(float64(b.N)/float64(commits()-groups), "writes/commit")
}
