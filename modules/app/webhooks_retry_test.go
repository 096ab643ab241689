package app_test

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestWebhooks_RepeatFailedCallsUnderTheSameID(t *testing.T) {
	s, r, h := startHook(t, "customers.*")
	for name, answer := range map[string]func(int, http.ResponseWriter, call){
		"an error": status(500),
		"a redirect": func(_ int, w http.ResponseWriter, _ call) {
			w.Header().Set("Location", r.URL+"/elsewhere")
			w.WriteHeader(http.StatusTemporaryRedirect)
		},
		"a refusal": status(404),
		"a cut": func(_ int, w http.ResponseWriter, _ call) {
			connection, _, _ := w.(http.Hijacker).Hijack()
			_ = connection.Close()
		},
	} {
		r.answers(answer)
		newCustomer(h.client)
		first := r.next(t)
		d := h.until(inState("retrying"))
		if d.LastError == "" || d.ErrorCode == "" || d.ErrorCode == "other" || strings.Contains(d.LastError, "127.0.0.1") || d.Attempts != 1 {
			t.Errorf("%s: got %+v", name, d)
		}
		r.answers(nil)
		h.advance(s, 10*time.Second)
		if second := r.next(t); second.body != first.body || second.header.Get("Webhook-Id") != first.header.Get("Webhook-Id") ||
			second.header.Get("Webhook-Timestamp") == first.header.Get("Webhook-Timestamp") || !verify(second, h.Secret) {
			t.Errorf("%s: got %v %s, then %v %s", name, first.header, first.body, second.header, second.body)
		}
		h.until(func(d delivery) bool {
			return d.EventID == first.header.Get("Webhook-Id") && d.Status == "delivered" && d.Attempts == 2
		})
	}
}

func TestWebhooks_HonourRetryAfter(t *testing.T) {
	s, r, h := startHook(t, "customers.*")
	r.answers(func(_ int, w http.ResponseWriter, _ call) {
		w.Header().Set("Retry-After", "7200")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	newCustomer(h.client)
	r.next(t)
	if d := h.until(inState("retrying")); d.NextAttemptAt.Before(s.Clock.Now().Add(2*time.Hour)) || d.ResponseStatus != 429 {
		t.Errorf("got %+v at %s", d, s.Clock.Now())
	}
	r.answers(nil)
	newCustomer(h.client) // waits, too
	h.advance(s, time.Hour)
	h.until(inState("queued"))
	if len(r.calls) != 0 {
		t.Error("the receiver was called before the time that it has named")
	}
	h.advance(s, time.Hour+time.Minute)
	r.next(t)
	r.next(t)
}

func TestWebhooks_PauseAfterDaysAndResumeWithoutALoss(t *testing.T) {
	s, r, h := startHook(t, "customers.*")
	r.answers(status(503))
	want := map[string]bool{newCustomer(h.client): true}
	r.next(t)
	for h.Status != "paused" {
		h.until(func(d delivery) bool { return d.Status == "retrying" && d.NextAttemptAt.After(s.Clock.Now()) })
		h.advance(s, 26*time.Hour)
		r.next(t)
		h.until(func(d delivery) bool { return d.Status == "retrying" && d.NextAttemptAt.After(s.Clock.Now()) })
		h.client.Do("GET", h.path(), nil).Into(t, h)
	}
	if h.Reason != "failing" || h.FailingSince == nil {
		t.Errorf("got %+v", h)
	}
	if body := h.client.Do("GET", "/v1/notifications?search.event=webhook_paused", nil).Body; !strings.Contains(body, `"total":1`) {
		t.Errorf("the owner got %s", body)
	}
	r.answers(nil)
	for range 5 {
		want[newCustomer(h.client)] = true
	}
	h.advance(s, 48*time.Hour)
	h.client.Do("PATCH", h.path(), map[string]any{"status": "active"}).Expect(t, 200)
	for len(want) > 0 {
		delete(want, r.next(t).event(t).Data.RecID)
	}
	h.becomes("active")
}

func TestWebhooks_AreDisabledBy410(t *testing.T) {
	s, r, h := startHook(t, "customers.*")
	r.answers(status(http.StatusGone))
	newCustomer(s.Admin())
	r.next(t)
	h.becomes("disabled")
	if h.Reason != "gone" {
		t.Errorf("got %+v", h)
	}
	if body := s.Admin().Do("GET", "/v1/notifications?search.event=webhook_disabled", nil).Body; !strings.Contains(body, `"total":1`) {
		t.Errorf("the owner got %s", body)
	}
	newCustomer(s.Admin())
	h.client.Do("POST", h.path()+"/test", nil).Expect(t, 201)
	if e := r.next(t).event(t); e.Type != "webhooks.test" {
		t.Errorf("a disabled webhook got %+v", e)
	}
}
