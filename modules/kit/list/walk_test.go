package list_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"kontor/modules/kit/list"
	"kontor/store"
	"kontor/store/storetest"
)

// Pages that are found by passing rows in their order are those that the database sorts: with enough rows to pass, and when the walk
// ends too early.
func TestPage_WalkedPagesAreTheSortedOnes(t *testing.T) {
	db := open(t, many(60)...)
	var queries []string
	for _, sort := range []string{"", "created_at", "name", "-name", "size", "-size", "seen_at", "-seen_at", "active", "-code", "note", "-note", "owner", "-owner", "id",
		"-id", "status", "born", "active,-size"} {
		for _, search := range []string{"", "search.status=open,late", "search.size=1..3", "search.active=true&search.name=n*", "search.seen_at=null", "search.note=n1,n2",
			"search.owner=" + anna + "&search.active=false"} {
			for _, distinct := range []string{"", "status", "owner", "name"} {
				queries = append(queries, "sort="+sort+"&"+search+"&distinct="+distinct)
			}
		}
	}
	pages := func() (all [][]string) {
		for _, query := range queries {
			for offset := 0; offset < 30; offset += 11 {
				all = append(all, foundIDs(t, db, fmt.Sprintf("%s&limit=7&offset=%d", query, offset)))
			}
		}
		return all
	}
	sorted := pages()
	for _, bounds := range []struct {
		rows     int64
		distinct int64
		round    int64
	}{{50_000, 1_000_000, 1_000_000}, {50_000, 1_000_000, 1}, {50_000, 7, 2}, {9, 1, 1}} {
		t.Run(fmt.Sprint(bounds), func(t *testing.T) {
			list.SetWalks(t, 0, 1, bounds.rows, bounds.distinct, bounds.round)
			for i, walked := range pages() {
				if !slices.Equal(walked, sorted[i]) {
					t.Errorf("%s, offset %d: got %v, want %v", queries[i/3], i%3*11, walked, sorted[i])
				}
			}
		})
	}
}

func foundIDs(t *testing.T, db *store.DB, query string) []string {
	t.Helper()
	p, err := page(t, db, query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return idsOf(p.Data.Rows)
}

// Walked pages have the cursors and the rows that the tests of few rows expect.
func TestPage_WalkedPagesHaveCursorsAndConditions(t *testing.T) {
	for _, rows := range []int64{3, 50_000} {
		if raceDetector && rows > 3 {
			return
		}
		t.Run(fmt.Sprint(rows), func(t *testing.T) {
			list.SetWalks(t, 0, 1, rows, 1_000_000, 2)
			t.Run("cursors", TestPage_CursorsPassEveryRowOnce)
			t.Run("model", TestPage_AgreesWithTheModel)
		})
	}
}

// Many rows match a search, and the first ones of the order are among them: their index is read, and not that of the search.
func TestPage_WalksTheIndexOfTheOrder(t *testing.T) {
	if storetest.SQLiteOnly(t, "query plans are in the words of SQLite") {
		return
	}
	list.SetWalks(t, 0, 1, 50_000, 1_000_000, 2)
	db := open(t, many(40)...)
	addIndexes(t, db)
	r := &recorder{Store: db}
	if _, err := page(t, r, "search.status=open,late&sort=name&limit=5"); err != nil {
		t.Fatal(err)
	}
	want := []string{"SCAN t USING INDEX things_name_key_id", "SEARCH t USING INDEX sqlite_autoindex_things_1 (id=?); USE TEMP B-TREE FOR ORDER BY"}
	for i, sql := range r.statements {
		if plan := strings.Join(storetest.Plan(t, db, sql, r.args[i]...), "; "); i >= len(want) || plan != want[i] {
			t.Errorf("%s\n got %s\nwant %v", sql, plan, want)
		}
	}
}
