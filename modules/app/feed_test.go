package app_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"kontor/modules/kit/change"
	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/server/settings"
	"kontor/store/testenv"
)

// feedPage is a page of the feed.
type feedPage struct {
	Data    []change.Event
	Next    string
	HasMore bool `json:"has_more"`
}

func readFeed(t testing.TB, c *servertest.Client, query string) (p feedPage) {
	t.Helper()
	c.Do("GET", "/v1/events?"+query, nil).Expect(t, 200).Into(t, &p)
	return p
}

// readAll reads all pages after a cursor, and checks that has_more ends.
func readAll(t testing.TB, c *servertest.Client, query string, after string) (events []change.Event) {
	t.Helper()
	for {
		page := readFeed(t, c, query+"&after="+after)
		events = append(events, page.Data...)
		if !page.HasMore {
			return events
		}
		if page.Next <= after {
			t.Fatalf("the cursor went from %s to %s", after, page.Next)
		}
		after = page.Next
	}
}

func TestFeed_ListsChangesInTheOrderOfTheirCommits(t *testing.T) {
	s := servertest.Start(t)
	start := readFeed(t, s.Admin(), "after=latest")
	if len(start.Data) != 0 || start.HasMore {
		t.Errorf("got %+v, want no event", start)
	}
	var want []string
	for i := range 7 {
		id := newCustomer(s.Admin())
		want = append(want, "customers.created "+id)
		if i%2 == 0 {
			rename(t, s.Admin(), id, "Berta")
			want = append(want, "customers.updated "+id)
		}
	}
	all := readAll(t, s.Admin(), "types=customers.*&limit=1000", start.Next)
	if one := readAll(t, s.Admin(), "types=customers.*&limit=1", start.Next); !slices.Equal(one, all) {
		t.Errorf("pages of one have %d events, and pages of a thousand %d", len(one), len(all))
	}
	var got []string
	for i, e := range all {
		got = append(got, e.Type+" "+e.RecID)
		if i > 0 && (e.ID <= all[i-1].ID || e.Version <= all[i-1].Version || e.Actor != s.Admin().UserID) {
			t.Errorf("%+v follows %+v", e, all[i-1])
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	created := readAll(t, s.Admin(), "types=customers.created,payers.*", start.Next)
	if len(created) != 7 {
		t.Errorf("got %d creations", len(created))
	}
	body := s.Admin().Do("GET", "/v1/events?types=customers.created&limit=1&include=record&after="+start.Next, nil).Body
	if !strings.Contains(body, `"last_name":"Keller"`) {
		t.Errorf("got %s, want the record", body)
	}
}

func TestFeed_ShowsOnlyRecordsThatTheCallerMayReadNow(t *testing.T) {
	s := servertest.Start(t)
	admin, customer := s.Admin(), s.User(access.Customer)
	customer.Do("GET", "/v1/events", nil).Expect(t, 403)
	admin.Do("POST", "/v1/rbac/grants", map[string]any{"user_id": customer.UserID, "endpoint": "GET /v1/events"}).Expect(t, 201)
	start := readFeed(t, admin, "after=latest").Next
	own, foreign := newCustomer(customer), newCustomer(admin)
	role := admin.Create("/v1/rbac/roles", map[string]any{"name": "Auditor"})
	if events := readAll(t, customer, "limit=10", start); len(events) != 1 || events[0].RecID != own {
		t.Errorf("got %+v, want the creation of %s", events, own)
	}
	var grant struct{ ID string }
	admin.Do("POST", "/v1/rbac/grants", map[string]any{"user_id": customer.UserID, "rec_type": "customers", "permissions": []string{"read"}, "rec_id": foreign}).
		Expect(t, 201).Into(t, &grant)
	if events := readAll(t, customer, "limit=10", start); len(events) != 2 || events[1].RecID != foreign {
		t.Errorf("got %+v with the grant", events)
	}
	admin.Do("DELETE", "/v1/rbac/grants/"+grant.ID, nil).Expect(t, 200)
	for _, e := range readAll(t, customer, "limit=10&include=record", start) {
		if e.RecID == foreign || e.RecID == role {
			t.Errorf("got %+v without the grant", e)
		}
	}
	// Many changes of others: pages are empty, and the cursor moves.
	for range 12 {
		newCustomer(admin)
	}
	if page := readFeed(t, customer, "limit=10&after="+start); len(page.Data) != 1 || page.Next <= start || page.HasMore {
		t.Errorf("got %+v", page)
	}
}

// The scope of a token is part of what its holder may read.
func TestFeed_RespectsTheScopesOfATokenAndItsNetworks(t *testing.T) {
	s := servertest.Start(t)
	account := s.Admin().Create("/v1/service-accounts", map[string]any{"name": "Back office", "roles": []string{access.Advisor}})
	token := func(scopes ...string) *servertest.Client {
		var made struct{ Token string }
		s.Admin().Do("POST", "/v1/service-accounts/"+account+"/tokens", map[string]any{"name": "Test", "scopes": scopes}).Expect(t, 201).Into(t, &made)
		return s.Anonymous().With("Authorization", "Bearer "+made.Token)
	}
	start := readFeed(t, s.Admin(), "after=latest").Next
	id := newCustomer(s.Admin())
	token("customers.get").Do("GET", "/v1/events", nil).Expect(t, 403)
	if events := readAll(t, token("events.list"), "limit=10", start); len(events) != 0 {
		t.Errorf("got %+v without the scope of customers", events)
	}
	if events := readAll(t, token("events.list", "customers.get"), "limit=10", start); len(events) != 1 || events[0].RecID != id {
		t.Errorf("got %+v", events)
	}
}

func TestFeed_ReportsCursorsThatCannotBeContinued(t *testing.T) {
	s := servertest.Start(t, func(s *settings.Settings) { s.Events.Retention = 24 * time.Hour })
	admin := s.Admin()
	start := readFeed(t, admin, "after=latest").Next
	p, _ := change.ParsePosition(start)
	for _, cursor := range []string{change.Position{Seq: p.Seq, Hash: p.Hash ^ 1}.ID(), change.Position{Seq: p.Seq + 1, Hash: p.Hash}.ID()} {
		admin.Do("GET", "/v1/events?after="+cursor, nil).ExpectError(t, 410, "events.cursor_expired")
	}
	for _, wrong := range []string{"after=17", "after=0193a7c4-5e2f-7b1a-9c3d-8f6e2a4b7c10", "types=customers.exploded", "types=*", "limit=0", "limit=1001",
		"limit=101&include=record", "include=people"} {
		admin.Do("GET", "/v1/events?"+wrong, nil).ExpectError(t, 400, "common.invalid_input")
	}
	newCustomer(admin)
	s.Clock.Advance(25 * time.Hour)
	admin = s.SignIn(servertest.AdminEmail, servertest.AdminPassword)
	admin.Do("GET", "/v1/events?after="+start, nil).ExpectError(t, 410, "events.cursor_expired")
	id := newCustomer(admin)
	for _, query := range []string{"types=customers.*", "types=customers.*&after=2020-01-01T00:00:00Z"} {
		if page := readFeed(t, admin, query); len(page.Data) != 1 || page.Data[0].RecID != id {
			t.Errorf("%s: got %+v, want what is kept", query, page)
		}
	}
}

func TestFeed_BeginsAtATime(t *testing.T) {
	s := servertest.Start(t)
	admin := s.Admin()
	newCustomer(admin)
	s.Clock.Advance(time.Minute)
	at := s.Clock.Now()
	second := newCustomer(admin)
	page := readFeed(t, admin, "types=customers.*&after="+at.UTC().Format(time.RFC3339Nano))
	if len(page.Data) != 1 || page.Data[0].RecID != second {
		t.Errorf("got %+v, want the changes since %s", page, at)
	}
	if page := readFeed(t, admin, "after="+at.Add(time.Hour).UTC().Format(time.RFC3339)); len(page.Data) != 0 {
		t.Errorf("got %+v of the future", page)
	}
}

// follower reads an event stream of the feed.
type follower struct {
	*bufio.Scanner
	status int
	end    func()
	silent func() bool // it has ended because it was open for too long
	t      testing.TB
}

func follow(t testing.TB, s *servertest.Server, token, query, lastID string) *follower {
	t.Helper()
	return followPath(t, s, token, "/v1/events?"+query, lastID)
}

// followPath reads an event stream.
func followPath(t testing.TB, s *servertest.Server, token, path, lastID string) *follower {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Limit())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.Address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Accept", "text/event-stream")
	if lastID != "" {
		request.Header.Set("Last-Event-ID", lastID)
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	end := func() {
		cancel()
		_ = response.Body.Close()
	}
	t.Cleanup(end)
	silent := func() bool { return errors.Is(ctx.Err(), context.DeadlineExceeded) }
	return &follower{bufio.NewScanner(response.Body), response.StatusCode, end, silent, t}
}

// next returns id, name and data of the next frame; empty texts at the end. It fails the test when neither comes.
func (f *follower) next() (id, name, data string) {
	f.t.Helper()
	for f.Scan() {
		field, value, _ := strings.Cut(f.Text(), ": ")
		switch field {
		case "id":
			id = value
		case "event":
			name = value
		case "data":
			return id, name, value
		}
	}
	if f.silent() {
		f.t.Fatal("the stream waited for a frame in vain")
	}
	return "", "", ""
}

func TestFeed_StreamsChangesAndResumes(t *testing.T) {
	s := servertest.Start(t)
	f := follow(t, s, s.Admin().Token, "types=customers.*", "")
	if _, name, _ := f.next(); name != "open" {
		t.Fatalf("the stream began with %s", name)
	}
	var ids, seen []string
	for range 3 {
		ids = append(ids, newCustomer(s.Admin()))
	}
	for i := range 3 {
		id, name, data := f.next()
		if name != "change" || !strings.Contains(data, ids[i]) || strings.Contains(data, "Keller") {
			t.Errorf("got %s %s", name, data)
		}
		seen = append(seen, id)
	}
	f.end()
	newCustomer(s.Admin())
	f = follow(t, s, s.Admin().Token, "types=customers.*&include=record", seen[1])
	f.next()
	if id, _, data := f.next(); id != seen[2] || !strings.Contains(data, `"last_name":"Keller"`) {
		t.Errorf("after %s came %s %s", seen[1], id, data)
	}
	if id, _, _ := f.next(); id <= seen[2] {
		t.Errorf("after %s came %s", seen[2], id)
	}
	if f := follow(t, s, s.Admin().Token, "", "0193a7c4-5e2f-7b1a-9c3d-8f6e2a4b7c10"); f.status != http.StatusGone {
		t.Errorf("an unknown Last-Event-ID got %d", f.status)
	}
}

// A stream shows nothing of a record after the right to it is lost, and ends with the right to the feed or with its token.
func TestFeed_StreamsFollowTheRights(t *testing.T) {
	s := servertest.Start(t)
	admin := s.Admin()
	account := admin.Create("/v1/service-accounts", map[string]any{"name": "Back office"})
	grant := func(body map[string]any) (id string) {
		var made struct{ ID string }
		body["user_id"] = account
		admin.Do("POST", "/v1/rbac/grants", body).Expect(t, 201).Into(t, &made)
		return made.ID
	}
	feed := grant(map[string]any{"endpoint": "GET /v1/events"})
	grant(map[string]any{"endpoint": "GET /v1/customers/{id}"})
	first, second := newCustomer(admin), newCustomer(admin)
	right := grant(map[string]any{"rec_type": "customers", "permissions": []string{"read"}, "rec_id": first})
	grant(map[string]any{"rec_type": "customers", "permissions": []string{"read"}, "rec_id": second})
	var token struct{ ID, Token string }
	issue := func() {
		admin.Do("POST", "/v1/service-accounts/"+account+"/tokens", map[string]any{"name": "Test"}).Expect(t, 201).Into(t, &token)
	}
	issue()
	f := follow(t, s, token.Token, "", "")
	f.next()
	rename(t, admin, first, "Berta")
	if _, _, data := f.next(); !strings.Contains(data, first) {
		t.Errorf("got %s", data)
	}
	admin.Do("DELETE", "/v1/rbac/grants/"+right, nil).Expect(t, 200)
	rename(t, admin, first, "Clara")
	rename(t, admin, second, "Clara")
	if _, _, data := f.next(); !strings.Contains(data, second) {
		t.Errorf("got %s without the right", data)
	}
	admin.Do("DELETE", "/v1/service-accounts/"+account+"/tokens/"+token.ID, nil).Expect(t, 200)
	rename(t, admin, second, "Dora")
	if _, name, data := f.next(); name != "" {
		t.Errorf("got %s %s after the token was revoked", name, data)
	}
	issue()
	f = follow(t, s, token.Token, "", "")
	f.next()
	admin.Do("DELETE", "/v1/rbac/grants/"+feed, nil).Expect(t, 200)
	rename(t, admin, second, "Emma")
	if _, name, data := f.next(); name != "" {
		t.Errorf("got %s %s without the right to the feed", name, data)
	}
}

func TestFeed_ClosesStreamsAtShutdown(t *testing.T) {
	s := servertest.Start(t)
	f := follow(t, s, s.Admin().Token, "", "")
	f.next()
	s.Changes.Drain()
	if _, name, data := f.next(); name != "close" || data != `{"reason":"server_shutdown"}` {
		t.Errorf("got %s %s", name, data)
	}
	if _, name, _ := f.next(); name != "" {
		t.Errorf("got %s after the end", name)
	}
}

// Concurrent writers and a reader that follows: every change once, in the order of the commits.
func TestFeed_MissesNothingUnderLoad(t *testing.T) {
	s := servertest.Start(t)
	f := follow(t, s, s.Admin().Token, "types=customers.created", "")
	f.next()
	const writers, each = 4, 25
	made := make(chan string, writers*each)
	for range writers {
		go func() {
			for range each {
				made <- newCustomer(s.Admin())
			}
		}()
	}
	seen, last := map[string]bool{}, ""
	for range writers * each {
		id, _, data := f.next()
		if id <= last {
			t.Fatalf("%s follows %s", id, last)
		}
		last = id
		_, rest, _ := strings.Cut(data, `"rec_id":"`)
		seen[rest[:36]] = true
	}
	for range writers * each {
		if id := <-made; !seen[id] {
			t.Error(fmt.Sprint("no event of ", id))
		}
	}
}
