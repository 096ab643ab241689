package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"kontor/store/engine"
	"kontor/store/query"
)

// one runs a query for one row.
func one(s engine.Source, sql string, args []any, dest ...any) error {
	return query.NewRow(context.Background(), s, sql, args).Scan(dest...)
}

// Arguments find their type, wherever they stand, also when it differs from run to run.
func TestStatement_FindsTheTypesOfArguments(t *testing.T) {
	e, _ := fresh(t)
	check := func(t *testing.T, s engine.Source) {
		for range 2 {
			for _, c := range []struct {
				sql  string
				args []any
				want string
			}{
				{`SELECT $1`, []any{"text"}, "text"},
				{`SELECT $1`, []any{7}, "7"},
				{`SELECT $1`, []any{true}, "1"},
				{`SELECT $1`, []any{0.5}, "0.5"},
				{`SELECT COALESCE($1, 'none')`, []any{nil}, "none"},
				{`SELECT CASE WHEN $1 IS NULL THEN 'null' ELSE 'not null' END`, []any{nil}, "null"},
				{`SELECT CASE WHEN $1 IS NULL THEN 'null' ELSE 'not null' END`, []any{3}, "not null"},
				{`SELECT CASE WHEN $1 IS NULL THEN 'nothing' ELSE 'a text' END`, []any{""}, "a text"},
				{`SELECT SUBSTR($1, $2, $3)`, []any{"grüezi", 3, 2}, "üe"},
				{`SELECT 'a' || $1 || 'c'`, []any{"b"}, "abc"},
				{`SELECT $1 + 1`, []any{int64(1) << 40}, fmt.Sprint(int64(1)<<40 + 1)},
				{`SELECT SUM(i) FROM (SELECT $1 AS i UNION ALL SELECT $1) AS n`, []any{21}, "42"},
				{`SELECT COUNT(*) FROM items WHERE ($1 = '' OR name = $1) AND amount >= $2`, []any{"", 0}, "0"},
				{`SELECT '$9' || ' ?' -- $8`, nil, "$9 ?"},
			} {
				var got string
				if err := one(s, c.sql, c.args, &got); err != nil || got != c.want {
					t.Errorf("%s with %v: %q, %v, want %q", c.sql, c.args, got, err, c.want)
				}
			}
		}
	}
	t.Run("reader", func(t *testing.T) { check(t, e) })
	t.Run("view", func(t *testing.T) {
		none(t, "view", e.View(t.Context(), func(s engine.Source) error { check(t, s); return nil }))
	})
	t.Run("job", func(t *testing.T) {
		none(t, "write", e.Write(t.Context(), func(tx engine.Tx) error { check(t, tx); return nil }))
	})
}

// A text that the server cannot prepare does not harm a transaction that is not to fail through it.
func TestView_GoesOnAfterATextThatCannotBePrepared(t *testing.T) {
	e, _ := fresh(t)
	none(t, "view", e.View(t.Context(), func(s engine.Source) error {
		count(t, s, "a")
		if err := one(s, `SELECT nothing FROM nowhere`, nil, new(int)); err == nil {
			t.Error("prepared")
		}
		count(t, s, "a")
		return nil
	}))
}

// Long results, large values and statements within statements do not mix.
func TestTx_RunsStatementsWithinLongResults(t *testing.T) {
	e, _ := fresh(t)
	const rows = 3000
	large := []byte(strings.Repeat("\x00\xff", 100_000))
	none(t, "write", e.Write(t.Context(), func(tx engine.Tx) error {
		for i := range rows {
			if err := exec(t.Context(), tx, `INSERT INTO items (name, amount) VALUES ($1, $2)`, fmt.Sprintf("%05d", i), i); err != nil {
				return err
			}
		}
		return exec(t.Context(), tx, `INSERT INTO items (name, data) VALUES ($1, $2)`, "large", large)
	}))
	walk := func(s engine.Source) error {
		all, err := query.Query(t.Context(), s, `SELECT name, amount FROM items WHERE data IS NULL ORDER BY name`, nil)
		if err != nil {
			return err
		}
		seen := 0
		for all.Next() {
			var data []byte
			if seen%100 == 0 {
				if err := one(s, `SELECT data FROM items WHERE name = 'large'`, nil, &data); err != nil || len(data) != len(large) {
					t.Errorf("the large value has %d bytes, %v", len(data), err)
				}
			}
			var name string
			var amount int
			if err := all.Scan(&name, &amount); err != nil {
				return err
			}
			if name != fmt.Sprintf("%05d", seen) || amount != seen {
				t.Fatalf("row %d is %s with %d", seen, name, amount)
			}
			seen++
		}
		if seen != rows {
			t.Errorf("%d rows, want %d", seen, rows)
		}
		return all.Err()
	}
	none(t, "job", e.Write(t.Context(), func(tx engine.Tx) error { return walk(tx) }))
	none(t, "view", e.View(t.Context(), walk))
}

// A statement that was sent late and fails among thousands makes its job fail, with its error, and only its job.
func TestTx_ReportsALateErrorWhereItBelongs(t *testing.T) {
	e, _ := fresh(t)
	none(t, "write", write(e, "taken"))
	for _, at := range []int{0, 1, 250, 1999} {
		var returned error
		err := e.Write(t.Context(), func(tx engine.Tx) error {
			returned = nil
			for i := range 2000 {
				name := fmt.Sprint(at, "-", i)
				if i == at {
					name = "taken"
				}
				if returned = insert(tx, name); returned != nil {
					return returned
				}
			}
			return nil
		})
		is(t, "write", err, engine.ErrDuplicate)
		is(t, "the statement", returned, engine.ErrDuplicate)
		if n := count(t, e, fmt.Sprint(at, "-0")); n != 0 {
			t.Errorf("%d rows of the failed job", n)
		}
	}
}

// Rows that are closed early, and statements that are cancelled, leave a usable reader.
func TestReaders_SurviveWhatIsLeftEarly(t *testing.T) {
	e, _ := fresh(t)
	const endless = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n`
	for range 30 {
		ctx, cancel := context.WithCancel(t.Context())
		rows, err := query.Query(ctx, e, endless, nil)
		if err != nil {
			t.Fatal(err)
		}
		rows.Next()
		if err := rows.Close(); err != nil {
			t.Error(err)
		}
		rows, err = query.Query(ctx, e, endless, nil)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		for rows.Next() {
		}
		if !errors.Is(rows.Err(), context.Canceled) {
			t.Errorf("got %v, want the context's error", rows.Err())
		}
		count(t, e, "a")
	}
}
