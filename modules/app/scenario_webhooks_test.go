package app_test

import (
	"fmt"

	"kontor/store/testenv"
)

// webhooks creates a webhook, reads the feed, and sends events again.
func (s *scenario) webhooks() {
	r := newReceiver(s.T)
	s.do(s.admin, "GET", "/v1/events/types", nil)
	s.do(s.admin, "GET", "/v1/events?types=service_accounts.*&limit=2", nil)
	var hook struct{ ID, Secret string }
	s.do(s.admin, "POST", "/v1/webhooks", map[string]any{"url": r.URL, "description": "Back office", "types": []string{"roles.*"}}).Into(s, &hook)
	s.do(s.admin, "POST", "/v1/webhooks/test", map[string]any{"url": r.URL})
	r.next(s.T)
	path := "/v1/webhooks/" + hook.ID
	s.do(s.admin, "GET", "/v1/webhooks", nil)
	s.do(s.admin, "GET", path, nil)
	s.do(s.admin, "PATCH", path, map[string]any{"include_record": true})
	s.do(s.admin, "POST", path+"/secret", map[string]any{"overlap_hours": 1})
	var test struct{ ID string }
	s.do(s.admin, "POST", path+"/test", nil).Into(s, &test)
	r.next(s.T)
	s.until(path+"/deliveries?search.status=delivered&search.id="+test.ID, 1)
	s.do(s.admin, "GET", path+"/deliveries", nil)
	s.do(s.admin, "POST", path+"/deliveries/"+test.ID+"/replay", nil)
	r.next(s.T)
	s.do(s.admin, "POST", path+"/replay", map[string]any{"since": "2020-01-01T00:00:00Z"})
	r.next(s.T) // a role of the first start
	s.do(s.admin, "DELETE", path, nil)
	other := s.id(s.admin, "/v1/webhooks", map[string]any{"url": r.URL})
	s.do(s.admin, "PATCH", "/v1/webhooks/"+other, map[string]any{"status": "paused"})
}

// until polls a list until it has a number of rows.
func (s *scenario) until(path string, total int) {
	s.Helper()
	testenv.Wait(s, fmt.Sprintf("%s to have %d rows", path, total), func() bool {
		var page struct{ Total int }
		s.admin.Do("GET", path, nil).Expect(s, 200).Into(s, &page)
		return page.Total == total
	})
}
