package query_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kontor/store"
	"kontor/store/storetest"
)

type country string

// upper is a sql.Scanner and driver.Valuer.
type upper struct{ value any }

func (u *upper) Scan(v any) error { u.value = v; return nil }

func TestScan_Types(t *testing.T) {
	db := storetest.Open(t)
	ctx := t.Context()
	var (
		text     string
		integer  int64
		small    int
		yes      bool
		fraction float64
		bytes    []byte
		raw      json.RawMessage
		at       store.Time
		named    country
		custom   upper
		anything any
	)
	at0 := store.Time(1769847330123)
	err := db.QueryRow(ctx, `SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11`,
		"grüezi", int64(1)<<60, -7, true, 1.5, []byte{0, 1}, json.RawMessage(`{"a":1}`), at0, country("CHE"), "x", 3).
		Scan(&text, &integer, &small, &yes, &fraction, &bytes, &raw, &at, &named, &custom, &anything)
	if err != nil {
		t.Fatal(err)
	}
	got := []any{text, integer, small, yes, fraction, bytes, raw, at, named, custom.value, anything}
	want := []any{"grüezi", int64(1) << 60, -7, true, 1.5, []byte{0, 1}, json.RawMessage(`{"a":1}`), at0, country("CHE"), "x", int64(3)}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestScan_Null(t *testing.T) {
	db := storetest.Open(t)
	ctx := t.Context()
	s, n, i, b, f, at, named := new(string), new(int64), new(int), new(bool), new(float64), new(store.Time), new(country)
	bytes, raw := []byte("x"), json.RawMessage("x")
	var noText *string
	var noTime *store.Time
	err := db.QueryRow(ctx, `SELECT $1, $1, $1, $1, $1, $2, $2, $2, $2`, noText, noTime).
		Scan(&s, &n, &i, &b, &f, &at, &named, &bytes, &raw)
	if err != nil {
		t.Fatal(err)
	}
	if s != nil || n != nil || i != nil || b != nil || f != nil || at != nil || named != nil || bytes != nil || raw != nil {
		t.Error("NULL left a value behind")
	}
	if err := db.QueryRow(ctx, `SELECT NULL`).Scan(new(string)); err == nil {
		t.Error("NULL went into a string")
	}
	word, moment := "a", store.Time(5)
	err = db.QueryRow(ctx, `SELECT $1, $2, $3`, &word, &moment, country("x")).Scan(&s, &at, &named)
	if err != nil || *s != "a" || *at != 5 || *named != "x" {
		t.Errorf("pointers: %v %v %v, err %v", s, at, named, err)
	}
}

func TestQueryRow_NoRow(t *testing.T) {
	db := storetest.Open(t)
	err := db.QueryRow(t.Context(), `SELECT id FROM roles WHERE id = $1`, store.NilID).Scan(new(string))
	if !errors.Is(err, store.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
}

func TestQuery_RejectsWrongArguments(t *testing.T) {
	db := storetest.Open(t)
	ctx := t.Context()
	for name, run := range map[string]func() error{
		"too few":         func() error { return db.QueryRow(ctx, `SELECT $1`).Scan(new(int)) },
		"too many":        func() error { return db.QueryRow(ctx, `SELECT $1`, 1, 2).Scan(new(int)) },
		"of no kind":      func() error { return db.QueryRow(ctx, `SELECT $1`, struct{}{}).Scan(new(int)) },
		"question mark":   func() error { return db.QueryRow(ctx, `SELECT ?`, 1).Scan(new(int)) },
		"two statements":  func() error { return db.QueryRow(ctx, `SELECT 1; SELECT 2`).Scan(new(int)) },
		"text as number":  func() error { return db.QueryRow(ctx, `SELECT '1x'`).Scan(new(int)) },
		"few columns":     func() error { return db.QueryRow(ctx, `SELECT 1`).Scan(new(int), new(int)) },
		"no pointer":      func() error { return db.QueryRow(ctx, `SELECT 1`).Scan(1) },
		"writes":          func() error { return db.QueryRow(ctx, `DELETE FROM roles`).Scan() },
		"no such table":   func() error { return db.QueryRow(ctx, `SELECT 1 FROM nowhere`).Scan(new(int)) },
		"NUL in the text": func() error { return db.QueryRow(ctx, "SELECT 1\x00").Scan(new(int)) },
	} {
		if err := run(); err == nil || errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: got %v, want an error", name, err)
		}
	}
}

func TestQuery_RepeatedParameterAndLargeArguments(t *testing.T) {
	db := storetest.Open(t)
	long := make([]byte, 100_000)
	for i := range long {
		long[i] = byte('a' + i%26)
	}
	for range 3 { // the buffer grows, is freed and grows again
		var a, b, c, empty string
		err := db.QueryRow(t.Context(), `SELECT $1, $2, $1, $3`, string(long), "short", "").Scan(&a, &b, &c, &empty)
		if err != nil || a != string(long) || c != a || b != "short" || empty != "" {
			t.Fatalf("the arguments were changed, err %v", err)
		}
	}
}

func TestQuery_EndsWithItsContext(t *testing.T) {
	db := storetest.Open(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	const endless = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n`
	err := db.QueryRow(ctx, endless).Scan(new(int))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want DeadlineExceeded", err)
	}
	if err := db.QueryRow(ctx, `SELECT 1`).Scan(new(int)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("after the end got %v, want DeadlineExceeded", err)
	}
	if err := db.QueryRow(t.Context(), `SELECT 1`).Scan(new(int)); err != nil {
		t.Errorf("the reader is spoilt: %v", err)
	}
}

func TestRows_ReturnTheReader(t *testing.T) {
	db := storetest.Open(t)
	ctx := t.Context()
	for range 50 { // far more than there are readers
		rows, err := db.Query(ctx, `SELECT 1 UNION ALL SELECT 2`)
		if err != nil {
			t.Fatal(err)
		}
		rows.Next()
		rows.Close()
		rows.Close()
		if rows.Next() || !errors.Is(rows.Scan(new(int)), store.ErrClosed) {
			t.Fatal("closed rows still read")
		}
	}
}

func TestTx_IsClosedAfterItsFunction(t *testing.T) {
	db := storetest.Open(t)
	ctx := t.Context()
	var kept *store.Tx
	if err := db.InTx(ctx, func(tx *store.Tx) error { kept = tx; return nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := kept.Exec(ctx, `DELETE FROM roles`); !errors.Is(err, store.ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
}

func TestScan_ReusedText(t *testing.T) {
	db := storetest.Open(t)
	rows, err := db.Query(t.Context(), `SELECT 'grüezi' AS text UNION ALL SELECT '' UNION ALL SELECT 'a'`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var text store.ReusedText
	var got []string
	for rows.Next() {
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		got = append(got, string(text))
	}
	if d := cmp.Diff([]string{"grüezi", "", "a"}, got); d != "" || rows.Err() != nil {
		t.Error(d, rows.Err())
	}
	for _, sql := range []string{`SELECT NULL`, `SELECT 7`} {
		if err := db.QueryRow(t.Context(), sql).Scan(&text); err == nil {
			t.Errorf("%s was read into a text", sql)
		}
	}
}
