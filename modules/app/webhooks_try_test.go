package app_test

import (
	"net/http"
	"strings"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
)

const tryPath = "/v1/webhooks/test"

type tried struct {
	Delivered      bool
	ResponseStatus *int `json:"response_status"`
	Error          string
	ErrorCode      string `json:"error_code"`
}

func TestWebhooks_AnAddressIsTestedBeforeItIsSaved(t *testing.T) {
	s, r := servertest.Start(t, allowLocal), newReceiver(t)
	try := func(address string) (got tried) {
		s.Admin().Do("POST", tryPath, map[string]any{"url": address}).Expect(t, 200).Into(t, &got)
		return got
	}
	if got := try(r.URL); !got.Delivered || *got.ResponseStatus != 204 || got.Error != "" || got.ErrorCode != "" {
		t.Errorf("got %+v", got)
	}
	c := r.next(t)
	if e := c.event(t); e.Type != "webhooks.test" || e.Data.Actor != s.Admin().UserID || c.header.Get("Webhook-Signature") == "" {
		t.Errorf("got %s with %v", c.body, c.header)
	}
	r.answers(func(_ int, w http.ResponseWriter, _ call) {
		w.Header().Set("Location", "http://127.0.0.1:1/")
		w.WriteHeader(http.StatusFound)
	})
	if got := try(r.URL); got.Delivered || *got.ResponseStatus != 302 || got.ErrorCode != "redirect" || !strings.Contains(got.Error, "redirects are not followed") {
		t.Errorf("got %+v", got)
	}
	r.answers(status(http.StatusInternalServerError))
	if got := try(r.URL); got.Delivered || *got.ResponseStatus != 500 || got.ErrorCode != "answer" {
		t.Errorf("got %+v", got)
	}
	r.Close()
	if got := try(r.URL); got.Delivered || got.ResponseStatus != nil || got.ErrorCode != "refused" || got.Error == "" || strings.Contains(got.Error, "127.0.0.1") {
		t.Errorf("got %+v", got)
	}
	if body := s.Admin().Do("GET", "/v1/webhooks", nil).Expect(t, 200).Body; !strings.Contains(body, `"total":0`) {
		t.Errorf("a test has created a webhook: %s", body)
	}
	if body := s.Admin().Do("GET", "/v1/audit?search.action=webhooks.test", nil).Expect(t, 200).Body; !strings.Contains(body, `"total":4`) {
		t.Errorf("not every test is in the audit trail: %s", body)
	}
}

func TestWebhooks_ATestReachesAllowedReceiversOnly(t *testing.T) {
	s := servertest.Start(t)
	for _, address := range []string{"http://hooks.example/", "https://127.0.0.1/", "https://[::1]/", "https://[::ffff:127.0.0.1]/", "https://10.0.0.1/",
		"https://169.254.169.254/latest/meta-data", "https://[fd00:ec2::254]/", "https://0.0.0.0/", "https://user:password@hooks.example/", "ftp://hooks.example/",
		"https://hooks.example:25/", "file:///etc/passwd", "https://" + strings.Repeat("a", 2000), ""} {
		s.Admin().Do("POST", tryPath, map[string]any{"url": address}).ExpectError(t, 400, "common.invalid_input")
	}
	// A name is checked when it is called.
	var got tried
	if s.Admin().Do("POST", tryPath, map[string]any{"url": "https://localhost/"}).Expect(t, 200).Into(t, &got); got.Delivered || got.ErrorCode != "forbidden" || !strings.Contains(got.Error, "not public") {
		t.Errorf("got %+v", got)
	}
}

func TestWebhooks_TestsAreForThoseWhoMayCreateAndLimited(t *testing.T) {
	s, r := servertest.Start(t, allowLocal), newReceiver(t)
	body := map[string]any{"url": r.URL}
	s.User(access.Advisor).Do("POST", tryPath, body).Expect(t, 403)
	s.Anonymous().Do("POST", tryPath, body).Expect(t, 401)
	for range 10 {
		s.Admin().Do("POST", tryPath, body).Expect(t, 200)
	}
	s.Admin().Do("POST", tryPath, body).ExpectError(t, 429, "rate_limits_m.exceeded")
	if n := len(r.calls); n != 10 {
		t.Errorf("%d calls were made", n)
	}
}
