package app_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
)

// A page has as many rows as its limit as long as there are that many, however heavy they are: adding limit to offset loses none.
func TestPages_AreWholeHoweverHeavyTheyAre(t *testing.T) {
	const rows = 130
	s := servertest.Start(t)
	customer := s.User(access.Customer)
	heavy := servertest.Body{"a": strings.Repeat("x", 16_000)}
	of := customer.Create("/v1/customers", servertest.Body{
		"first_name": "Anna", "last_name": "Keller", "email": "anna@example.ch", "metadata": heavy,
	})
	for i := range rows {
		customer.Create("/v1/payers", servertest.Body{
			"customer_id": of, "name": fmt.Sprint("Payer ", i), "email": "p@example.ch", "country": "CHE", "metadata": heavy,
		})
		event := servertest.Body{"user_ids": []string{customer.UserID}, "event": "test", "content": strings.Repeat("y", 9_000)}
		s.Keyed().Do("POST", "/v1/notifications/trigger", event).Expect(t, http.StatusOK)
	}
	own := "/v1/notifications?search.user_id=" + customer.UserID + "&"
	for path, member := range map[string]string{"/v1/payers?": "payers", "/v1/notifications?": "data", own: "data"} {
		for _, limit := range []int{100, 60, 21} {
			seen := map[string]bool{}
			for offset := 0; offset < rows; offset += limit {
				page := customer.Do("GET", fmt.Sprint(path, "limit=", limit, "&offset=", offset), nil).Expect(t, http.StatusOK).JSON(t)
				got := page[member].([]any)
				want := min(limit, rows-offset)
				if len(got) != want || page["has_more"] != (offset+want < rows) || page["total"] != float64(rows) {
					t.Errorf("%slimit=%d&offset=%d: got %d rows of %v, more %v; want %d", path, limit, offset, len(got), page["total"], page["has_more"], want)
				}
				for _, row := range got {
					seen[row.(map[string]any)["id"].(string)] = true
				}
			}
			if len(seen) != rows {
				t.Errorf("%slimit=%d: got %d rows, want %d", path, limit, len(seen), rows)
			}
		}
	}
	table := customer.With("Accept", "text/csv").Do("GET", "/v1/payers", nil).Expect(t, http.StatusOK)
	if got := strings.Count(table.Body, "Payer "); got != rows {
		t.Errorf("the table has %d rows, want %d", got, rows)
	}
}
