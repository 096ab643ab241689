package app_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/server/settings"
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

// advance moves the clock, and signs the administrator in again: sessions end, and must be fresh for changes of webhooks.
func (h *hook) advance(s *servertest.Server, d time.Duration) {
	s.Clock.Advance(d)
	h.client = s.SignIn(servertest.AdminEmail, servertest.AdminPassword)
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
	NextAttemptAt  time.Time `json:"next_attempt_at"`
}

func (h *hook) deliveries() []delivery {
	var page struct{ Data []delivery }
	h.client.Do("GET", h.path()+"/deliveries?limit=100&sort=created_at", nil).Expect(h.t, 200).Into(h.t, &page)
	return page.Data
}

// until polls the deliveries until one satisfies a condition.
func (h *hook) until(condition func(d delivery) bool) delivery {
	h.t.Helper()
	for h.t.Context().Err() == nil {
		list := h.deliveries()
		if i := slices.IndexFunc(list, condition); i >= 0 {
			return list[i]
		}
	}
	return delivery{}
}

func inState(status string) func(delivery) bool {
	return func(d delivery) bool { return d.Status == status }
}

// becomes polls the webhook until it has a status.
func (h *hook) becomes(status string) {
	h.t.Helper()
	for h.t.Context().Err() == nil {
		if h.client.Do("GET", h.path(), nil).Expect(h.t, 200).Into(h.t, h); h.Status == status {
			return
		}
	}
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

func TestWebhooks_SendSignedThinEvents(t *testing.T) {
	s := servertest.Start(t, allowLocal)
	r := newReceiver(t)
	h := newHook(t, s.Admin(), map[string]any{"url": r.URL, "types": []string{"customers.*"}})
	id := newCustomer(s.Admin())
	c := <-r.calls
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
	if e := (<-r.calls).event(t); e.Type != "customers.updated" || e.Data.Record["first_name"] != "Berta" {
		t.Errorf("got %+v", e)
	}
}

func TestWebhooks_SignWithBothSecretsWhileOneIsReplaced(t *testing.T) {
	s := servertest.Start(t, allowLocal)
	r := newReceiver(t)
	h := newHook(t, s.Admin(), map[string]any{"url": r.URL, "types": []string{"payers.created"}})
	first := h.Secret
	h.client.Do("POST", h.path()+"/secret", map[string]any{"overlap_hours": 2}).Expect(t, 200).Into(t, h)
	call := func() call {
		h.client.Do("POST", h.path()+"/test", nil).Expect(t, 201)
		return <-r.calls
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

// An account that has lost the right to a record gets no event of it: neither of later changes, nor of earlier ones that wait.
func TestWebhooks_SendOnlyWhatTheAccountMayReadNow(t *testing.T) {
	s := servertest.Start(t, allowLocal)
	r := newReceiver(t)
	var role struct{ ID string }
	admin := s.Admin()
	admin.Do("POST", "/v1/rbac/roles", map[string]any{"name": "Integration"}).Expect(t, 201).Into(t, &role)
	for _, endpoint := range []string{"GET /v1/events", "GET /v1/customers/{id}"} {
		admin.Do("POST", "/v1/rbac/grants", map[string]any{"role_id": role.ID, "endpoint": endpoint}).Expect(t, 201)
	}
	account := admin.Create("/v1/service-accounts", map[string]any{"name": "Back office", "roles": []string{"Integration"}})
	h := newHook(t, admin, map[string]any{"url": r.URL, "account_id": account, "include_record": true, "types": []string{"customers.updated"}})
	readable, hidden := newCustomer(admin), newCustomer(admin)
	var grant struct{ ID string }
	admin.Do("POST", "/v1/rbac/grants", map[string]any{"user_id": account, "rec_type": "customers", "permissions": []string{"read"}, "rec_id": readable}).
		Expect(t, 201).Into(t, &grant)
	rename(t, admin, hidden, "Hidden")
	rename(t, admin, readable, "Berta")
	if e := (<-r.calls).event(t); e.Data.RecID != readable || e.Data.Record["first_name"] != "Berta" {
		t.Errorf("got %+v", e)
	}
	// The receiver fails, the right is lost, and the receiver works again.
	r.answers(status(500))
	rename(t, admin, readable, "Clara")
	<-r.calls
	h.until(inState("retrying"))
	admin.Do("DELETE", "/v1/rbac/grants/"+grant.ID, nil).Expect(t, 200)
	r.answers(nil)
	h.advance(s, time.Hour)
	admin = h.client
	if d := h.until(inState("withheld")); d.Attempts != 2 {
		t.Errorf("got %+v", d)
	}
	rename(t, admin, readable, "Dora")
	h.client.Do("POST", h.path()+"/test", nil).Expect(t, 201)
	if e := (<-r.calls).event(t); e.Type != "webhooks.test" {
		t.Errorf("got %+v after the right was lost", e)
	}
	// A disabled account gets nothing; what has happened meanwhile follows when it is active again.
	admin.Do("POST", "/v1/rbac/grants", map[string]any{"user_id": account, "rec_type": "customers", "permissions": []string{"read"}, "rec_id": readable}).Expect(t, 201)
	admin.Do("PATCH", "/v1/service-accounts/"+account, map[string]any{"status": "disabled"}).Expect(t, 200)
	rename(t, admin, readable, "Emma")
	h.client.Do("POST", h.path()+"/test", nil).Expect(t, 201)
	if e := (<-r.calls).event(t); e.Type != "webhooks.test" {
		t.Errorf("got %+v while the account is disabled", e)
	}
	admin.Do("PATCH", "/v1/service-accounts/"+account, map[string]any{"status": "active"}).Expect(t, 200)
	if e := (<-r.calls).event(t); e.Data.RecID != readable || e.Data.Record["first_name"] != "Emma" {
		t.Errorf("got %+v", e)
	}
}

func TestWebhooks_RepeatFailedCallsUnderTheSameID(t *testing.T) {
	s := servertest.Start(t, allowLocal)
	r := newReceiver(t)
	h := newHook(t, s.Admin(), map[string]any{"url": r.URL, "types": []string{"customers.*"}})
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
		first := <-r.calls
		d := h.until(inState("retrying"))
		if d.LastError == "" || strings.Contains(d.LastError, "127.0.0.1") || d.Attempts != 1 {
			t.Errorf("%s: got %+v", name, d)
		}
		r.answers(nil)
		h.advance(s, 10*time.Second)
		if second := <-r.calls; second.body != first.body || second.header.Get("Webhook-Id") != first.header.Get("Webhook-Id") ||
			second.header.Get("Webhook-Timestamp") == first.header.Get("Webhook-Timestamp") || !verify(second, h.Secret) {
			t.Errorf("%s: got %v %s, then %v %s", name, first.header, first.body, second.header, second.body)
		}
		h.until(func(d delivery) bool {
			return d.EventID == first.header.Get("Webhook-Id") && d.Status == "delivered" && d.Attempts == 2
		})
	}
}

func TestWebhooks_HonourRetryAfter(t *testing.T) {
	s := servertest.Start(t, allowLocal)
	r := newReceiver(t)
	h := newHook(t, s.Admin(), map[string]any{"url": r.URL, "types": []string{"customers.*"}})
	r.answers(func(_ int, w http.ResponseWriter, _ call) {
		w.Header().Set("Retry-After", "7200")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	newCustomer(h.client)
	<-r.calls
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
	<-r.calls
	<-r.calls
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
		seen[(<-r.calls).event(t).Data.RecID]++
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
		if e := (<-r.calls).event(t); e.Data.RecID != stuck || e.Data.Version <= last {
			t.Errorf("got %+v after version %d", e, last)
		} else {
			last = e.Data.Version
		}
	}
}

func TestWebhooks_PauseAfterDaysAndResumeWithoutALoss(t *testing.T) {
	s := servertest.Start(t, allowLocal)
	r := newReceiver(t)
	h := newHook(t, s.Admin(), map[string]any{"url": r.URL, "types": []string{"customers.*"}})
	r.answers(status(503))
	want := map[string]bool{newCustomer(h.client): true}
	<-r.calls
	for h.Status != "paused" {
		h.until(func(d delivery) bool { return d.Status == "retrying" && d.NextAttemptAt.After(s.Clock.Now()) })
		h.advance(s, 26*time.Hour)
		<-r.calls
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
		delete(want, (<-r.calls).event(t).Data.RecID)
	}
	h.becomes("active")
}

func TestWebhooks_AreDisabledBy410(t *testing.T) {
	s := servertest.Start(t, allowLocal)
	r := newReceiver(t)
	h := newHook(t, s.Admin(), map[string]any{"url": r.URL, "types": []string{"customers.*"}})
	r.answers(status(http.StatusGone))
	newCustomer(s.Admin())
	<-r.calls
	h.becomes("disabled")
	if h.Reason != "gone" {
		t.Errorf("got %+v", h)
	}
	if body := s.Admin().Do("GET", "/v1/notifications?search.event=webhook_disabled", nil).Body; !strings.Contains(body, `"total":1`) {
		t.Errorf("the owner got %s", body)
	}
	newCustomer(s.Admin())
	h.client.Do("POST", h.path()+"/test", nil).Expect(t, 201)
	if e := (<-r.calls).event(t); e.Type != "webhooks.test" {
		t.Errorf("a disabled webhook got %+v", e)
	}
}

func TestWebhooks_ReplayOneDeliveryAndAllSinceATime(t *testing.T) {
	s := servertest.Start(t, allowLocal)
	r := newReceiver(t)
	h := newHook(t, s.Admin(), map[string]any{"url": r.URL, "types": []string{"customers.*"}})
	newCustomer(h.client)
	first := <-r.calls
	h.advance(s, time.Hour)
	since := s.Clock.Now()
	second := newCustomer(h.client)
	last := <-r.calls
	h.until(func(d delivery) bool { return d.Status == "delivered" && d.RecID == second })
	one := h.until(func(d delivery) bool { return d.EventID == first.header.Get("Webhook-Id") && d.Status == "delivered" })
	h.client.Do("POST", h.path()+"/deliveries/"+one.ID+"/replay", nil).Expect(t, 200)
	if again := <-r.calls; again.body != first.body {
		t.Errorf("got %s, want %s", again.body, first.body)
	}
	h.client.Do("POST", h.path()+"/replay", map[string]any{"since": since.Format(time.RFC3339Nano)}).Expect(t, 200)
	if again := <-r.calls; again.body != last.body {
		t.Errorf("got %s, want %s", again.body, last.body)
	}
}

func TestWebhooks_RejectForbiddenReceivers(t *testing.T) {
	s := servertest.Start(t)
	for _, address := range []string{"http://hooks.example/", "https://127.0.0.1/", "https://[::1]/", "https://[::ffff:127.0.0.1]/", "https://[64:ff9b::7f00:1]/",
		"https://10.0.0.1/", "https://100.100.100.200/", "https://169.254.169.254/", "https://168.63.129.16/", "https://[fd00:ec2::254]/", "https://[fe80::1]/",
		"https://0.0.0.0/", "https://user:password@hooks.example/", "https://hooks.example/#x", "ftp://hooks.example/", "hooks.example", "https://hooks.example:25/",
		"https://hooks.example:0/", "https:///x", "https://hooks.example/a b", "https://" + strings.Repeat("a", 2000), ""} {
		s.Admin().Do("POST", "/v1/webhooks", map[string]any{"url": address}).ExpectError(t, 400, "common.invalid_input")
	}
	s.Admin().Do("POST", "/v1/webhooks", map[string]any{"url": "https://hooks.example/", "types": []string{"customers.exploded"}}).
		ExpectError(t, 400, "common.invalid_input")
	// A name is checked when it is called.
	h := newHook(t, s.Admin(), map[string]any{"url": "https://localhost/", "types": []string{"customers.*"}})
	newCustomer(s.Admin())
	if d := h.until(inState("retrying")); !strings.Contains(d.LastError, "not public") {
		t.Errorf("got %+v", d)
	}
}

func TestWebhooks_AreForTheirAccountAndAdministrators(t *testing.T) {
	s := servertest.Start(t, allowLocal)
	admin, advisor := s.Admin(), s.User(access.Advisor)
	h := newHook(t, admin, map[string]any{"url": "http://127.0.0.1:9/"})
	for _, request := range [][2]string{{"POST", "/v1/webhooks"}, {"GET", "/v1/webhooks"}, {"GET", h.path()}, {"PATCH", h.path()}, {"DELETE", h.path()},
		{"POST", h.path() + "/secret"}, {"POST", h.path() + "/test"}, {"GET", h.path() + "/deliveries"}} {
		advisor.Do(request[0], request[1], map[string]any{"url": "http://127.0.0.1:9/"}).Expect(t, 403)
	}
	admin.Do("POST", "/v1/webhooks", map[string]any{"url": "http://127.0.0.1:9/", "account_id": advisor.UserID}).ExpectError(t, 400, "common.invalid_input")
	// An account sees its own webhook only, and cannot change it.
	account := admin.Create("/v1/service-accounts", map[string]any{"name": "Back office", "roles": []string{"Advisor"}})
	for _, endpoint := range []string{"GET /v1/webhooks", "GET /v1/webhooks/{id}", "PATCH /v1/webhooks/{id}", "POST /v1/webhooks"} {
		admin.Do("POST", "/v1/rbac/grants", map[string]any{"user_id": account, "endpoint": endpoint}).Expect(t, 201)
	}
	own := newHook(t, admin, map[string]any{"url": "http://127.0.0.1:9/", "account_id": account})
	var token struct{ Token string }
	admin.Do("POST", "/v1/service-accounts/"+account+"/tokens", map[string]any{"name": "Test"}).Expect(t, 201).Into(t, &token)
	machine := s.Anonymous().With("Authorization", "Bearer "+token.Token)
	machine.Do("GET", own.path(), nil).Expect(t, 200)
	machine.Do("GET", h.path(), nil).Expect(t, 403)
	if body := machine.Do("GET", "/v1/webhooks", nil).Expect(t, 200).Body; !strings.Contains(body, `"total":1`) {
		t.Errorf("got %s", body)
	}
	machine.Do("PATCH", own.path(), map[string]any{"url": "http://127.0.0.1:10/"}).ExpectError(t, 403, "service_accounts.person_required")
}
