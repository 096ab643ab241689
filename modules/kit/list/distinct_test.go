package list_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"kontor/modules/kit/list"
	"kontor/store"
	"kontor/store/storetest"
)

// With more values than are remembered, their number comes from all rows, and a page from the first ones.
func TestPage_DistinctManyValues(t *testing.T) {
	const rows = 1500
	all := make([]thing, rows)
	for i := range all {
		size := int64(i / 2)
		all[i] = thing{ID: id(i + 1), Owner: anna, Name: fmt.Sprint("n", i), Status: fmt.Sprintf("s%04d", i), CreatedAt: store.Time(i), Size: &size}
	}
	all[7].Size = nil
	db := open(t, all...)
	for query, want := range map[string]struct {
		total int64
		first string
	}{
		"distinct=name":                              {rows, id(rows)},
		"distinct=plain&sort=created_at":             {rows, id(1)},
		"distinct=created_at&offset=1499":            {rows, id(1)},
		"distinct=status&sort=status":                {rows, id(1)},
		"distinct=size":                              {rows/2 + 1, id(rows)},
		"distinct=size&sort=size":                    {rows/2 + 1, id(8)},
		"distinct=code&search.code=s0003":            {1, id(4)},
		"search.status=*1":                           {rows / 10, id(rows - 8)}, // too many values to add up
		"sort=-code&offset=1000":                     {rows, id(500)},
		"distinct=owner":                             {1, id(rows)},
		"distinct=id&search.created_at=1970-01-01..": {rows, id(rows)},
	} {
		for range 2 {
			p, err := page(t, db, query)
			if err != nil || p.Total != want.total || p.Data.Rows[0].ID != want.first {
				t.Errorf("%s: %d rows, first %+v, %v; want %d, %s", query, p.Total, p.Data.Rows, err, want.total, want.first)
			}
		}
	}
}

// The first row of a rare value is found, however many rows of another value come before it.
func TestPage_DistinctRareValues(t *testing.T) {
	db := open(t, thing{ID: id(1), Owner: bob, Name: "rare", Status: "done", Active: true, CreatedAt: 1})
	err := db.InTx(t.Context(), func(tx *store.Tx) error {
		for from := 2; from < 25_002; from += 1000 {
			var values []string
			for i := from; i < from+1000; i++ {
				values = append(values, fmt.Sprintf("('%s', '%s', 'n', 'n', 'open', FALSE, %d)", id(i), anna, i))
			}
			if _, err := tx.Exec(t.Context(), "INSERT INTO things (id, owner, name, name_key, status, active, created_at) VALUES "+strings.Join(values, ", ")); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, query := range []string{"distinct=status", "distinct=owner", "distinct=active", "distinct=code", "distinct=plain"} {
		p, err := page(t, db, query)
		if err != nil || p.Total != 2 || len(p.Data.Rows) != 2 || p.Data.Rows[0].ID != id(25_001) || p.Data.Rows[1].ID != id(1) {
			t.Errorf("%s: %+v, %v", query, p.Data.Rows, err)
		}
	}
}

// A search for a field with few values adds up the numbers of the values that SQL finds.
func TestPage_FewValuesAreSearchedAsSQLDoes(t *testing.T) {
	things := sampleThings(t)
	for i, status := range []string{"", "a%b", "a*b", "Ä", "a_b", "ab", "null", "b", "aab"} {
		things = append(things, thing{ID: id(100 + i), Owner: anna, Status: strings.ToLower(status), CreatedAt: 5})
	}
	db := open(t, things...)
	slow := list.New(source(false))
	quick := list.New(source(true))
	for _, value := range []string{"open", "OPEN", "*", "**", "a*b", "*a*b*", "a%b", "*%*", "*_*", "a*", "*b", "*a*a*b", "ä", "*Ä*", "null", `""`, `"a,b",ab`, "open,late,*b", "x", "*\x00*", "%00", "a**b", "b*b"} {
		for _, parameter := range []string{"status", "active"} {
			p := parsedParams(t, url.Values{"search." + parameter: {value}})
			want, err := slow.Page(t.Context(), db, p)
			if err != nil {
				t.Fatal(err)
			}
			got, err := quick.Page(t.Context(), db, p)
			if err != nil || got.Total != want.Total {
				t.Errorf("%s=%q: %d rows, %v; want %d", parameter, value, got.Total, err, want.Total)
			}
		}
	}
	if storetest.SQLiteOnly(t, "numbers of rows survive commits only there") {
		return
	}
	r := &recorder{Store: db}
	for _, value := range []string{"open", "late", "*o*"} {
		if _, err := quick.Page(t.Context(), r, parsedParams(t, url.Values{"search.status": {value}, "limit": {"-1"}})); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range r.counts {
		if len(c.Args) > 0 {
			t.Errorf("a count of its own: %s", c.SQL)
		}
	}
}

func parsedParams(t *testing.T, values url.Values) list.Params {
	t.Helper()
	p, err := list.Parse(values)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// source is a list of things by status and activity.
func source(few bool) list.Source[thing] {
	return list.Source[thing]{
		From: "things", Columns: "id", ID: "id", Created: "created_at", Tables: []string{"things"},
		Fields: list.Fields{{Name: "status", Type: list.Text, Column: "status", Key: "status", Few: few}, {Name: "active", Type: list.Bool, Column: "active", Few: few}},
		Scan:   func(row list.Row) (x thing, err error) { return x, row.Scan(&x.ID) },
	}
}
