package endpoint_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"kontor/server/endpoint"
)

// A header with an explanation is one line of ASCII of bounded length, and always JSON with the plan of the page.
func TestExplanation_HeaderIsBounded(t *testing.T) {
	for _, long := range []int{1, 1000, 100_000} {
		x := &endpoint.Explanation{}
		for i := range 40 {
			text := "SELECT\r\n\t'Zürich' \x00\x7f" + strings.Repeat("x", long)
			x.Begin(endpoint.Step{Name: "count", Plan: "index", Why: "it is", SQL: text, Database: []string{text, text}})(int64(i))
		}
		header := x.Header()
		if len(header) > 8000 || strings.ContainsFunc(header, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("%d: the header has %d bytes: %.200q", long, len(header), header)
		}
		var steps []map[string]any
		if err := json.Unmarshal([]byte(header), &steps); err != nil {
			t.Fatal(err)
		}
		if len(steps) != 12 || steps[11]["plan"] != "index" || fmt.Sprint(steps[11]["rows"]) != "11" {
			t.Errorf("%d: got %v", long, steps)
		}
		if _, has := steps[11]["sql"]; !has {
			t.Errorf("%d: the last step lacks its statement", long)
		}
	}
}
