package list_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"kontor/modules/kit/list"
	"kontor/modules/kit/types"
	"kontor/store"
	"kontor/store/storetest"
)

// thing is a record with a field of every type.
type thing struct {
	ID        string      `json:"id"`
	Owner     string      `json:"owner"`
	Name      string      `json:"name"`
	Status    string      `json:"status"`
	Active    bool        `json:"active"`
	Size      *int64      `json:"size"`
	Born      types.Date  `json:"born"`
	SeenAt    *store.Time `json:"seen_at"`
	CreatedAt store.Time  `json:"created_at"`
}

const createThings = `
	CREATE TABLE things (
		id TEXT PRIMARY KEY,
		owner TEXT NOT NULL,
		name TEXT NOT NULL,
		name_key TEXT NOT NULL,
		status TEXT NOT NULL,
		active BOOLEAN NOT NULL,
		size BIGINT,
		born TEXT,
		seen_at BIGINT,
		created_at BIGINT NOT NULL
	)`

const thingColumns = "t.id, t.owner, t.name, t.status, t.active, t.size, t.born, t.seen_at, t.created_at"

func scanThing(row list.Row) (thing, error) {
	var t thing
	err := row.Scan(&t.ID, &t.Owner, &t.Name, &t.Status, &t.Active, &t.Size, &t.Born, &t.SeenAt, &t.CreatedAt)
	return t, err
}

var things = list.New(list.Source[thing]{
	From:    "things t",
	Columns: thingColumns,
	ID:      "t.id",
	Created: "t.created_at",
	Tables:  []string{"things"},
	Scan:    scanThing,
	Fields: list.Fields{
		{Name: "id", Type: list.UUID, Column: "t.id"},
		{Name: "owner", Type: list.UUID, Column: "t.owner", Index: list.First},
		{Name: "title", Type: list.Blank},
		{Name: "name", Type: list.Text, Column: "t.name", Key: "t.name_key", Index: list.ThenID},
		{Name: "note", Type: list.Text, Column: "t.name", Key: "t.name_key", Index: list.EmptyApart},
		{Name: "plain", Type: list.Text, Column: "t.name"},
		{Name: "status", Type: list.Text, Column: "t.status", Key: "t.status", Index: list.ThenCreated, Few: true},
		{Name: "code", Type: list.Text, Column: "upper(t.status)", Key: "upper(t.status)", Fold: strings.ToUpper, Few: true},
		{Name: "active", Type: list.Bool, Column: "t.active", Few: true},
		{Name: "size", Type: list.Number, Column: "t.size", Null: true, Index: list.ThenID},
		{Name: "born", Type: list.Date, Column: "t.born", Null: true},
		{Name: "seen_at", Type: list.Time, Column: "t.seen_at", Null: true, Index: list.NullsApart},
		{Name: "created_at", Type: list.Time, Column: "t.created_at"},
	},
})

const (
	anna = "0193b000-0000-7000-8000-00000000000a"
	bob  = "0193b000-0000-7000-8000-00000000000b"
)

// id returns the id of the nth thing.
func id(n int) string { return fmt.Sprintf("0193b000-0000-7000-8000-%012d", n) }

func at(t testing.TB, s string) store.Time {
	t.Helper()
	parsed, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return store.TimeOf(parsed)
}

// open opens a database that contains the things.
func open(t testing.TB, all ...thing) *store.DB {
	t.Helper()
	db := storetest.Open(t)
	err := db.InTx(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(t.Context(), createThings)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	insert(t, db, all...)
	return db
}

func insert(t testing.TB, db *store.DB, all ...thing) {
	t.Helper()
	err := db.InTx(t.Context(), func(tx *store.Tx) error {
		for _, x := range all {
			_, err := tx.Exec(t.Context(), `
				INSERT INTO things (id, owner, name, name_key, status, active, size, born, seen_at, created_at)
				VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
				x.ID, x.Owner, x.Name, types.Fold(x.Name), x.Status, x.Active, numberValue(x.Size), x.Born, timeValue(x.SeenAt), int64(x.CreatedAt))
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func numberValue(n *int64) any {
	if n == nil {
		return nil
	}
	return *n
}

func timeValue(m *store.Time) any {
	if m == nil {
		return nil
	}
	return int64(*m)
}

// sampleThings returns six things, the oldest first.
func sampleThings(t testing.TB) []thing {
	size := func(n int64) *int64 { return &n }
	seen := func(s string) *store.Time { m := at(t, s); return &m }
	born := func(s string) types.Date { d, _ := types.ParseDate(s); return d }
	return []thing{
		{ID: id(1), Owner: anna, Name: "Müller", Status: "open", Active: true, Size: size(5), Born: born("1980-02-29"),
			SeenAt: seen("2026-01-31T08:15:30.123Z"), CreatedAt: at(t, "2025-12-31T23:59:59.999Z")},
		{ID: id(2), Owner: bob, Name: "MÜLLER", Status: "done", Active: false, Size: size(-3), Born: born("1990-01-01"),
			SeenAt: seen("2026-01-31T23:59:59.999Z"), CreatedAt: at(t, "2026-01-01T00:00:00Z")},
		{ID: id(3), Owner: anna, Name: "Straße 50%", Status: "open", Active: true, CreatedAt: at(t, "2026-01-31T10:00:00Z")},
		{ID: id(4), Owner: bob, Name: "a_b\\c", Status: "open", Active: true, Size: size(5), CreatedAt: at(t, "2026-01-31T10:00:00Z"),
			SeenAt: seen("1969-12-31T23:00:00Z")},
		{ID: id(5), Owner: anna, Name: "Anna", Status: "done", Active: false, Size: size(100), CreatedAt: at(t, "2026-02-01T09:59:00Z")},
		{ID: id(6), Owner: anna, Name: "", Status: "late", Active: false, Born: born("1980-02-28"), CreatedAt: at(t, "2026-02-01T11:00:00Z")},
	}
}

// page reads a page with the parameters of a query string.
func page(t testing.TB, db list.Store, query string, conditions ...list.Where) (list.Page[thing], error) {
	t.Helper()
	values, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	p, err := list.Parse(values)
	if err != nil {
		return list.Page[thing]{}, err
	}
	return things.Page(context.Background(), db, p, conditions...)
}

// lastDigits returns the last digit of each row's id.
func lastDigits(p list.Page[thing]) string {
	var b strings.Builder
	for _, row := range p.Data.Rows {
		b.WriteString(row.ID[len(row.ID)-1:])
	}
	return b.String()
}
