package list_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"sync"
	"testing"

	"kontor/modules/kit/list"
	"kontor/store"
	"kontor/store/storetest"
	"kontor/store/testenv"
)

// Tables of histories: items, of which some belong to users, and members, which are further users of an item.
var historyTables = []string{
	`CREATE TABLE items (id TEXT NOT NULL PRIMARY KEY, owner TEXT NOT NULL, status TEXT NOT NULL, name_key TEXT NOT NULL, urgent BOOLEAN NOT NULL,
		weight BIGINT, created_at BIGINT NOT NULL)`,
	`CREATE INDEX items_owner_idx ON items (owner, created_at, id)`,
	`CREATE INDEX items_status_idx ON items (status, created_at, id)`,
	`CREATE TABLE members (item_id TEXT NOT NULL REFERENCES items (id) ON DELETE CASCADE, user_id TEXT NOT NULL, PRIMARY KEY (item_id, user_id))`,
	`CREATE INDEX members_user_idx ON members (user_id, item_id)`,
	`CREATE TABLE item_grants (user_id TEXT NOT NULL, item_id TEXT NOT NULL)`,
}

type item struct{ id string }

func scanItem(row list.Row) (item, error) {
	var i item
	return i, row.Scan(&i.id)
}

var itemFields = list.Fields{
	{Name: "id", Type: list.UUID, Column: "items.id"},
	{Name: "owner", Type: list.Text, Column: "items.owner", Key: "items.owner", Index: list.ThenCreated},
	{Name: "status", Type: list.Text, Column: "items.status", Key: "items.status", Few: true},
	{Name: "plain_status", Type: list.Text, Column: "items.status", Key: "items.status"},
	{Name: "name", Type: list.Text, Column: "items.name_key", Key: "items.name_key"},
	{Name: "urgent", Type: list.Bool, Column: "items.urgent", Few: true},
	{Name: "weight", Type: list.Number, Column: "items.weight", Null: true},
}

var itemList = list.New(list.Source[item]{
	From: "items", Columns: "items.id", ID: "items.id", Created: "items.created_at", Tables: []string{"items"}, Scan: scanItem, Fields: itemFields,
})

var memberItems = list.New(list.Source[item]{
	From: "members LEFT JOIN items ON items.id = members.item_id", Columns: "members.item_id", ID: "members.item_id",
	Tables: []string{"members", "items.id"}, Scan: scanItem, Fields: itemFields,
})

// visibleItems is the condition of modules: own items, those that name the user as member, and granted ones.
func visibleItems(user string) list.Where {
	return list.Where{
		Any:     []string{"items.owner = $1", "EXISTS (SELECT 1 FROM members m WHERE m.item_id = items.id AND m.user_id = $1)"},
		Granted: "SELECT g.item_id FROM item_grants g WHERE g.user_id = $1", Args: []any{user}, Tables: []string{"members.item_id", "item_grants"},
	}
}

// ownItems is the condition of inboxes.
func ownItems(user string) list.Where {
	return list.Where{
		SQL: "status <> 'gone'", Any: []string{"owner = $1"}, Granted: "SELECT g.item_id FROM item_grants g WHERE g.user_id = $1", Args: []any{user},
		Tables: []string{"item_grants"},
	}
}

// counted is a question to a list.
type counted struct {
	name string
	page func(ctx context.Context, db list.Store) (list.Page[item], error)
	// sql counts the same rows.
	sql  string
	args []any
	// groups is the expression of distinct; empty: none.
	groups string
}

func questions(t testing.TB, user string) []counted {
	t.Helper()
	of := func(l *list.List[item], name, query, sql string, where ...list.Where) counted {
		values, err := url.ParseQuery(query + "&limit=-1")
		if err != nil {
			t.Fatal(err)
		}
		p, err := list.Parse(values)
		if err != nil {
			t.Fatal(err)
		}
		p = p.WithText(list.Words(values.Get("q")), "tasks")
		c := counted{name: name + "?" + query, sql: sql, page: func(ctx context.Context, db list.Store) (list.Page[item], error) { return l.Page(ctx, db, p, where...) }}
		if strings.Contains(sql, "$1") {
			c.args = []any{user}
		}
		if _, field, found := strings.Cut(query, "distinct="); found {
			c.groups = "items." + field
		}
		return c
	}
	const visible = ` (owner = $1 OR EXISTS (SELECT 1 FROM members m WHERE m.item_id = items.id AND m.user_id = $1) OR id IN (SELECT item_id FROM item_grants WHERE user_id = $1))`
	const found, both = ` id IN (SELECT rec_id FROM search_documents WHERE title LIKE '% tred%' OR body LIKE '% tred%')`,
		` id IN (SELECT rec_id FROM search_documents WHERE title || body LIKE '% tred %' AND title || body LIKE '% tblue%')`
	return []counted{
		of(itemList, "all", "q=red", `FROM items WHERE`+found),
		of(itemList, "all", "q=red+blue", `FROM items WHERE`+both),
		of(itemList, "all", "q=red&search.urgent=true", `FROM items WHERE urgent = TRUE AND`+found),
		of(itemList, "all", "q=red&distinct=owner", `FROM items WHERE`+found),
		of(itemList, "visible", "q=red", `FROM items WHERE`+visible+` AND`+found, visibleItems(user)),
		of(memberItems, "member", "q=red", `FROM members WHERE user_id = $1 AND item_`+strings.TrimSpace(found), list.Where{SQL: "members.user_id = $1", Args: []any{user}}),
		of(itemList, "all", "", `FROM items`),
		of(itemList, "all", "search.status=open", `FROM items WHERE status = 'open'`),
		of(itemList, "all", "search.plain_status=open", `FROM items WHERE status = 'open'`),
		of(itemList, "all", "search.status=*o*", `FROM items WHERE status LIKE '%o%'`),
		of(itemList, "all", "search.urgent=true", `FROM items WHERE urgent = TRUE`),
		of(itemList, "all", "search.name=*b*", `FROM items WHERE name_key LIKE '%b%'`),
		of(itemList, "all", "search.weight=2..4&search.urgent=true", `FROM items WHERE weight BETWEEN 2 AND 4 AND urgent = TRUE`),
		of(itemList, "all", "search.weight=null", `FROM items WHERE weight IS NULL`),
		of(itemList, "all", "distinct=status", `FROM items`),
		of(itemList, "all", "distinct=id", `FROM items`),
		of(itemList, "all", "distinct=owner", `FROM items`),
		of(itemList, "all", "distinct=weight", `FROM items`),
		of(itemList, "visible", "", `FROM items WHERE`+visible, visibleItems(user)),
		of(itemList, "visible", "search.status=open,done", `FROM items WHERE status IN ('open', 'done') AND`+visible, visibleItems(user)),
		of(itemList, "own", "", `FROM items WHERE status <> 'gone' AND (owner = $1 OR id IN (SELECT item_id FROM item_grants WHERE user_id = $1))`, ownItems(user)),
		of(itemList, "of owner", "search.urgent=false", `FROM items WHERE owner = $1 AND urgent = FALSE`, list.Where{SQL: "owner = $1", Args: []any{user}}),
		of(memberItems, "member", "", `FROM members WHERE user_id = $1`, list.Where{SQL: "members.user_id = $1", Args: []any{user}}),
		of(memberItems, "member", "search.status=open", `FROM members JOIN items ON items.id = members.item_id WHERE user_id = $1 AND status = 'open'`,
			list.Where{SQL: "members.user_id = $1", Args: []any{user}}),
	}
}

// expected runs the plain statement of a question.
func (c *counted) expected(ctx context.Context, db store.Querier) (n int64, err error) {
	sql := `SELECT count(*) ` + c.sql
	if c.groups != "" {
		sql = `SELECT count(*) FROM (SELECT DISTINCT ` + c.groups + ` ` + c.sql + `) AS found`
	}
	return n, db.QueryRow(ctx, sql, c.args...).Scan(&n)
}

var errUndone = errors.New("undone")

// history makes random changes in random groups of jobs.
type history struct {
	db     *store.DB
	random *rand.Rand
	users  []string
	steps  []string // for the message of a failure
}

func pick[T any](r *rand.Rand, all []T) T { return all[r.IntN(len(all))] }

// words returns random words of a document, as they are stored.
func words(r *rand.Rand) string {
	var b strings.Builder
	for _, word := range []string{"red", "reddish", "blue", "green"} {
		if r.IntN(3) == 0 {
			b.WriteString(" t" + word)
		}
	}
	if b.Len() > 0 {
		b.WriteString(" ")
	}
	return b.String()
}

// step runs one statement with random values.
func (h *history) step(ctx context.Context, tx *store.Tx) error {
	r := h.random
	id := fmt.Sprintf("0193b000-0000-7000-8000-%012d", r.IntN(12))
	user, status := pick(r, h.users), pick(r, []string{"open", "done", "gone"})
	var weight *int64
	if n := r.Int64N(6); n > 0 {
		weight = &n
	}
	type statement struct {
		sql  string
		args []any
	}
	s := pick(r, []statement{
		{`INSERT INTO items (id, owner, status, name_key, urgent, weight, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING`,
			[]any{id, user, status, pick(r, []string{"ab", "ba", "cc", `"ü\`}), r.IntN(2) == 0, weight, r.Int64N(9)}},
		{`INSERT INTO items (id, owner, status, name_key, urgent, weight, created_at) VALUES ($1, $2, $3, 'b', TRUE, $4, 1)
			ON CONFLICT (id) DO UPDATE SET owner = excluded.owner, status = excluded.status`, []any{id, user, status, weight}},
		{`UPDATE items SET status = $1 WHERE owner = $2`, []any{status, user}},
		{`UPDATE items SET owner = $1, urgent = NOT urgent WHERE id = $2`, []any{user, id}},
		{`UPDATE items SET weight = $1 WHERE status = $2`, []any{weight, status}},
		{`DELETE FROM items WHERE id = $1`, []any{id}},
		{`DELETE FROM items WHERE owner = $1 AND status = $2`, []any{user, status}},
		{`INSERT INTO members (item_id, user_id) SELECT id, $1 FROM items WHERE status = $2 ON CONFLICT DO NOTHING`, []any{user, status}},
		{`INSERT INTO members (item_id, user_id) SELECT id, $1 FROM items WHERE id = $2 ON CONFLICT DO NOTHING`, []any{user, id}},
		{`DELETE FROM members WHERE user_id = $1 AND item_id > $2`, []any{user, id}},
		{`INSERT INTO item_grants (user_id, item_id) VALUES ($1, $2)`, []any{user, id}},
		{`DELETE FROM item_grants WHERE user_id = $1`, []any{user}},
		{`DELETE FROM items`, nil},
		{`INSERT INTO search_documents (number, source, source_id, rec_id, title, body) VALUES ($1, 'tasks', $2, $2, $3, $4) ON CONFLICT DO NOTHING`,
			[]any{1 + r.IntN(20), id, words(r), words(r)}},
		{`INSERT INTO search_documents (number, source, source_id, rec_id, title, body) SELECT 100 + CAST(substr(id, 30) AS INTEGER), 'tasks', 'of ' || id, id, $1, '' FROM items
			WHERE true ON CONFLICT DO NOTHING`, []any{words(r)}},
		{`UPDATE search_documents SET title = $1, body = $2 WHERE number > $3`, []any{words(r), words(r), r.IntN(20)}},
		{`UPDATE search_documents SET rec_id = $1 WHERE number = $2`, []any{id, 1 + r.IntN(20)}},
		{`DELETE FROM search_documents WHERE rec_id = $1`, []any{id}},
	})
	h.steps = append(h.steps, fmt.Sprint(s.sql, s.args))
	_, err := tx.Exec(ctx, s.sql, s.args...)
	return err
}

// job runs some steps in one transaction, which is sometimes undone.
func (h *history) job(ctx context.Context) error {
	n, undone := 1+h.random.IntN(3), h.random.IntN(5) == 0
	h.steps = append(h.steps, fmt.Sprint("job; undone: ", undone))
	err := h.db.InTx(ctx, func(tx *store.Tx) error {
		for range n {
			if err := h.step(ctx, tx); err != nil {
				return err
			}
		}
		if undone {
			return errUndone
		}
		return nil
	})
	if errors.Is(err, errUndone) {
		return nil
	}
	return err
}

func run(t *testing.T, db *store.DB, statements ...string) {
	t.Helper()
	if err := db.InTx(t.Context(), func(tx *store.Tx) error {
		for _, sql := range statements {
			if _, err := tx.Exec(t.Context(), sql); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// A total of own and granted rows follows the changes of others' rows that were granted.
func TestPage_TotalsFollowGrantedRows(t *testing.T) {
	db := storetest.Open(t)
	run(t, db, historyTables...)
	run(t, db, `INSERT INTO items (id, owner, status, name_key, urgent, weight, created_at) VALUES ('a', 'bob', 'open', '', FALSE, 1, 1), ('b', 'bob', 'gone', '', FALSE, 1, 1)`,
		`INSERT INTO item_grants (user_id, item_id) VALUES ('anna', 'a'), ('anna', 'b')`)
	expect := func(want int64) {
		t.Helper()
		got, err := itemList.Page(t.Context(), db, list.Params{}, ownItems("anna"))
		if err != nil || got.Total != want {
			t.Errorf("total %d, %v; want %d", got.Total, err, want)
		}
	}
	expect(1)
	run(t, db, `UPDATE items SET status = 'open' WHERE id = 'b'`)
	expect(2)
	run(t, db, `UPDATE items SET status = 'gone' WHERE id = 'a'`)
	expect(1)
	run(t, db, `DELETE FROM items WHERE id = 'b'`)
	expect(0)
}

// After each commit every remembered total is what COUNT(*) finds, while readers ask for the same totals all the time.
func TestPage_TotalsEqualCountInRandomHistories(t *testing.T) {
	db := storetest.Open(t)
	ctx := t.Context()
	run(t, db, historyTables...)
	users := []string{"anna", "bob"}
	all := append(questions(t, "anna"), questions(t, "bob")...)
	ended, stop := context.WithCancel(ctx)
	var readers sync.WaitGroup
	for i := range 2 {
		readers.Go(func() {
			for n := i; ended.Err() == nil; n++ {
				if _, err := all[n%len(all)].page(ctx, db); err != nil && ended.Err() == nil {
					t.Error(err)
				}
			}
		})
	}
	defer readers.Wait()
	defer stop()
	for seed := range testenv.Rounds(12, 60, 3000) {
		h := &history{db: db, random: rand.New(rand.NewPCG(uint64(seed), 1)), users: users}
		for range 4 {
			if err := h.several(ctx); err != nil {
				t.Fatal(err)
			}
			h.check(t, all[h.random.IntN(3):], seed)
		}
		if t.Failed() {
			return
		}
	}
}

// several runs one job, or some at once that may share a commit.
func (h *history) several(ctx context.Context) error {
	n := 1
	if h.random.IntN(4) == 0 {
		n = 3
	}
	if n == 1 {
		return h.job(ctx)
	}
	var jobs sync.WaitGroup
	errs := make([]error, n)
	parts := make([]*history, n)
	for i := range parts {
		parts[i] = &history{db: h.db, random: rand.New(rand.NewPCG(h.random.Uint64(), 2)), users: h.users}
		jobs.Go(func() { errs[i] = parts[i].job(ctx) })
	}
	jobs.Wait()
	for _, part := range parts {
		h.steps = append(h.steps, part.steps...)
	}
	return errors.Join(errs...)
}

func (h *history) check(t *testing.T, all []counted, seed int) {
	t.Helper()
	for _, c := range all {
		want, err := c.expected(t.Context(), h.db)
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.page(t.Context(), h.db)
		if err != nil {
			t.Fatal(err)
		}
		if got.Total != want {
			t.Errorf("history %d: %s %v: total %d, COUNT(*) %d, after:\n%s", seed, c.name, c.args, got.Total, want, strings.Join(h.steps, "\n"))
		}
	}
}
