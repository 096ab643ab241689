package app_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"kontor/server/servertest"
)

func TestWebhooks_SendSignedThinEvents(t *testing.T) {
	s, r, h := startHook(t, "customers.*")
	id := newCustomer(s.Admin())
	c := r.next(t)
	e := c.event(t)
	if e.Type != "customers.created" || e.Data.RecID != id || e.Data.Actor != s.Admin().UserID || e.Data.Record != nil || strings.Contains(c.body, "Keller") {
		t.Errorf("got %s", c.body)
	}
	if !verify(c, h.Secret) || verify(c, "whsec_AAAA") || c.header.Get("Content-Type") != "application/json" {
		t.Errorf("got %v", c.header)
	}
	sent, err := strconv.ParseInt(c.header.Get("Webhook-Timestamp"), 10, 64)
	if err != nil || sent != s.Clock.Now().Unix() {
		t.Errorf("got the time %s", c.header.Get("Webhook-Timestamp"))
	}
	if d := h.until(inState("delivered")); d.Attempts != 1 || d.ResponseStatus != 204 || d.EventID != e.Data.ID {
		t.Errorf("got %+v", d)
	}
	// The webhook with records sends them as the endpoint answers them.
	h.client.Do("PATCH", h.path(), map[string]any{"include_record": true}).Expect(t, 200)
	rename(t, s.Admin(), id, "Berta")
	if e := r.next(t).event(t); e.Type != "customers.updated" || e.Data.Record["first_name"] != "Berta" {
		t.Errorf("got %+v", e)
	}
}

func TestWebhooks_SignWithBothSecretsWhileOneIsReplaced(t *testing.T) {
	s, r, h := startHook(t, "payers.created")
	first := h.Secret
	h.client.Do("POST", h.path()+"/secret", map[string]any{"overlap_hours": 2}).Expect(t, 200).Into(t, h)
	call := func() call {
		h.client.Do("POST", h.path()+"/test", nil).Expect(t, 201)
		return r.next(t)
	}
	if c := call(); !verify(c, first) || !verify(c, h.Secret) {
		t.Errorf("during the overlap: %v", c.header)
	}
	h.advance(s, 2*time.Hour)
	if c := call(); verify(c, first) || !verify(c, h.Secret) {
		t.Errorf("after the overlap: %v", c.header)
	}
	leaked := h.Secret
	h.client.Do("POST", h.path()+"/secret", map[string]any{"overlap_hours": 0}).Expect(t, 200).Into(t, h)
	if c := call(); verify(c, leaked) || !verify(c, h.Secret) {
		t.Errorf("without an overlap: %v", c.header)
	}
	if body := h.client.Do("GET", h.path(), nil).Body; strings.Contains(body, "whsec_") {
		t.Errorf("the secret is shown again: %s", body)
	}
}

func TestWebhooks_KeepTheOrderOfEachRecord(t *testing.T) {
	s := servertest.Start(t, allowLocal)
	r := newReceiver(t)
	stuck := newCustomer(s.Admin())
	h := newHook(t, s.Admin(), map[string]any{"url": r.URL, "types": []string{"customers.*"}})
	r.answers(func(_ int, w http.ResponseWriter, c call) { // the first record fails, the others do not
		if strings.Contains(c.body, stuck) {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	for _, name := range []string{"Berta", "Clara", "Dora"} {
		rename(t, h.client, stuck, name)
	}
	other := newCustomer(h.client)
	seen := map[string]int{}
	for seen[other] == 0 || seen[stuck] == 0 {
		seen[r.next(t).event(t).Data.RecID]++
	}
	h.until(inState("retrying"))
	h.until(func(d delivery) bool { return d.RecID == other && d.Status == "delivered" })
	if seen[stuck] += len(r.calls); seen[stuck] != 1 {
		t.Errorf("the receiver got %d events of the record whose first one fails", seen[stuck])
	}
	r.answers(nil)
	h.advance(s, time.Minute)
	last := int64(0)
	for range 3 {
		if e := r.next(t).event(t); e.Data.RecID != stuck || e.Data.Version <= last {
			t.Errorf("got %+v after version %d", e, last)
		} else {
			last = e.Data.Version
		}
	}
}

func TestWebhooks_ReplayOneDeliveryAndAllSinceATime(t *testing.T) {
	s, r, h := startHook(t, "customers.*")
	newCustomer(h.client)
	first := r.next(t)
	h.advance(s, time.Hour)
	since := s.Clock.Now()
	second := newCustomer(h.client)
	last := r.next(t)
	h.until(func(d delivery) bool { return d.Status == "delivered" && d.RecID == second })
	one := h.until(func(d delivery) bool { return d.EventID == first.header.Get("Webhook-Id") && d.Status == "delivered" })
	h.client.Do("POST", h.path()+"/deliveries/"+one.ID+"/replay", nil).Expect(t, 200)
	if again := r.next(t); again.body != first.body {
		t.Errorf("got %s, want %s", again.body, first.body)
	}
	h.client.Do("POST", h.path()+"/replay", map[string]any{"since": since.Format(time.RFC3339Nano)}).Expect(t, 200)
	if again := r.next(t); again.body != last.body {
		t.Errorf("got %s, want %s", again.body, last.body)
	}
}
