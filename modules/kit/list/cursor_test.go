package list_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"kontor/modules/kit/list"
	"kontor/server/apierr"
	"kontor/store"
)

// pages follows the cursors from the first page to the last and returns the ids of all rows.
func pages(t *testing.T, db list.Store, query string, each func(), conditions ...list.Where) (ids []string) {
	t.Helper()
	cursor := ""
	for range 100 {
		p, err := page(t, db, query+"&cursor="+cursor, conditions...)
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		for _, row := range p.Data.Rows {
			ids = append(ids, row.ID)
		}
		if cursor = p.NextCursor; cursor == "" {
			if p.HasMore {
				t.Errorf("%s: has_more without a cursor", query)
			}
			return ids
		}
		if !p.HasMore {
			t.Errorf("%s: a cursor without has_more", query)
		}
		each()
	}
	t.Fatalf("%s: the pages do not end", query)
	return nil
}

func many(n int) []thing {
	all := make([]thing, n)
	for i := range all {
		size, seen := int64(i%4), store.Time(i%3)
		all[i] = thing{ID: id(i + 1), Owner: []string{anna, bob}[i%2], Name: fmt.Sprint("n", i%5), Status: []string{"open", "done", "late"}[i%3],
			Active: i%2 == 0, Size: &size, SeenAt: &seen, CreatedAt: store.Time(i / 2)}
		if i%5 == 0 {
			all[i].Name, all[i].Size = "", nil
		}
		if i%4 == 0 {
			all[i].SeenAt = nil
		}
	}
	return all
}

// The pages of a cursor are the rows that one large page has, for each sort, search and condition.
func TestPage_CursorsPassEveryRowOnce(t *testing.T) {
	db := open(t, many(40)...)
	for _, sort := range []string{"", "created_at", "-created_at", "name", "-name", "size", "-size", "seen_at,-size", "-seen_at,size", "seen_at", "-seen_at",
		"active", "-active", "code", "-code", "note", "-note", "owner", "status,-name,size", "id", "-id", "active,-size"} {
		for _, search := range []string{"", "&search.status=open,late", "&search.size=1..3", "&distinct=name", "&stack=status"} {
			for name, where := range map[string][]list.Where{
				"all":   nil,
				"owner": {{SQL: "t.owner = $1", Args: []any{anna}}},
				"mine":  {{Any: []string{"t.owner = $1", "t.status = $2"}, Granted: "SELECT '" + id(7) + "' WHERE $1 <> ''", Args: []any{anna, "late"}}},
			} {
				query := "sort=" + sort + search
				var want []string
				for offset := 0; ; offset += 50 {
					p, err := page(t, db, fmt.Sprintf("%s&limit=50&offset=%d", query, offset), where...)
					if err != nil {
						t.Fatal(err)
					}
					for _, row := range p.Data.Rows {
						want = append(want, row.ID)
					}
					if !p.HasMore {
						break
					}
				}
				for offset := range len(want) / 7 {
					p, err := page(t, db, fmt.Sprintf("%s&limit=7&offset=%d", query, 7*offset), where...)
					if err != nil {
						t.Fatal(err)
					}
					for i, row := range p.Data.Rows {
						if row.ID != want[7*offset+i] {
							t.Errorf("%s, %s, row %d: got %s, want %s", name, query, 7*offset+i, row.ID, want[7*offset+i])
						}
					}
				}
				for _, limit := range []int{3, 17} {
					if got := pages(t, db, fmt.Sprintf("%s&limit=%d", query, limit), func() {}, where...); !slices.Equal(got, want) {
						t.Errorf("%s, %s, limit %d:\n got %v\nwant %v", name, query, limit, got, want)
					}
				}
			}
		}
	}
}

// Rows that are created or deleted between two pages neither repeat others nor leave them out.
func TestPage_CursorsAreStable(t *testing.T) {
	db := open(t, many(30)...)
	n := 100
	got := pages(t, db, "limit=4", func() {
		n++
		insert(t, db, thing{ID: id(n), Owner: anna, Status: "open", CreatedAt: store.Time(1000 + n)}) // before the first page
		err := db.InTx(t.Context(), func(tx *store.Tx) error {
			_, err := tx.Exec(t.Context(), `DELETE FROM things WHERE id = $1`, id(30-4*(n-101))) // the first row of a page that was read
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
	var want []string
	for i := 30; i > 0; i-- {
		want = append(want, id(i))
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

func TestPage_RejectsWrongCursors(t *testing.T) {
	db := open(t, many(30)...)
	p, err := page(t, db, "sort=name&limit=2&search.status=open")
	if err != nil || p.NextCursor == "" {
		t.Fatal(p, err)
	}
	again, err := page(t, db, "sort=name&limit=2&search.status=open")
	if err != nil || again.NextCursor != p.NextCursor {
		t.Errorf("the same page has the cursors %s and %s", p.NextCursor, again.NextCursor)
	}
	open, err := base64.RawURLEncoding.DecodeString(p.NextCursor)
	if last := p.Data.Rows[len(p.Data.Rows)-1].ID; err != nil || bytes.Contains(open, []byte(last)) {
		t.Errorf("the cursor %q shows the value %s, %v", open, last, err)
	}
	changed := []byte(p.NextCursor)
	changed[len(changed)/2] ^= 1
	for name, query := range map[string]string{
		"another sort":     "sort=-name&search.status=open&cursor=" + p.NextCursor,
		"another search":   "sort=name&search.status=done&cursor=" + p.NextCursor,
		"another distinct": "sort=name&search.status=open&distinct=name&cursor=" + p.NextCursor,
		"changed":          "sort=name&search.status=open&cursor=" + string(changed),
		"cut":              "sort=name&search.status=open&cursor=" + p.NextCursor[:20],
		"longer":           "sort=name&search.status=open&cursor=" + p.NextCursor + "AA",
		"nonsense":         "cursor=x",
		"huge":             "cursor=" + strings.Repeat("A", 9000),
	} {
		_, err := page(t, db, query)
		if wrong := wrongFields(err); len(wrong) != 1 || wrong["cursor"] != "invalid.cursor" {
			t.Errorf("%s: %v %v", name, err, wrong)
		}
	}
}

// A page far behind the first is read by its ids, and is the same.
func TestPage_DeepPages(t *testing.T) {
	db := open(t, many(1300)...)
	for _, where := range [][]list.Where{
		nil,
		{{Any: []string{"t.owner IN ($1, $2)"}, Granted: "SELECT t2.id FROM things t2 WHERE t2.id = $2 AND $1 <> ''", Args: []any{anna, bob}}},
	} {
		p, err := page(t, db, "sort=id&offset=1205&limit=3", where...)
		if err != nil || len(p.Data.Rows) != 3 || p.Data.Rows[0].ID != id(1206) || !p.HasMore {
			t.Fatalf("%v: %v, %v", where, p.Data.Rows, err)
		}
	}
}

// wrongFields returns the keys of the wrong fields of an error.
func wrongFields(err error) map[string]string {
	wrong := map[string]string{}
	if e := apierr.Of(err); err != nil && e.Fields != nil {
		for name, text := range e.Fields.All {
			wrong[name] = text.Key
		}
	}
	return wrong
}
