//go:build unix

package store_test

import (
	"fmt"
	"syscall"
	"testing"

	"kontor/store"
	"kontor/store/storetest"
)

// BenchmarkWriteFollowed compares the processor time of writes to a table whose rows a remembered total follows with that of
// writes to a table that no total has asked for.
func BenchmarkWriteFollowed(b *testing.B) {
	db := storetest.Open(b)
	ctx := b.Context()
	for _, table := range []string{"followed", "plain"} {
		exec(b, db, `CREATE TABLE `+table+` (id TEXT NOT NULL PRIMARY KEY, owner TEXT NOT NULL, number BIGINT NOT NULL, text TEXT NOT NULL)`)
	}
	counting := &store.Counting{SQL: `SELECT NULL AS value, count(*) AS rows FROM followed WHERE owner = $1 AND number > 5 AND text LIKE 'a%'`,
		Args: []any{"anna"}, Rows: []store.KeyedTable{{Table: "followed", Key: "id"}}}
	if _, err := db.CountRows(ctx, "followed", counting); err != nil {
		b.Fatal(err)
	}
	n := 0
	cost := func(table string) float64 {
		var before, after syscall.Rusage
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &before)
		for range 500 {
			n++
			exec(b, db, `INSERT INTO `+table+` (id, owner, number, text) VALUES ($1, $2, $3, $4)`, fmt.Sprint("id of a row ", n), "the owner of the row", int64(n), "a text of some length, as a name has")
		}
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &after)
		return float64(after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano())
	}
	cost("followed")
	cost("plain")
	var followed, plain float64
	for b.Loop() {
		followed += cost("followed")
		plain += cost("plain")
	}
	b.ReportMetric(followed/plain, "times")
}

func exec(b *testing.B, db *store.DB, sql string, args ...any) {
	b.Helper()
	if err := db.InTx(b.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(b.Context(), sql, args...)
		return err
	}); err != nil {
		b.Fatal(err)
	}
}
