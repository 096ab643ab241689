package list_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"kontor/modules/kit/list"
	"kontor/store"
)

// A page far behind the first has the rows that a reader finds who follows the cursors, in every order and with a search.
func TestPage_FarBehindTheFirst(t *testing.T) {
	const rows = 2600
	all := make([]thing, rows)
	for i := range all {
		x := thing{ID: id(i*7919%rows + 1), Owner: []string{anna, bob}[i*i%7%2], Status: []string{"open", "done", "late"}[i%3], Active: i%5 == 0, CreatedAt: store.Time(i / 3)}
		if i%40 == 0 {
			x.Name = fmt.Sprint("Note ", i%400)
		}
		if i%2 == 0 {
			seen := store.Time(i % 700)
			x.SeenAt = &seen
		}
		all[i] = x
	}
	db := open(t, all...)
	for _, sort := range []string{"", "owner", "-owner", "seen_at", "-seen_at", "note", "-note", "status", "-status", "active", "code", "name", "size", "seen_at,-status"} {
		for _, search := range []string{"", "search.active=false", "search.code=open,late", "search.seen_at=null"} {
			query := search + "&limit=100&sort=" + sort
			var inOrder []string
			for cursor := ""; ; {
				p, err := page(t, db, query+"&cursor="+url.QueryEscape(cursor))
				if err != nil {
					t.Fatal(query, err)
				}
				inOrder = append(inOrder, idsOf(p.Data.Rows)...)
				if cursor = p.NextCursor; cursor == "" {
					if len(inOrder) != int(p.Total) {
						t.Errorf("%s: %d rows of %d after cursors", query, len(inOrder), p.Total)
					}
					break
				}
			}
			if unique := slices.Compact(slices.Sorted(slices.Values(inOrder))); len(unique) != len(inOrder) {
				t.Errorf("%s: cursors repeat rows", query)
			}
			for _, offset := range []int{950, 1290, 1301, len(inOrder) - 3, len(inOrder)} {
				offset = min(offset, len(inOrder))
				p, err := page(t, db, fmt.Sprintf("%s&offset=%d", query, offset))
				want := inOrder[offset:min(offset+100, len(inOrder))]
				if err != nil || !slices.Equal(idsOf(p.Data.Rows), want) {
					t.Errorf("%s&offset=%d: %v, %v; want %v", query, offset, short(idsOf(p.Data.Rows)), err, short(want))
				}
			}
		}
	}
}

func idsOf(rows []thing) []string {
	all := make([]string, len(rows))
	for i := range rows {
		all[i] = rows[i].ID
	}
	return all
}

func short(ids []string) string { return strings.Join(ids[:min(3, len(ids))], " ") }

// Far behind the first page in the order of the ids, hidden rows are neither shown nor counted as rows before the page.
func TestPage_FarBehindTheFirstWithHiddenRows(t *testing.T) {
	shown := list.New(list.Source[thing]{
		From: "things", Columns: strings.ReplaceAll(thingColumns, "t.", ""), ID: "id", Created: "created_at", Tables: []string{"things"}, Scan: scanThing,
		Base: list.Where{SQL: "active = FALSE"}, Hidden: "active = TRUE",
		Fields: list.Fields{{Name: "id", Type: list.UUID, Column: "id"}},
	})
	all := many(1500)
	var ids []string
	for i := range all {
		if all[i].Active = i%7 == 3 || i < 40; !all[i].Active {
			ids = append(ids, all[i].ID)
		}
	}
	db := open(t, all...)
	for _, sort := range []string{"id", "-id"} {
		for _, offset := range []int{990, 1001, len(ids) - 3, len(ids)} {
			p, err := list.Parse(url.Values{"sort": {sort}, "limit": {"20"}, "offset": {fmt.Sprint(offset)}})
			if err != nil {
				t.Fatal(err)
			}
			got, err := shown.Page(t.Context(), db, p)
			want := ids[offset:min(offset+20, len(ids))]
			if err != nil || int(got.Total) != len(ids) || !slices.Equal(idsOf(got.Data.Rows), want) {
				t.Errorf("sort %s, offset %d: %v of %d, %v; want %v of %d", sort, offset, short(idsOf(got.Data.Rows)), got.Total, err, short(want), len(ids))
			}
		}
		slices.Reverse(ids)
	}
}
