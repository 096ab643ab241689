package list_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"kontor/modules/kit/list"
	"kontor/server/apierr"
)

// A request has at most 20 patterns in all fields and values. Values without an asterisk have a separate limit.
func TestParse_BoundsPatterns(t *testing.T) {
	many := func(n int, value string) []string {
		values := make([]string, n)
		for i := range values {
			values[i] = fmt.Sprintf(value, i)
		}
		return values
	}
	join := func(values []string) string { return strings.Join(values, ",") }
	for name, test := range map[string]struct {
		query url.Values
		field string // in the error; empty: accepted
	}{
		"20 in one value":           {url.Values{"search.name": {join(many(20, "*x%d*"))}}, ""},
		"21 in one value":           {url.Values{"search.name": {join(many(21, "*x%d*"))}}, "name"},
		"20 repeated":               {url.Values{"search.name": many(20, "x%d*")}, ""},
		"21 repeated":               {url.Values{"search.name": many(21, "x%d*")}, "name"},
		"21 over fields":            {url.Values{"search.name": many(11, "x%d*"), "search.status": many(10, "*x%d")}, "status"},
		"20 over fields":            {url.Values{"search.name": many(10, "x%d*"), "search.status": many(10, "*x%d")}, ""},
		"20 texts in one pattern":   {url.Values{"search.name": {strings.Repeat("*x", 20) + "*"}}, ""},
		"21 texts in one pattern":   {url.Values{"search.name": {strings.Repeat("*x", 21) + "*"}}, "name"},
		"21 in a field of no text":  {url.Values{"search.size": many(21, "%d*")}, "size"},
		"21 in a field of no list":  {url.Values{"search.x": many(21, "%d*")}, "x"},
		"asterisks alone":           {url.Values{"search.name": {strings.Repeat("*", 900)}}, ""},
		"21 times asterisks alone":  {url.Values{"search.name": many(21, "**%.0d*")}, "name"},
		"100 values without any":    {url.Values{"search.id": {join(many(100, "x%d"))}}, ""},
		"100 values and 20 of them": {url.Values{"search.id": many(80, "x%d"), "search.name": many(20, "x%d*")}, ""},
	} {
		t.Run(name, func(t *testing.T) { checkParse(t, test.query, test.field) })
	}
}

func checkParse(t *testing.T, query url.Values, field string) {
	t.Helper()
	_, err := list.Parse(query)
	if field == "" {
		if err != nil {
			t.Errorf("got %v, want no error", err)
		}
		return
	}
	e := apierr.Of(err)
	wrong := map[string]string{}
	if e.Fields != nil {
		for name, text := range e.Fields.All {
			wrong[name] = text.Key
		}
	}
	if e.Kind != apierr.InvalidInput || len(wrong) != 1 || wrong["search."+field] != "invalid.max_patterns" {
		t.Errorf("got %v %v, want max_patterns for %s", e.Kind, wrong, field)
	}
}
