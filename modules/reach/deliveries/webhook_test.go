package deliveries_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"kontor/modules/reach/deliveries"
)

func TestWebhook_SendsJSONWithTokenAndID(t *testing.T) {
	type got struct {
		method, authorization, key, media string
		body                              map[string]string
	}
	var seen got
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		seen = got{method: r.Method, authorization: r.Header.Get("Authorization"), key: r.Header.Get("Idempotency-Key"), media: r.Header.Get("Content-Type")}
		_ = json.NewDecoder(r.Body).Decode(&seen.body)
	}))
	defer server.Close()
	g := deliveries.NewWebhook(server.URL, "geheim", time.Now)
	if err := g.Send(t.Context(), deliveries.Delivery{ID: "id1", Recipient: "+41446681800", Text: "Grüezi"}); err != nil {
		t.Fatal(err)
	}
	if seen.method != "POST" || seen.authorization != "Bearer geheim" || seen.key != "id1" || seen.media != "application/json" ||
		len(seen.body) != 3 || seen.body["to"] != "+41446681800" || seen.body["text"] != "Grüezi" || seen.body["id"] != "id1" {
		t.Errorf("got %+v", seen)
	}
}

func TestWebhook_TellsPermanentErrorsFromTemporaryOnes(t *testing.T) {
	now := time.Date(2026, time.January, 31, 8, 15, 30, 0, time.UTC)
	for name, c := range map[string]struct {
		status    int
		after     string
		permanent bool
		wait      time.Duration
	}{
		"bad request":   {status: 400, permanent: true},
		"unauthorized":  {status: 401, permanent: true},
		"redirect":      {status: 302, permanent: true},
		"timeout":       {status: 408},
		"too many":      {status: 429, after: "120", wait: 2 * time.Minute},
		"down":          {status: 503, after: now.Add(time.Hour).Format(http.TimeFormat), wait: time.Hour},
		"a past date":   {status: 503, after: now.Add(-time.Hour).Format(http.TimeFormat)},
		"nonsense":      {status: 500, after: "soon"},
		"a long time":   {status: 429, after: "99999999999", wait: 24 * time.Hour},
		"a negative":    {status: 429, after: "-5"},
		"gateway error": {status: 502},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", c.after)
				w.Header().Set("Location", "http://127.0.0.1:1/")
				w.WriteHeader(c.status)
			}))
			defer server.Close()
			g := deliveries.NewWebhook(server.URL, "", func() time.Time { return now })
			err := g.Send(t.Context(), deliveries.Delivery{ID: "id1"})
			r, ok := err.(*deliveries.SendError)
			if !ok || r.Permanent != c.permanent || r.RetryAfter != c.wait {
				t.Errorf("got %+v", err)
			}
		})
	}
}

func TestWebhook_HidesItsURLInErrors(t *testing.T) {
	g := deliveries.NewWebhook("http://127.0.0.1:1/geheim?token=geheim", "", time.Now)
	if err := g.Send(t.Context(), deliveries.Delivery{ID: "id1"}); err == nil || strings.Contains(err.Error(), "geheim") {
		t.Errorf("got %v", err)
	}
}
