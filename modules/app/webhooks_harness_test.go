package app_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kontor/server/servertest"
	"kontor/server/settings"
	"kontor/store/testenv"
)

// call is a request that a receiver has got.
type call struct {
	header http.Header
	body   string
}

// event returns the members of the body of a call.
func (c call) event(t testing.TB) (e struct {
	Type      string
	Timestamp time.Time
	Data      struct {
		ID      string
		RecType string `json:"rec_type"`
		RecID   string `json:"rec_id"`
		Version int64
		Actor   string
		Record  map[string]any
	}
},
) {
	t.Helper()
	if err := json.Unmarshal([]byte(c.body), &e); err != nil {
		t.Fatalf("%s: %v", c.body, err)
	}
	if got := c.header.Get("Webhook-Id"); got != e.Data.ID {
		t.Errorf("webhook-id is %s, and the event is %s", got, e.Data.ID)
	}
	return e
}

// receiver is a program that gets the calls of webhooks.
type receiver struct {
	*httptest.Server
	calls chan call

	mu     sync.Mutex
	n      int
	answer func(n int, w http.ResponseWriter, c call) // of the n-th call, from 1; nil: 204
}

func newReceiver(t testing.TB) *receiver {
	r := &receiver{calls: make(chan call, 10_000)}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, _ := io.ReadAll(request.Body)
		c := call{request.Header, string(body)}
		r.mu.Lock()
		r.n++
		n, answer := r.n, r.answer
		r.mu.Unlock()
		if answer == nil {
			w.WriteHeader(http.StatusNoContent)
		} else {
			answer(n, w, c)
		}
		r.calls <- c
	}))
	t.Cleanup(r.Close)
	return r
}

// next returns the next call. It fails the test when none comes.
func (r *receiver) next(t testing.TB) call {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Limit())
	defer cancel()
	select {
	case c := <-r.calls:
		return c
	case <-ctx.Done():
		t.Fatal("the receiver waited for a call in vain")
		return call{}
	}
}

// answers sets the answers from now on.
func (r *receiver) answers(f func(n int, w http.ResponseWriter, c call)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n, r.answer = 0, f
}

func status(code int) func(int, http.ResponseWriter, call) {
	return func(_ int, w http.ResponseWriter, _ call) { w.WriteHeader(code) }
}

func allowLocal(s *settings.Settings) {
	s.Webhooks.AllowedNetworks = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
}

// hook is a webhook with its secret.
type hook struct {
	t            *testing.T
	client       *servertest.Client
	ID, Secret   string
	Status       string
	Reason       string
	FailingSince *string `json:"failing_since"`
}

func newHook(t *testing.T, c *servertest.Client, body map[string]any) *hook {
	h := &hook{t: t, client: c}
	c.Do("POST", "/v1/webhooks", body).Expect(t, 201).Into(t, h)
	return h
}

// startHook starts a server with a webhook of the administrator, which sends events of a type to a receiver.
func startHook(t *testing.T, eventType string) (*servertest.Server, *receiver, *hook) {
	t.Helper()
	s := servertest.Start(t, allowLocal)
	r := newReceiver(t)
	return s, r, newHook(t, s.Admin(), map[string]any{"url": r.URL, "types": []string{eventType}})
}

// advance moves the clock, and signs the administrator in again: sessions end, and must be fresh for changes of webhooks.
func (h *hook) advance(s *servertest.Server, d time.Duration) {
	s.Clock.Advance(d)
	h.client = s.SignIn(servertest.AdminEmail, servertest.AdminPassword)
}

func (h *hook) path() string { return "/v1/webhooks/" + h.ID }

// delivery is a row of the list of deliveries.
type delivery struct {
	ID             string
	EventID        string `json:"event_id"`
	Type, Status   string
	RecID          string `json:"rec_id"`
	Attempts       int
	ResponseStatus int       `json:"response_status"`
	LastError      string    `json:"last_error"`
	ErrorCode      string    `json:"error_code"`
	NextAttemptAt  time.Time `json:"next_attempt_at"`
}

func (h *hook) deliveries() []delivery {
	var page struct{ Data []delivery }
	h.client.Do("GET", h.path()+"/deliveries?limit=100&sort=created_at", nil).Expect(h.t, 200).Into(h.t, &page)
	return page.Data
}

// until polls the deliveries until one satisfies a condition.
func (h *hook) until(condition func(d delivery) bool) (found delivery) {
	h.t.Helper()
	testenv.Wait(h.t, "a delivery in the expected state", func() bool {
		list := h.deliveries()
		i := slices.IndexFunc(list, condition)
		if i >= 0 {
			found = list[i]
		}
		return i >= 0
	})
	return found
}

func inState(status string) func(delivery) bool {
	return func(d delivery) bool { return d.Status == status }
}

// becomes polls the webhook until it has a status.
func (h *hook) becomes(status string) {
	h.t.Helper()
	testenv.Wait(h.t, "the webhook to be "+status, func() bool {
		h.client.Do("GET", h.path(), nil).Expect(h.t, 200).Into(h.t, h)
		return h.Status == status
	})
}

func newCustomer(c *servertest.Client) string {
	return c.Create("/v1/customers", map[string]any{"first_name": "Anna", "last_name": "Keller", "email": "anna@example.ch"})
}

func rename(t testing.TB, c *servertest.Client, id, name string) {
	c.Do("PUT", "/v1/customers/"+id, map[string]any{"first_name": name}).Expect(t, 200)
}

// verify checks one of the signatures of a call.
func verify(c call, secret string) bool {
	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(c.header.Get("Webhook-Id") + "." + c.header.Get("Webhook-Timestamp") + "." + c.body))
	return slices.Contains(strings.Fields(c.header.Get("Webhook-Signature")), "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
}
