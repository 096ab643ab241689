package list_test

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"

	"kontor/modules/kit/list"
	"kontor/server/endpoint"
	"kontor/store"
)

// explained reads a page and returns the explanation of the request.
func explained(t *testing.T, db list.Store, query string, conditions ...list.Where) (*endpoint.Explanation, error) {
	t.Helper()
	values, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	p, err := list.Parse(values)
	if err != nil {
		t.Fatal(err)
	}
	x := &endpoint.Explanation{Thorough: true}
	_, err = things.Page(endpoint.With(t.Context(), &endpoint.Info{Explanation: x}), db, p, conditions...)
	return x, err
}

// Each plan is chosen for the requests that it is for, and the explanation has the statements that were run, without any value.
func TestPage_ExplainsItsPlan(t *testing.T) {
	list.SetWalks(t, 2, 20, 50_000, 1_000_000, 2)
	db := open(t, many(1200)...)
	addIndexes(t, db)
	mine := list.Where{Any: []string{"t.owner = $1"}, Granted: "SELECT t2.id FROM things t2 WHERE t2.id = $2", Args: []any{anna, bob}}
	for query, want := range map[string]string{
		"":                                  "index",
		"sort=-name":                        "index",
		"sort=note&limit=5":                 "merge",
		"sort=code":                         "pieces",
		"sort=plain":                        "sort",
		"sort=name&offset=1100":             "skip",
		"search.status=open&sort=name":      "walk",
		"distinct=status":                   "firsts",
		"search.status=late&search.size=77": "",
	} {
		r := &recorder{Store: db}
		x, err := explained(t, r, query)
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		expectPlan(t, query, x, want)
		for _, step := range x.Steps {
			ran := slices.Contains(r.statements, step.SQL) || slices.ContainsFunc(r.counts, func(c *store.Counting) bool { return c.SQL == step.SQL })
			if !ran {
				t.Errorf("%s: the statement of the step %s was not run: %s", query, step.Name, step.SQL)
			}
			if step.Name != "count" && len(step.Database) == 0 {
				t.Errorf("%s: the database says nothing about %s", query, step.SQL)
			}
			for _, value := range []string{"open", "late", anna, bob} {
				if strings.Contains(step.SQL+step.Why, value) {
					t.Errorf("%s: the step %s has the value %s: %s", query, step.Name, value, step.SQL)
				}
			}
		}
	}
	x, err := explained(t, db, "sort=name", mine)
	if err != nil {
		t.Fatal(err)
	}
	expectPlan(t, "a caller with grants", x, "merge")
	list.SetWalks(t, 2, 20, 50_000, 1, 1)
	if x, err = explained(t, db, "distinct=name"); err != nil {
		t.Fatal(err)
	}
	expectPlan(t, "distinct, far behind", x, "rank")
}

// expectPlan compares the plan of the page; empty: no page was read.
func expectPlan(t *testing.T, name string, x *endpoint.Explanation, want string) {
	t.Helper()
	got := ""
	for _, step := range x.Steps {
		if step.Name == "page" {
			got = step.Plan
		}
	}
	if got != want {
		t.Errorf("%q: the plan is %q, want %q", name, got, want)
	}
}

// A request whose time is over ends with the error of its context, whatever the plan, and has the step that took too long.
func TestPage_ExplainsWhatTookTooLong(t *testing.T) {
	list.SetWalks(t, 2, 20, 50_000, 1_000_000, 2)
	db := open(t, many(60)...)
	for query, want := range map[string]string{"": "index", "sort=plain": "sort", "search.status=open&sort=name": "walk", "distinct=status": "firsts", "stack=status": "index"} {
		if _, err := page(t, db, query); err != nil { // the totals are remembered
			t.Fatal(err)
		}
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		p, err := list.Parse(values)
		if err != nil {
			t.Fatal(err)
		}
		ended, end := context.WithCancel(t.Context())
		x := &endpoint.Explanation{}
		if _, err := things.Page(endpoint.With(ended, &endpoint.Info{Explanation: x}), &ending{Store: db, end: end}, p); !errors.Is(err, context.Canceled) {
			t.Errorf("%q: %v", query, err)
		}
		if last := x.Steps[len(x.Steps)-1]; last.Plan != want {
			t.Errorf("%q: the last step is %+v, want %s", query, last, want)
		}
	}
}

// ending ends the request when its page is read.
type ending struct {
	list.Store
	end func()
}

func (e *ending) Query(ctx context.Context, sql string, args ...any) (*store.Rows, error) {
	e.end()
	return e.Store.Query(ctx, sql, args...)
}
