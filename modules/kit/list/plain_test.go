package list_test

import (
	"fmt"
	"net/url"
	"testing"

	"kontor/modules/kit/list"
)

// plain is declared like the lists of most modules: one table, with unqualified columns.
var plain = list.New(list.Source[string]{
	From: "things", Columns: "id", ID: "id", Tables: []string{"things"},
	Base: list.Where{SQL: "size IS NOT NULL OR id <> $1", Args: []any{id(6)}},
	Scan: func(row list.Row) (s string, err error) {
		err = row.Scan(&s)
		return s[len(s)-1:], err
	},
	Fields: list.Fields{{Name: "id", Type: list.UUID, Column: "id"}, {Name: "active", Type: list.Bool, Column: "active"}},
})

func TestPage_PlainColumns(t *testing.T) {
	db := open(t, sampleThings(t)...)
	withLate := list.Where{Any: []string{"owner = $1"}, Granted: "SELECT g.id FROM things g WHERE g.status = $2", Args: []any{bob, "late"}}
	withOpen := list.Where{Any: []string{"owner = $1"}, Granted: "SELECT g.id FROM things g WHERE g.status = $2", Args: []any{bob, "open"}}
	for _, test := range []struct {
		query string
		where list.Where
		want  string
	}{
		{"", list.Where{}, "[5 4 3 2 1] of 5"},
		{"", withLate, "[4 2] of 2"},
		{"", withOpen, "[4 3 2 1] of 4"},
		{"limit=2&offset=1", withOpen, "[3 2] of 4"},
		{"distinct=active", withOpen, "[4 2] of 2"},
		{"search.active=true&sort=id", withOpen, "[1 3 4] of 3"},
		{"sort=active,-id", withOpen, "[2 4 3 1] of 4"},
	} {
		values, _ := url.ParseQuery(test.query)
		p, err := list.Parse(values)
		if err != nil {
			t.Fatal(err)
		}
		got, err := plain.Page(t.Context(), db, p, test.where)
		if result := fmt.Sprintf("%v of %d", got.Data.Rows, got.Total); err != nil || result != test.want {
			t.Errorf("%s: got %s, %v; want %s", test.query, result, err, test.want)
		}
	}
}

func TestNew_RejectsIncompleteDeclarations(t *testing.T) {
	whole := list.Source[string]{From: "things", Columns: "id", ID: "id", Tables: []string{"things"}, Scan: func(list.Row) (string, error) { return "", nil }}
	for name, fields := range map[string]list.Fields{
		"no name":         {{Type: list.Bool, Column: "active"}},
		"no type":         {{Name: "active", Column: "active"}},
		"no column":       {{Name: "active", Type: list.Bool}},
		"blank column":    {{Name: "title", Type: list.Blank, Column: "title"}},
		"key of a number": {{Name: "size", Type: list.Number, Column: "size", Key: "size_key"}},
		"twice":           {{Name: "id", Type: list.UUID, Column: "id"}, {Name: "id", Type: list.UUID, Column: "id"}},
	} {
		source := whole
		source.Fields = fields
		if !panics(func() { list.New(source) }) {
			t.Errorf("%s was accepted", name)
		}
	}
	source := whole
	source.Tables = nil
	if !panics(func() { list.New(source) }) {
		t.Error("a list without tables was accepted")
	}
	if panics(func() { list.New(whole) }) {
		t.Error("a complete declaration was rejected")
	}
}

func panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return false
}
