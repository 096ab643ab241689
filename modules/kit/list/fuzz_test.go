package list_test

import (
	"errors"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"kontor/modules/kit/list"
	"kontor/server/apierr"
)

// vocabulary contains every word that a statement may contain. Any other word comes from the client.
var vocabulary = func() map[string]bool {
	words := map[string]bool{}
	for word := range strings.FieldsSeq(`
		SELECT FROM WHERE AND OR IN UNION LIKE ESCAPE TRUE FALSE ORDER BY DESC NULLS FIRST LAST LIMIT OFFSET GROUP DISTINCT CROSS JOIN AS OVER PARTITION
		CASE WHEN THEN ELSE END count row_number upper lower ranked part granted granted_id WITH place found value bucket things t
		id owner name name_key status active size born seen_at created_at 1 86400000 3600000 60000 1000`) {
		words[word] = true
	}
	return words
}()

var (
	placeholder = regexp.MustCompile(`\$[0-9]+`)
	literal     = regexp.MustCompile(`''|'\\'`)
	word        = regexp.MustCompile(`[A-Za-z0-9_]+`)
	marks       = regexp.MustCompile(`^[ (),.*=<>%+-]*$`)
)

// foreignWord returns a part of a statement that is not in the vocabulary, or an empty text.
func foreignWord(sql string) string {
	rest := literal.ReplaceAllString(placeholder.ReplaceAllString(sql, ""), "")
	for _, w := range word.FindAllString(rest, -1) {
		if !vocabulary[w] {
			return w
		}
	}
	if rest = word.ReplaceAllString(rest, ""); !marks.MatchString(rest) {
		return rest
	}
	return ""
}

// FuzzPage checks that no query string causes a panic, a failing statement, an undocumented error, or a statement with
// text of the client.
func FuzzPage(f *testing.F) {
	for _, query := range []string{
		"limit=5&offset=1&sort=-name,size&stack=-created_at[YYYY-MM]&distinct=status&search.status=open,done&search.created_at=2026-01-01..",
		"search.name=a*b%25_c\\,x&search.size=..5,7,1..2&search.id=" + id(1) + "&search.active=true&stack=active[",
		"search.born=1980-02-29..&search.seen_at=2026-01-31T00:00:00.5Z&sort=born,-seen_at&stack=seen_at[HH:mm:ss]&limit=-1",
		"sort=name';DROP TABLE things--&stack=t.id)&distinct=1", "search.title=*&search.code=ab&search.plain=*x*&stack=title&distinct=title",
		"limit=%F0%9F&search.name=%FF%00&sort=%00", "search.=&search.name;x=1&limit=&limit=-1",
	} {
		f.Add(query)
	}
	db := open(f, sampleThings(f)...)
	f.Fuzz(func(t *testing.T, query string) {
		values, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		p, err := list.Parse(values)
		if err != nil {
			if !errors.Is(err, apierr.InvalidInput) {
				t.Errorf("%q: %v", query, err)
			}
			return
		}
		r := &recorder{Store: db}
		got, err := things.Page(t.Context(), r, p, list.Where{SQL: "t.owner IN ($2, $1)", Any: []string{"t.owner = $2"}, Granted: "SELECT t.id FROM things t WHERE t.owner = $1", Args: []any{anna, bob}})
		for _, sql := range r.statements {
			if w := foreignWord(sql); w != "" {
				t.Errorf("%q produced a statement with %q: %s", query, w, sql)
			}
		}
		var refused *apierr.Error
		if err != nil && (!errors.As(err, &refused) || !strings.HasPrefix(refused.Code, "query_m.")) {
			t.Errorf("%q: %v", query, err)
		}
		if err == nil {
			encode(t, got)
			if got.Total > got.TotalUnfiltered || int64(len(got.Data.Rows)) > got.Total {
				t.Errorf("%q: %d rows, totals %d of %d", query, len(got.Data.Rows), got.Total, got.TotalUnfiltered)
			}
		}
	})
}
