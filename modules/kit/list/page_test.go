package list_test

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"kontor/modules/kit/list"
	"kontor/server/apierr"
)

func TestPage_LimitAndOffset(t *testing.T) {
	many := make([]thing, 0, 120)
	for i := range 120 {
		many = append(many, thing{ID: id(i), Owner: anna, Status: "open", CreatedAt: at(t, "2026-01-01T00:00:00Z")})
	}
	db := open(t, many...)
	for _, test := range []struct {
		query string
		rows  int
		more  bool
	}{
		{"", 10, true}, {"limit=", 10, true}, {"limit=0", 10, true}, {"limit=-2", 10, true}, {"limit=1", 1, true},
		{"limit=100", 100, true}, {"limit=101", 100, true}, {"limit=99999999999999999999", 100, true},
		{"limit=-99999999999999999999", 10, true}, {"limit=5&limit=7", 7, true},
		{"limit=-1", 0, false}, {"limit=-1&offset=5", 0, false},
		{"offset=-5", 10, true}, {"offset=110", 10, false}, {"offset=109", 10, true}, {"offset=115", 5, false},
		{"offset=120", 0, false}, {"offset=9223372036854775807", 0, false}, {"offset=99999999999999999999", 0, false},
		{"limit=100&offset=20", 100, false}, {"limit=100&offset=19", 100, true},
	} {
		p, err := page(t, db, test.query)
		if err != nil || len(p.Data.Rows) != test.rows || p.HasMore != test.more || p.Total != 120 || p.TotalUnfiltered != 120 {
			t.Errorf("%s: %d rows, more %v, totals %d and %d, %v; want %d rows, more %v", test.query, len(p.Data.Rows), p.HasMore,
				p.Total, p.TotalUnfiltered, err, test.rows, test.more)
		}
	}
}

func TestPage_PagesCoverAllRowsOnce(t *testing.T) {
	many := make([]thing, 0, 57)
	for i := range 57 {
		many = append(many, thing{ID: id(i), Owner: anna, Status: fmt.Sprint(i % 3), CreatedAt: at(t, "2026-01-01T00:00:00Z")})
	}
	db := open(t, many...)
	for _, sort := range []string{"", "status", "-status", "size", "-seen_at,status"} {
		seen := map[string]bool{}
		for offset := 0; offset < 57; offset += 7 {
			p, err := page(t, db, fmt.Sprintf("limit=7&offset=%d&sort=%s", offset, sort))
			if err != nil {
				t.Fatal(err)
			}
			for _, row := range p.Data.Rows {
				if seen[row.ID] {
					t.Errorf("sort %q: %s is on two pages", sort, row.ID)
				}
				seen[row.ID] = true
			}
		}
		if len(seen) != 57 {
			t.Errorf("sort %q: %d of 57 rows are on the pages", sort, len(seen))
		}
	}
}

func TestPage_RejectsInvalidQueries(t *testing.T) {
	db := open(t, sampleThings(t)...)
	none := "search.size=77&"
	for _, test := range []struct {
		query string
		want  error
	}{
		{"limit=ten", apierr.InvalidInput}, {"limit=1.5", apierr.InvalidInput}, {"limit=1e1", apierr.InvalidInput}, {"limit=%2B", apierr.InvalidInput},
		{"offset=x", apierr.InvalidInput}, {"limit=x&search.nope=1", apierr.InvalidInput},

		{"search.nope=1", apierr.QueryInvalidSearchField}, {"search.=1", apierr.QueryInvalidSearchField},
		{"search.Name=1", apierr.QueryInvalidSearchField}, {"search.nope=1&limit=-1", apierr.QueryInvalidSearchField},
		{none + "search.nope=1", apierr.QueryInvalidSearchField}, {"search.name_key=x", apierr.QueryInvalidSearchField},
		{"search.nope=1&sort=nope&stack=nope[", apierr.QueryInvalidSearchField},

		{"sort=nope", apierr.QueryInvalidSortField}, {"sort=-nope", apierr.QueryInvalidSortField}, {"sort=name,nope", apierr.QueryInvalidSortField},
		{"sort=--name", apierr.QueryInvalidSortField}, {"sort=-", apierr.QueryInvalidSortField}, {"sort=name%3Bdrop", apierr.QueryInvalidSortField},
		{"sort=nope&offset=100", apierr.QueryInvalidSortField}, {"sort=nope&limit=-1", nil}, {none + "sort=nope", nil},
		{"search.size=x&sort=nope", nil},

		{"stack=nope", apierr.QueryInvalidField}, {"stack=-nope[day]", apierr.QueryInvalidField}, {"stack=active]", apierr.QueryInvalidField},
		{"stack=[day]", apierr.QueryInvalidField}, {"stack=-", apierr.QueryInvalidField}, {"stack=nope&limit=-1", nil}, {none + "stack=nope", nil},
		{"stack=active[", apierr.QueryInvalidFormat}, {"stack=created_at[day", apierr.QueryInvalidFormat}, {"stack=nope[day", apierr.QueryInvalidFormat},
		{"stack=created_at[day]x", apierr.QueryInvalidFormat}, {"stack=created_at[[day]]", apierr.QueryInvalidFormat},
		{"stack=created_at[week]", apierr.QueryInvalidFormat}, {"stack=created_at[YYYY-YYYY]", apierr.QueryInvalidFormat},
		{"stack=created_at[-]", apierr.QueryInvalidFormat}, {"stack=created_at[YYYY%00]", apierr.QueryInvalidFormat},
		{"stack=created_at[" + strings.Repeat("-", 500) + "]", apierr.QueryInvalidFormat},
		{"stack=active[&limit=-1", nil}, {none + "stack=active[", nil}, {"stack=active[whatever]", nil}, {"stack=created_at[]", nil},

		{"distinct=nope", apierr.QueryInvalidField}, {"distinct=nope&limit=-1", nil}, {none + "distinct=nope", nil},
		{"unknown=1&status=open", nil},
	} {
		_, err := page(t, db, test.query)
		if (test.want == nil && err != nil) || !errors.Is(err, test.want) {
			t.Errorf("%s: got %v, want %v", test.query, err, test.want)
		}
	}
}

func TestPage_IgnoresInvalidFieldsWithoutRows(t *testing.T) {
	db := open(t)
	p, err := page(t, db, "sort=nope&stack=nope[&distinct=nope")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := encode(t, p), `{"data":{},"total":0,"total_unfiltered":0,"has_more":false}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestParse_BoundsValues(t *testing.T) {
	for name, query := range map[string]url.Values{
		"search.name": {"search.name": {strings.Repeat("a,", 101)}},
		"search.size": {"search.size": strings.Split(strings.Repeat("1 ", 101), " ")},
		"search.x":    {"search.x": {strings.Repeat("a", 1001)}},
		"sort":        {"sort": {strings.Repeat("name,", 101)}},
		"limit":       {"limit": {"many"}},
		"offset":      {"offset": {"0x10"}},
	} {
		_, err := list.Parse(query)
		var refused *apierr.Error
		if !errors.As(err, &refused) || refused.Kind != apierr.InvalidInput || !refused.Fields.Has(name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := list.Parse(url.Values{"search.name": {strings.Repeat("a,", 100)}}); err != nil {
		t.Errorf("100 values: %v", err)
	}
}

func TestPage_ConditionsHoldForBothTotals(t *testing.T) {
	db := open(t, sampleThings(t)...)
	owned := list.Where{SQL: "t.owner = $1 OR t.owner = $2", Args: []any{anna, "nobody"}}
	recent := list.Where{SQL: "t.created_at >= $1", Args: []any{int64(at(t, "2026-01-31T00:00:00Z"))}}
	p, err := page(t, db, "search.status=open,late&sort=created_at&limit=1&offset=1", owned, list.Where{}, recent)
	if err != nil {
		t.Fatal(err)
	}
	if lastDigits(p) != "6" || p.Total != 2 || p.TotalUnfiltered != 3 || p.HasMore {
		t.Errorf("got %q, %d of %d, more %v", lastDigits(p), p.Total, p.TotalUnfiltered, p.HasMore)
	}
	stacked, err := page(t, db, "stack=status&distinct=status&search.active=true,false", owned, recent)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(stacked.Keys, stacked.Metadata.GroupTotals, stacked.Total); got != "[done late open] [{done 1} {late 1} {open 1}] 3" {
		t.Errorf("got %s", got)
	}
}

func TestPage_TotalsFollowChanges(t *testing.T) {
	db := open(t, sampleThings(t)...)
	for want := int64(3); want < 6; want++ {
		p, err := page(t, db, "search.status=open&limit=1")
		if err != nil || p.Total != want || p.TotalUnfiltered != want+3 {
			t.Fatalf("totals %d of %d, %v; want %d", p.Total, p.TotalUnfiltered, err, want)
		}
		insert(t, db, thing{ID: id(int(want) + 10), Owner: bob, Status: "open"})
	}
}

func encode(t *testing.T, v any) string {
	t.Helper()
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
