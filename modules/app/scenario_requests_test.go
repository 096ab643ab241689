package app_test

import "strconv"

// requestLog reads the log of requests.
func (s *scenario) requestLog() {
	s.do(s.admin, "GET", "/v1/requests/status", nil)
	var page struct{ Data []struct{ Seq int64 } }
	s.do(s.admin, "GET", "/v1/requests", nil).Into(s, &page)
	s.do(s.admin, "GET", "/v1/requests/"+strconv.FormatInt(page.Data[0].Seq, 10), nil)
}
