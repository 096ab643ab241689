package list_test

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"kontor/modules/kit/list"
	"kontor/modules/kit/types"
	"kontor/store"
)

// model implements the list over a slice, without optimizations.
type model struct {
	rows []thing
}

func (m model) matching(status, active []string, low, high int64, ranged bool, pattern string) []thing {
	var found []thing
	for _, x := range m.rows {
		switch {
		case len(status) > 0 && !slices.Contains(status, x.Status):
		case len(active) > 0 && !slices.Contains(active, fmt.Sprint(x.Active)):
		case ranged && (x.Size == nil || *x.Size < low || *x.Size > high):
		case pattern != "" && !strings.Contains(types.Fold(x.Name), types.Fold(pattern)):
		default:
			found = append(found, x)
		}
	}
	return found
}

func compareBy(field string, a, b thing) int {
	switch field {
	case "name":
		return strings.Compare(types.Fold(a.Name), types.Fold(b.Name))
	case "status":
		return strings.Compare(a.Status, b.Status)
	case "active":
		return cmp.Compare(fmt.Sprint(a.Active), fmt.Sprint(b.Active))
	case "created_at":
		return cmp.Compare(a.CreatedAt, b.CreatedAt)
	case "size":
		switch {
		case a.Size == nil || b.Size == nil:
			return cmp.Compare(fmt.Sprint(a.Size != nil), fmt.Sprint(b.Size != nil))
		default:
			return cmp.Compare(*a.Size, *b.Size)
		}
	}
	return strings.Compare(a.ID, b.ID)
}

func sorted(rows []thing, keys []string) []thing {
	if len(keys) == 0 {
		keys = []string{"-created_at"}
	}
	keys = append(slices.Clone(keys), map[bool]string{true: "-id", false: "id"}[strings.HasPrefix(keys[len(keys)-1], "-")])
	rows = slices.Clone(rows)
	slices.SortFunc(rows, func(a, b thing) int {
		for _, key := range keys {
			field, descending := strings.CutPrefix(key, "-")
			if c := compareBy(field, a, b); c != 0 {
				if descending {
					return -c
				}
				return c
			}
		}
		return 0
	})
	return rows
}

func TestPage_AgreesWithTheModel(t *testing.T) {
	var m model
	for i := range 60 {
		x := thing{ID: id(i), Owner: []string{anna, bob, bob}[i%3], Name: []string{"Müller", "MEIER", "a%b", "a_b", "*", ""}[i%6], Status: []string{"open", "done", "late"}[i*7%3],
			Active: i%4 == 0, CreatedAt: store.Time(i / 5 * 1000)}
		if i%5 > 0 {
			size := int64(i % 9)
			x.Size = &size
		}
		m.rows = append(m.rows, x)
	}
	db := open(t, m.rows...)
	rapid.Check(t, func(r *rapid.T) {
		status := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"open", "done", "late", "none"}), 0, 3, rapid.ID).Draw(r, "status")
		active := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"true", "false"}), 0, 2, rapid.ID).Draw(r, "active")
		ranged := rapid.Bool().Draw(r, "ranged")
		low, high := rapid.Int64Range(-1, 9).Draw(r, "low"), rapid.Int64Range(-1, 9).Draw(r, "high")
		pattern := rapid.SampledFrom([]string{"", "ü", "M", "%", "_", "e"}).Draw(r, "pattern")
		sort := rapid.SliceOfN(rapid.SampledFrom([]string{"name", "-name", "status", "-status", "active", "size", "-size", "created_at", "-created_at"}), 0, 3).Draw(r, "sort")
		distinct := rapid.SampledFrom([]string{"", "", "status", "active", "size"}).Draw(r, "distinct")
		scoped := rapid.Bool().Draw(r, "scoped")
		limit, offset := rapid.IntRange(1, 20).Draw(r, "limit"), rapid.IntRange(0, 70).Draw(r, "offset")

		query := url.Values{"limit": {fmt.Sprint(limit)}, "offset": {fmt.Sprint(offset)}, "sort": sort, "distinct": {distinct}}
		add := func(name string, values ...string) {
			if len(values) > 0 {
				query["search."+name] = values
			}
		}
		add("status", status...)
		add("active", active...)
		if ranged {
			add("size", fmt.Sprintf("%d..%d", low, high))
		}
		if pattern != "" {
			add("name", "*"+pattern+"*")
		}

		want := sorted(m.matching(status, active, low, high, ranged, pattern), withoutRepeatedFields(sort))
		visible := 60
		if scoped {
			want = slices.DeleteFunc(want, func(x thing) bool { return !visibleToAnna(x) })
			visible = 22
		}
		if distinct != "" {
			seen := map[string]bool{}
			want = slices.DeleteFunc(want, func(x thing) bool {
				key := map[string]string{"status": x.Status, "active": fmt.Sprint(x.Active), "size": "null"}[distinct]
				if distinct == "size" && x.Size != nil {
					key = fmt.Sprint(*x.Size)
				}
				again := seen[key]
				seen[key] = true
				return again
			})
		}
		total := len(want)
		want = want[min(offset, total):min(offset+limit, total)]

		var conditions []list.Where
		if scoped {
			conditions = append(conditions, list.Where{}, list.Where{
				SQL: "t.created_at >= $1", Any: []string{"t.owner = $2", "t.id = $3 OR t.id = $4"}, Granted: "SELECT g.id FROM things g WHERE g.id IN ($3, $5)", Args: []any{0, anna, id(4), id(6), id(58)},
			})
		}
		got, err := page(t, db, query.Encode(), conditions...)
		if err != nil {
			r.Fatal(err)
		}
		if fmt.Sprint(ids(got.Data.Rows)) != fmt.Sprint(ids(want)) {
			r.Fatalf("%s:\n got %v\nwant %v", query.Encode(), ids(got.Data.Rows), ids(want))
		}
		more := len(want) > 0 && offset+len(want) < total
		if int(got.Total) != total || int(got.TotalUnfiltered) != visible || got.HasMore != more {
			r.Fatalf("%s: total %d of %d, more %v; want %d of %d, more %v", query.Encode(), got.Total, got.TotalUnfiltered, got.HasMore, total, visible, more)
		}
	})
}

// visibleToAnna reports whether anna created a thing or has a grant on it.
func visibleToAnna(x thing) bool {
	return x.Owner == anna || x.ID == id(4) || x.ID == id(6) || x.ID == id(58)
}

// withoutRepeatedFields drops the keys of fields that occurred before. They do not change the order.
func withoutRepeatedFields(keys []string) []string {
	var first []string
	for _, key := range keys {
		field := strings.TrimPrefix(key, "-")
		if !slices.ContainsFunc(first, func(k string) bool { return strings.TrimPrefix(k, "-") == field }) {
			first = append(first, key)
		}
	}
	return first
}

func ids(rows []thing) []string {
	names := make([]string, len(rows))
	for i, row := range rows {
		names[i] = row.ID[len(row.ID)-2:]
	}
	return names
}
