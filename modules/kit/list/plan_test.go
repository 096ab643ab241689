package list_test

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"

	"kontor/modules/kit/list"
	"kontor/store"
	"kontor/store/storetest"
)

// recorder records the statements that a list runs.
type recorder struct {
	list.Store
	mu         sync.Mutex
	statements []string
	args       [][]any
	counts     []*store.Counting // also those that were remembered
}

func (r *recorder) Count(ctx context.Context, key string, c *store.Counting) ([]store.Group, error) {
	r.mu.Lock()
	r.counts = append(r.counts, c)
	r.mu.Unlock()
	return r.Store.Count(ctx, key, c)
}

func (r *recorder) note(sql string, args []any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.statements, r.args = append(r.statements, sql), append(r.args, args)
}

func (r *recorder) Query(ctx context.Context, sql string, args ...any) (*store.Rows, error) {
	r.note(sql, args)
	return r.Store.Query(ctx, sql, args...)
}

func (r *recorder) QueryRow(ctx context.Context, sql string, args ...any) *store.Row {
	r.note(sql, args)
	return r.Store.QueryRow(ctx, sql, args...)
}

// addIndexes creates the indexes that a module with these lists would have.
func addIndexes(t testing.TB, db *store.DB) {
	t.Helper()
	err := db.InTx(t.Context(), func(tx *store.Tx) error {
		for _, columns := range []string{"created_at, id", "status, created_at, id", "owner, created_at, id", "name_key, id", "active, created_at, id", "size, id"} {
			name := "things_" + strings.ReplaceAll(columns, ", ", "_")
			if _, err := tx.Exec(t.Context(), "CREATE INDEX "+name+" ON things ("+columns+")"); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// With a suitable index, a page is read from the beginning of the index, and a total from the index alone. The database
// sorts nothing and reads only the rows of the page.
func TestPage_UsesIndexes(t *testing.T) {
	if storetest.SQLiteOnly(t, "query plans are in the words of SQLite") {
		return
	}
	db := open(t, sampleThings(t)...)
	addIndexes(t, db)
	for query, want := range map[string]string{
		"":                                    "SCAN t USING INDEX things_created_at_id",
		"sort=created_at":                     "SCAN t USING INDEX things_created_at_id",
		"search.status=open":                  "SEARCH t USING INDEX things_status_created_at_id (status=?)",
		"search.status=open&sort=-created_at": "SEARCH t USING INDEX things_status_created_at_id (status=?)",
		"search.status=open&sort=created_at":  "SEARCH t USING INDEX things_status_created_at_id (status=?)",
		"search.owner=" + anna + "&offset=2":  "SEARCH t USING INDEX things_owner_created_at_id (owner=?)",
		"search.active=true":                  "SEARCH t USING INDEX things_active_created_at_id (active=?)",
		"search.status=open&search.created_at=2026-01-31": "SEARCH t USING INDEX things_status_created_at_id (status=? AND created_at>? AND created_at<?)",
		"search.name=anna&sort=name":                      "SEARCH t USING INDEX things_name_key_id (name_key=?)",
		"sort=name":                                       "SCAN t USING INDEX things_name_key_id",
		"sort=-name":                                      "SCAN t USING INDEX things_name_key_id",
		"sort=size":                                       "SCAN t USING INDEX things_size_id",
		"sort=-size":                                      "SCAN t USING INDEX things_size_id",
		"sort=id":                                         "SCAN t USING INDEX sqlite_autoindex_things_1",
		"search.id=" + id(3):                              "SEARCH t USING INDEX sqlite_autoindex_things_1 (id=?)",
	} {
		r := &recorder{Store: db}
		if _, err := page(t, r, query); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		for i, sql := range r.statements {
			plan := strings.Join(storetest.Plan(t, db, sql, r.args[i]...), "; ")
			if plan != want {
				t.Errorf("%s: %s\n got %s\nwant %s", query, sql, plan, want)
			}
		}
		for _, c := range r.counts {
			sql := cmp.Or(c.Each, c.SQL)
			if plan := strings.Join(storetest.Plan(t, db, sql, c.Args...), "; "); strings.Contains(plan, "TEMP B-TREE") || !strings.Contains(plan, "COVERING INDEX") {
				t.Errorf("%s: %s\n got %s", query, sql, plan)
			}
		}
	}
}

// Each alternative of a condition is read by its own index. Only the rows that these return are sorted.
func TestPage_ReadsAlternativesByTheirIndexes(t *testing.T) {
	if storetest.SQLiteOnly(t, "query plans are in the words of SQLite") {
		return
	}
	db := open(t, sampleThings(t)...)
	addIndexes(t, db)
	visible := list.Where{Any: []string{"t.owner = $1"}, Granted: "SELECT g.rec_id FROM things_granted g WHERE g.user_id = $2", Args: []any{bob, anna}}
	err := db.InTx(t.Context(), func(tx *store.Tx) error {
		for _, sql := range []string{
			"CREATE TABLE things_granted (user_id TEXT NOT NULL, rec_id TEXT NOT NULL, PRIMARY KEY (user_id, rec_id))",
			"INSERT INTO things_granted (user_id, rec_id) VALUES ('" + anna + "', '" + id(1) + "'), ('" + anna + "', '" + id(6) + "'), ('" + bob + "', '" + id(5) + "')",
		} {
			if _, err := tx.Exec(t.Context(), sql); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{Store: db}
	p, err := page(t, r, "search.active=true,false&offset=1&limit=2", visible)
	if err != nil || lastDigits(p) != "42" || p.Total != 4 || !p.HasMore {
		t.Fatalf("got %q of %d, %v", lastDigits(p), p.Total, err)
	}
	last := len(r.statements) - 1
	plan := strings.Join(storetest.Plan(t, db, r.statements[last], r.args[last]...), "; ")
	for _, part := range []string{
		"SEARCH t USING INDEX things_owner_created_at_id (owner=?)",
		"SEARCH g USING COVERING INDEX sqlite_autoindex_things_granted_1 (user_id=?); SEARCH t USING INDEX sqlite_autoindex_things_1 (id=?)",
	} {
		if !strings.Contains(plan, part) {
			t.Errorf("%s is not in the plan %s", part, plan)
		}
	}
	deep := &recorder{Store: db}
	if _, err := page(t, deep, "search.active=true,false&offset=2000", visible); err != nil {
		t.Fatal(err)
	}
	if len(deep.statements) > 0 {
		t.Errorf("a page beyond the last row was read: %s", deep.statements)
	}
}

// A page is read by one statement; totals are remembered, see [store.DB.Count].
func TestPage_ReadsOnlyThePage(t *testing.T) {
	if storetest.SQLiteOnly(t, "query plans are in the words of SQLite") {
		return
	}
	db := open(t, sampleThings(t)...)
	r := &recorder{Store: db}
	ask := func(query string) int {
		before := len(r.statements)
		if _, err := page(t, r, query); err != nil {
			t.Fatal(err)
		}
		return len(r.statements) - before
	}
	for i, want := range []int{1, 1, 1} {
		if got := ask(fmt.Sprintf("search.status=open&limit=1&offset=%d", i)); got != want {
			t.Errorf("request %d ran %d statements, want %d", i+1, got, want)
		}
	}
	if got := ask("search.size=x&sort=nope"); got != 0 {
		t.Errorf("a search that cannot match ran %d statements", got)
	}
	if got := ask("search.status=open,done,late"); got != 1 {
		t.Errorf("three values ran %d statements, want 1", got)
	}
	three := r.statements[len(r.statements)-1]
	ask("search.status=open,done,late,x")
	if four := r.statements[len(r.statements)-1]; three != four {
		t.Errorf("three and four values are different statements:\n%s\n%s", three, four)
	}
}

func BenchmarkPage(b *testing.B) {
	for _, rows := range []int{1_000, 100_000} {
		b.Run(fmt.Sprint(rows), func(b *testing.B) {
			db := open(b)
			addIndexes(b, db)
			all := make([]thing, rows)
			for i := range all {
				all[i] = thing{ID: id(i), Owner: anna, Name: fmt.Sprint("Thing ", i), Status: []string{"open", "done", "late"}[i%3], CreatedAt: store.Time(i / 7)}
			}
			insert(b, db, all...)
			values, err := url.ParseQuery("limit=10&search.status=open&sort=-created_at")
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				p, err := list.Parse(values)
				if err != nil {
					b.Fatal(err)
				}
				got, err := things.Page(b.Context(), db, p)
				if err != nil || len(got.Data.Rows) != 10 {
					b.Fatal(err)
				}
			}
		})
	}
}
