package app_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kontor/modules/bank/customers"
	"kontor/modules/kit/event"
	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/server/servertest"
	"kontor/store"
	"kontor/store/testenv"
)

// renameUnseen changes a customer as a job does: without a request, so that nothing has noticed that a right is due.
func renameUnseen(t testing.TB, s *servertest.Server, id string) {
	t.Helper()
	ctx := access.With(t.Context(), access.Caller{UserID: s.Admin().UserID, Roles: []string{access.Administrator}}.WithPolicy(s.Policy.Load()))
	if _, err := s.Customers.Update(ctx, customers.UpdateInput{ID: id, FirstName: endpoint.Optional[string]{Given: true, Value: "Unseen " + store.NewID()}}); err != nil {
		t.Fatal(err)
	}
}

// untilHeld repeats a change until a module was held back twice after the first one: it has had the time to send it.
func untilHeld(t testing.TB, held *atomic.Int64, change func()) {
	t.Helper()
	change()
	before := held.Load()
	testenv.Wait(t, "the module to be held back twice", func() bool {
		change()
		return held.Load() >= before+2
	})
}

// in returns the time after a duration by the clock of a server.
func in(s *servertest.Server, d time.Duration) time.Time { return s.Clock.Now().Add(d) }

// A right has an effect in the feed and in the search between its beginning and its end, and at no other time.
func TestTerms_FeedAndSearch(t *testing.T) {
	s := servertest.Start(t)
	admin, reader := s.Admin(), s.User(access.Customer)
	admin.Create("/v1/rbac/grants", map[string]any{"user_id": reader.UserID, "endpoint": "GET /v1/events"})
	start := readFeed(t, admin, "after=latest").Next
	record, typed := newCustomer(admin), admin.Create("/v1/personas", map[string]any{"first_name": "Berta", "last_name": "Keller", "date_of_birth": "1990-01-31"})
	for _, right := range []map[string]any{
		{"rec_type": "customers", "rec_id": record, "permissions": []string{"read"}},
		{"rec_type": "personas", "permissions": []string{"read", "read_all"}},
	} {
		right["user_id"], right["starts_at"], right["expires_at"] = reader.UserID, in(s, time.Minute), in(s, 2*time.Minute)
		admin.Create("/v1/rbac/grants", right)
	}
	for i, want := range [][]string{{}, {record, typed}, {}} {
		fed := []string{}
		for _, e := range readAll(t, reader, "limit=10&include=record", start) {
			fed = append(fed, e.RecID)
		}
		if !slices.Equal(fed, want) {
			t.Errorf("after %d minutes the feed has %v, want %v", i, fed, want)
		}
		body := reader.Do("GET", "/v1/search?q=keller", nil).Expect(t, 200).Body
		for _, id := range []string{record, typed} {
			if strings.Contains(body, id) != slices.Contains(want, id) {
				t.Errorf("after %d minutes the search finds %s", i, body)
			}
		}
		s.Clock.Advance(time.Minute)
	}
}

// An open stream shows nothing of a record outside of the term of the right, although no request has noticed the end.
func TestTerms_FeedStream(t *testing.T) {
	s := servertest.Start(t)
	admin := s.Admin()
	account := admin.Create("/v1/service-accounts", map[string]any{"name": "Back office"})
	grant := func(body map[string]any) {
		body["user_id"] = account
		admin.Create("/v1/rbac/grants", body)
	}
	grant(map[string]any{"endpoint": "GET /v1/events", "expires_at": in(s, 2*time.Minute)})
	grant(map[string]any{"endpoint": "GET /v1/customers/{id}"})
	ending, beginning := newCustomer(admin), newCustomer(admin)
	grant(map[string]any{"rec_type": "customers", "permissions": []string{"read"}, "rec_id": ending, "expires_at": in(s, time.Minute)})
	grant(map[string]any{"rec_type": "customers", "permissions": []string{"read"}, "rec_id": beginning, "starts_at": in(s, time.Minute)})
	var token struct{ Token string }
	admin.Do("POST", "/v1/service-accounts/"+account+"/tokens", map[string]any{"name": "Test"}).Expect(t, 201).Into(t, &token)
	f := follow(t, s, token.Token, "", "")
	f.next()
	rename(t, admin, beginning, "Berta")
	rename(t, admin, ending, "Berta")
	if _, _, data := f.next(); !strings.Contains(data, ending) {
		t.Errorf("got %s before the end", data)
	}
	s.Clock.Advance(time.Minute)
	held, _, _ := s.Held()
	untilHeld(t, held, func() { renameUnseen(t, s, ending) })
	rename(t, admin, beginning, "Clara") // the request ends and begins the rights
	if _, _, data := f.next(); !strings.Contains(data, beginning) {
		t.Errorf("got %s after the end", data)
	}
	s.Clock.Advance(time.Minute)
	untilHeld(t, held, func() { renameUnseen(t, s, beginning) })
	if err := s.RBAC.ApplyTerms(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, name, data := f.next(); name != "" {
		t.Errorf("got %s %s without the right to the feed", name, data)
	}
}

// A webhook gets no event outside of the term of the right of its account, neither of new changes nor of deliveries that wait.
func TestTerms_Webhooks(t *testing.T) {
	s := servertest.Start(t, allowLocal)
	r := newReceiver(t)
	admin := s.Admin()
	account := admin.Create("/v1/service-accounts", map[string]any{"name": "Back office"})
	for _, endpoint := range []string{"GET /v1/events", "GET /v1/customers/{id}"} {
		admin.Create("/v1/rbac/grants", map[string]any{"user_id": account, "endpoint": endpoint})
	}
	h := newHook(t, admin, map[string]any{"url": r.URL, "account_id": account, "types": []string{"customers.updated"}})
	id := newCustomer(admin)
	admin.Create("/v1/rbac/grants", map[string]any{"user_id": account, "rec_type": "customers", "permissions": []string{"read"}, "rec_id": id,
		"starts_at": in(s, time.Minute), "expires_at": in(s, time.Hour)})
	test := func(when string) {
		t.Helper()
		h.client.Do("POST", h.path()+"/test", nil).Expect(t, 201)
		if e := r.next(t).event(t); e.Type != "webhooks.test" {
			t.Errorf("got %+v %s", e, when)
		}
	}
	rename(t, admin, id, "Berta")
	test("before the beginning")
	s.Clock.Advance(time.Minute)
	r.answers(status(500))
	rename(t, admin, id, "Clara")
	r.next(t)
	h.until(inState("retrying"))
	r.answers(nil)
	s.Clock.Advance(time.Hour)
	_, _, held := s.Held()
	untilHeld(t, held, func() { renameUnseen(t, s, id) })
	h.advance(s, time.Hour)
	if d := h.until(inState("withheld")); d.Attempts != 2 {
		t.Errorf("got %+v", d)
	}
	test("after the end")
}

// A stream of notifications gets none after the end of the right to it, although no request has noticed the end.
func TestTerms_NotificationStream(t *testing.T) {
	s := servertest.Start(t)
	s.Admin().Create("/v1/rbac/roles", map[string]any{"name": "Watcher"})
	user := s.User(access.Registrant) // this role alone gives no stream
	s.Admin().Do("PUT", "/v1/users/"+user.UserID+"/roles", map[string]any{"roles": []string{"Registrant", "Watcher"},
		"terms": []map[string]any{{"role": "Watcher", "starts_at": in(s, time.Minute), "expires_at": in(s, 2*time.Minute)}}}).Expect(t, 200)
	user.Do("GET", "/v1/notifications/sse", nil).Expect(t, http.StatusForbidden)
	s.Clock.Advance(time.Minute)
	f := followPath(t, s, user.Token, "/v1/notifications/sse", "")
	f.next()
	notify := func() {
		t.Helper()
		err := s.DB.InTx(access.With(context.Background(), &access.Caller{}), func(tx *store.Tx) error {
			return s.Notifications.Notify(t.Context(), tx, event.Event{Kind: event.AccessExpiring, Type: access.Users, RecordID: user.UserID,
				Recipients: []string{user.UserID}, Args: map[string]any{"Access": "Watcher", "Date": "today"}})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	notify()
	if _, name, data := f.next(); name != "message" {
		t.Errorf("got %s %s during the term", name, data)
	}
	s.Clock.Advance(time.Minute)
	notify()
	_, held, _ := s.Held()
	untilHeld(t, held, func() {})
	if err := s.RBAC.ApplyTerms(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, name, data := f.next(); name != "" {
		t.Errorf("got %s %s after the end", name, data)
	}
}
