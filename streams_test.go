package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// reader reads the notifications of a user from successive streams.
type reader struct {
	mu  sync.Mutex
	ids []string // ids of the message frames, in order
	log []string // types of the other frames
}

// seen returns the ids of the message frames.
func (r *reader) seen() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.ids)
}

// received reports whether a frame of another type was received.
func (r *reader) received(event string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Contains(r.log, event)
}

// follow opens a stream that resumes after the last message, and returns a channel that is closed at its end.
func (r *reader) follow(tb testing.TB, c *client) <-chan struct{} {
	tb.Helper()
	ended := r.tryFollow(tb, c)
	if ended == nil {
		tb.Fatal("the user has too many streams")
	}
	return ended
}

// tryFollow is follow that returns nil when the user has too many streams.
func (r *reader) tryFollow(tb testing.TB, c *client) <-chan struct{} {
	tb.Helper()
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, c.url+"/v1/notifications/sse", nil)
	if err != nil {
		tb.Fatal(err)
	}
	for i := 0; i+1 < len(c.headers); i += 2 {
		request.Header.Set(c.headers[i], c.headers[i+1])
	}
	if ids := r.seen(); len(ids) > 0 {
		request.Header.Set("Last-Event-ID", ids[len(ids)-1])
	}
	response, err := new(http.Transport).RoundTrip(request)
	if err != nil {
		tb.Fatal(err)
	}
	if response.StatusCode == http.StatusTooManyRequests {
		response.Body.Close()
		return nil
	}
	if response.StatusCode != http.StatusOK {
		tb.Fatalf("stream: got %s", response.Status)
	}
	ended := make(chan struct{})
	opened := make(chan struct{})
	go func() {
		defer close(ended)
		defer response.Body.Close()
		r.read(response.Body, opened)
	}()
	<-opened
	return ended
}

// followSoon is follow for a user whose streams on a killed node still count for a few seconds.
func (r *reader) followSoon(tb testing.TB, c *client) (ended <-chan struct{}) {
	tb.Helper()
	waitUntil(tb, func() bool { ended = r.tryFollow(tb, c); return ended != nil })
	return ended
}

// read reads frames, and ignores an incomplete one at the end.
func (r *reader) read(body io.Reader, opened chan struct{}) {
	lines := bufio.NewScanner(body)
	var id, event string
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch {
		case name == "id":
			id = value
		case name == "event":
			event = value
		case lines.Text() == "":
			r.mu.Lock()
			if event == "message" {
				r.ids = append(r.ids, id)
			} else if event != "" {
				r.log = append(r.log, event)
			}
			r.mu.Unlock()
			if event == "open" {
				close(opened)
			}
			id, event = "", ""
		}
	}
}

// TestStreams_ResumeAfterTheServerWasKilled kills the server while it writes notifications to streams. A client that resumes
// with Last-Event-ID must receive all later notifications, once and in order. All acknowledged ones must be stored.
func TestStreams_ResumeAfterTheServerWasKilled(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	p := start(t, dir)
	admin := p.admin()
	me := admin.userID(t)
	readers := make([]reader, 5)
	for i := range readers {
		readers[i].follow(t, admin)
	}
	var acknowledged, posted atomic.Int64
	post := func(c *client) error {
		n := posted.Add(1)
		a, err := c.try("POST", "/v1/notifications/trigger", fmt.Sprintf(`{"event":"test","title_key":"%d","user_ids":[%q]}`, n, me))
		if err == nil && a.status == 200 {
			acknowledged.Add(1)
		}
		return err
	}
	var posting sync.WaitGroup
	for range 8 {
		posting.Go(func() {
			for keyed := p.keyed(); post(keyed) == nil; {
			}
		})
	}
	waitUntil(t, func() bool { return acknowledged.Load() > 300 && len(readers[len(readers)-1].seen()) > 0 })
	p.kill()
	posting.Wait()

	p = start(t, dir)
	admin = p.admin()
	for i := range readers {
		readers[i].follow(t, admin)
	}
	keyed := p.keyed()
	for range 20 {
		if err := post(keyed); err != nil {
			t.Fatal(err)
		}
	}
	stored := allNotifications(t, admin, me, "search.event=test")
	if int64(len(stored)) < acknowledged.Load() {
		t.Errorf("%d are stored, %d were acknowledged", len(stored), acknowledged.Load())
	}
	for i := range readers {
		r := &readers[i]
		waitUntil(t, func() bool { ids := r.seen(); return len(ids) > 0 && ids[len(ids)-1] == stored[len(stored)-1] })
		if got := r.seen(); !slices.Equal(got, stored) {
			t.Errorf("stream %d: got %d, want the %d that are stored, in their order", i, len(got), len(stored))
		}
		if r.received("reset") {
			t.Errorf("stream %d received a reset", i)
		}
	}
	if code := p.stop(); code != 0 {
		t.Errorf("exit code %d: %s", code, p.stderr)
	}
	waitUntil(t, func() bool { return readers[0].received("close") })
}

// allNotifications returns the ids of a user's notifications that a filter of the list selects, the oldest first.
func allNotifications(tb testing.TB, c *client, user, filter string) []string {
	tb.Helper()
	var ids []string
	for {
		var part page
		c.do(tb, "GET", fmt.Sprintf("/v1/notifications?search.user_id=%s&%s&sort=created_at&limit=1000&offset=%d", user, filter, len(ids)), "", 200).into(tb, &part)
		for _, row := range part.Data {
			var n struct{ ID string }
			if err := json.Unmarshal(row, &n); err != nil {
				tb.Fatal(err)
			}
			ids = append(ids, n.ID)
		}
		if len(part.Data) == 0 {
			return ids
		}
	}
}

// TestQueue_LosesNothingWhenTheServerIsKilled kills the server while it waits for the response of the SMS gateway. After the
// restart, it must send the message again with the same id, and delete the code once it is sent.
func TestQueue_LosesNothingWhenTheServerIsKilled(t *testing.T) {
	arrived := make(chan string, 10)
	var answers atomic.Bool
	var stop = make(chan struct{})
	gateway := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		arrived <- r.Header.Get("Idempotency-Key")
		if !answers.Load() {
			select {
			case <-stop:
			case <-r.Context().Done():
			}
		}
	}))
	defer gateway.Close()
	defer close(stop)
	dir := filepath.Join(t.TempDir(), "data")
	flag := "--notifications.sms.webhook_url=" + gateway.URL
	p := start(t, dir, flag)
	p.keyed().do(t, "POST", "/v1/users/initiate-registration", `{"credential_type":"phone","credential_value":"+41446681800",
		"password":"a long enough password 42","terms_accepted":true,"privacy_policy_accepted":true}`, 201)
	first := <-arrived
	p.kill()
	answers.Store(true)
	p = start(t, dir, flag)
	if second := <-arrived; second != first || first == "" {
		t.Errorf("got %q, want %q again", second, first)
	}
	admin := p.admin()
	waitUntil(t, func() bool {
		return admin.total(t, "/v1/notifications/deliveries?search.status=sent&search.id="+first) == 1
	})
	list := admin.do(t, "GET", "/v1/notifications/deliveries", "", 200)
	if !strings.Contains(list.body, `"attempts":2`) || !strings.Contains(list.body, `"text":""`) {
		t.Errorf("got %s, want two attempts and no code", list.body)
	}
}
