package store_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"kontor/store"
	"kontor/store/storetest"
)

func TestInTx_StoresAndReads(t *testing.T) {
	db := storetest.Open(t)
	ctx := t.Context()
	for _, name := range []string{"a", "b"} {
		if err := db.InTx(ctx, func(tx *store.Tx) error { return storetest.InsertRole(ctx, tx, name) }); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := db.Query(ctx, `SELECT name, created_at, builtin FROM roles ORDER BY name`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var names string
	for rows.Next() {
		var name string
		var at store.Time
		var builtin bool
		if err := rows.Scan(&name, &at, &builtin); err != nil {
			t.Fatal(err)
		}
		names += name
	}
	if err := rows.Err(); err != nil || names != "ab" {
		t.Errorf("names %q, err %v", names, err)
	}
}

func TestInTx_DuplicateUndoesTheTransaction(t *testing.T) {
	db := storetest.Open(t)
	ctx := t.Context()
	err := db.InTx(ctx, func(tx *store.Tx) error {
		if err := storetest.InsertRole(ctx, tx, "a"); err != nil {
			return err
		}
		return storetest.InsertRole(ctx, tx, "a")
	})
	if !errors.Is(err, store.ErrDuplicate) {
		t.Errorf("got %v, want ErrDuplicate", err)
	}
	if n := storetest.CountRoles(t, db); n != 0 {
		t.Errorf("%d roles are left of a job that failed", n)
	}
}

func TestInTx_DistinguishesBrokenRules(t *testing.T) {
	o := storetest.Options(t)
	storetest.Change(t, o, `CREATE TABLE children (role_id TEXT REFERENCES roles (id) ON DELETE RESTRICT)`)
	db := storetest.OpenAgain(t, o)
	ctx := t.Context()
	role := store.NewID()
	exec := func(sql string, args ...any) error {
		return db.InTx(ctx, func(tx *store.Tx) error {
			_, err := tx.Exec(ctx, sql, args...)
			return err
		})
	}
	const insertMember = `INSERT INTO user_roles (user_id, role_id, created_at, created_by) VALUES ($1, $2, 0, '')`
	const deleteRole = `DELETE FROM roles WHERE id = $1`
	const insertRule = `INSERT INTO rate_limit_rules (endpoint, per_minute, modified_at, modified_by) VALUES ('e', $1, 0, '')`
	for _, c := range []struct {
		name string
		sql  string
		arg  any
		want error
	}{
		{"a role", `INSERT INTO roles (id, name, name_key, created_at, created_by, modified_at, modified_by) VALUES ($1, 'a', 'a', 0, '', 0, '')`, role, nil},
		{"points to nothing", `INSERT INTO children (role_id) VALUES ($1)`, "missing", store.ErrMissingReference},
		{"child", `INSERT INTO children (role_id) VALUES ($1)`, role, nil},
		{"restricted", deleteRole, role, store.ErrMissingReference},
		{"no child", `DELETE FROM children WHERE role_id = $1`, role, nil},
		{"member", `INSERT INTO user_roles (user_id, role_id, created_at, created_by) VALUES ('u', $1, 0, '')`, role, nil},
		{"still pointed to", deleteRole, role, store.ErrMissingReference},
		{"CHECK", insertRule, 0, store.ErrConflict},
		{"NOT NULL", insertRule, nil, store.ErrConflict},
	} {
		if err := exec(c.sql, c.arg); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
	}
	if err := exec(insertMember, "u", role); !errors.Is(err, store.ErrDuplicate) {
		t.Errorf("got %v, want ErrDuplicate", err)
	}
}

// The words of a database about a statement have no value of its parameters, whatever is in it.
func TestExplain_HasNoValues(t *testing.T) {
	db := openCounted(t)
	for _, value := range []string{"anna", "d'Arc", "''", "'x' OR 'y'"} {
		steps, err := db.Explain(t.Context(), `SELECT id FROM counted WHERE owner = $1 AND number > $2`, value, 738051)
		if err != nil || len(steps) == 0 {
			t.Fatalf("%s: %v, %v", value, steps, err)
		}
		for _, step := range steps {
			for _, part := range []string{"anna", "Arc", "'x'", "'y'", "738051"} {
				if strings.Contains(step, part) {
					t.Errorf("%q: the step %q has %s", value, step, part)
				}
			}
		}
	}
}

func TestNewID_Grows(t *testing.T) {
	ids := make([]string, 10_000)
	for i := range ids {
		ids[i] = store.NewID()
	}
	if !slices.IsSorted(ids) {
		t.Error("ids do not sort by their making")
	}
	slices.Sort(ids)
	if len(slices.Compact(ids)) != 10_000 {
		t.Error("an id came twice")
	}
	if id := ids[0]; len(id) != 36 || id[14] != '7' {
		t.Errorf("%s is no UUID of version 7", id)
	}
}

func TestIn_RoundsUpToAPowerOfTwo(t *testing.T) {
	for _, c := range []struct {
		first, n int
		want     string
	}{
		{1, 0, "$1"},
		{1, 1, "$1"},
		{3, 2, "$3, $4"},
		{2, 3, "$2, $3, $4, $5"},
		{8, 4, "$8, $9, $10, $11"},
		{98, 4, "$98, $99, $100, $101"},
		{997, 2, "$997, $998"},
		{998, 2, "$998, $999"},
		{999, 2, "$999, $1000"},
	} {
		if got := store.In(c.first, c.n); got != c.want {
			t.Errorf("In(%d, %d) = %q, want %q", c.first, c.n, got, c.want)
		}
	}
	sizes := []int{1000, 2000}
	for n := range 20 {
		sizes = append(sizes, n, 1<<min(n, 11)-1, 1<<min(n, 11), 1<<min(n, 11)+1)
	}
	for _, n := range sizes {
		for _, first := range []int{1, 2, 9, 10, 99, 100, 500} {
			var want []string
			for i := range strings.Count(store.In(first, n), "$") {
				want = append(want, fmt.Sprintf("$%d", first+i))
			}
			if got := store.In(first, n); got != strings.Join(want, ", ") || len(want) < n || len(want)&(len(want)-1) != 0 {
				t.Fatalf("In(%d, %d) = %q", first, n, got)
			}
		}
	}
}

func TestIn_MatchesExactlyTheValues(t *testing.T) {
	db := storetest.Open(t)
	for n := range 6 {
		ids := []string{"a", "b", "c", "d", "e"}[:n]
		text := "SELECT value FROM (SELECT 'a' AS value UNION ALL SELECT 'c' UNION ALL SELECT 'x') AS v WHERE $1 = 7 AND value IN (" +
			store.In(2, n) + ") ORDER BY value"
		rows, err := db.Query(t.Context(), text, store.AppendIn([]any{7}, ids)...)
		if err != nil {
			t.Fatalf("%d values: %v", n, err)
		}
		var got []string
		for rows.Next() {
			var value string
			if err := rows.Scan(&value); err != nil {
				t.Fatal(err)
			}
			got = append(got, value)
		}
		rows.Close()
		var want []string
		for _, id := range ids {
			if id == "a" || id == "c" {
				want = append(want, id)
			}
		}
		if err := rows.Err(); err != nil || !slices.Equal(got, want) {
			t.Errorf("%d values: %v, %v, want %v", n, got, err, want)
		}
	}
}

func TestQueryRow_EndsWithItsScan(t *testing.T) {
	db := storetest.Open(t)
	row := db.QueryRow(t.Context(), "SELECT 7")
	var n int
	if err := row.Scan(&n); err != nil || n != 7 {
		t.Fatalf("got %d and %v", n, err)
	}
	if err := row.Scan(&n); !errors.Is(err, store.ErrClosed) {
		t.Errorf("a second Scan: got %v, want ErrClosed", err)
	}
	var kept *store.Row
	err := db.InTx(t.Context(), func(tx *store.Tx) error {
		kept = tx.QueryRow(t.Context(), "SELECT 7")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := kept.Scan(&n); !errors.Is(err, store.ErrClosed) {
		t.Errorf("a row that outlives its transaction: got %v, want ErrClosed", err)
	}
	for range 100 { // more than there are readers: a row that was scanned holds none
		if err := db.QueryRow(t.Context(), "SELECT 7 WHERE 1 = 0").Scan(&n); !errors.Is(err, store.ErrNotFound) {
			t.Fatalf("no row: got %v, want ErrNotFound", err)
		}
	}
}

// A call of the database within a transaction or an after-commit function would wait for itself. It fails at once, whatever
// context it passes, and later calls are served.
func TestInTx_RejectsNestedCalls(t *testing.T) {
	db := storetest.Open(t)
	type key struct{}
	outer := t.Context()
	derived := context.WithValue(outer, key{}, 1)
	nothing := func(*store.Tx) error { return nil }
	another := func(ctx context.Context) error { return db.InTx(ctx, nothing) } // as another module does
	calls := map[string]func(ctx context.Context) error{
		"InTx":                   func(ctx context.Context) error { return db.InTx(ctx, nothing) },
		"InTx of another module": func(ctx context.Context) error { return another(ctx) },
		"a replay": func(ctx context.Context) error {
			_, err := db.Replay(ctx, store.Idempotency{Key: "k1", Caller: "user", Path: "POST /v1/roles"})
			return err
		},
		"View": func(ctx context.Context) error { return db.View(ctx, func(*store.View) error { return nil }) },
		"Query": func(ctx context.Context) error {
			_, err := db.Query(ctx, "SELECT 1")
			return err
		},
		"QueryRow": func(ctx context.Context) error { return db.QueryRow(ctx, "SELECT 1").Scan(new(int)) },
		"Count": func(ctx context.Context) error {
			_, err := db.CountRows(ctx, "key", &store.Counting{SQL: "SELECT NULL AS value, 1 AS rows"})
			return err
		},
	}
	contexts := map[string]context.Context{"the same": outer, "a derived": derived, "another": context.Background()}
	for call, run := range calls {
		for which, ctx := range contexts {
			t.Run(call+" with "+which+" context", func(t *testing.T) {
				var nested error
				err := db.InTx(outer, func(tx *store.Tx) error {
					nested = run(ctx)
					return storetest.InsertRole(outer, tx, call+which)
				})
				if !errors.Is(nested, store.ErrNested) || store.Temporary(nested) {
					t.Errorf("got %v, want ErrNested", nested)
				}
				if err != nil {
					t.Errorf("the transaction around it: %v", err)
				}
			})
		}
	}
	if n := storetest.CountRoles(t, db); n != len(calls)*len(contexts) {
		t.Errorf("%d rows, want %d", n, len(calls)*len(contexts))
	}
}

func TestAfterCommit_RejectsWritesAndAllowsReads(t *testing.T) {
	db := storetest.Open(t)
	var written, read error
	err := db.InTx(t.Context(), func(tx *store.Tx) error {
		tx.AfterCommit(func() {
			// A nested write with an after-commit function of its own would never be answered.
			written = db.InTx(context.Background(), func(tx *store.Tx) error {
				tx.AfterCommit(func() {})
				return nil
			})
			read = db.QueryRow(context.Background(), "SELECT 1").Scan(new(int))
		})
		return storetest.InsertRole(t.Context(), tx, "a")
	})
	if err != nil || read != nil {
		t.Errorf("the write: %v, the read after it: %v", err, read)
	}
	if !errors.Is(written, store.ErrNested) {
		t.Errorf("the write after the commit got %v, want ErrNested", written)
	}
	if err := db.InTx(t.Context(), func(tx *store.Tx) error { return storetest.InsertRole(t.Context(), tx, "b") }); err != nil {
		t.Errorf("a later write: %v", err)
	}
}

// The recorded goroutine stays correct when another one takes over the queue.
func TestInTx_RejectsNestedCallsAfterTheWriterWasReplaced(t *testing.T) {
	db := storetest.Open(t)
	_ = db.InTx(t.Context(), func(*store.Tx) error { runtime.Goexit(); return nil })
	var nested error
	err := db.InTx(t.Context(), func(*store.Tx) error {
		nested = db.InTx(context.Background(), func(*store.Tx) error { return nil })
		return nil
	})
	if err != nil || !errors.Is(nested, store.ErrNested) {
		t.Errorf("got %v, want ErrNested; around it: %v", nested, err)
	}
}
