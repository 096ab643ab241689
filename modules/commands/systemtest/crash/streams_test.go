package crash_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"kontor/modules/commands/systemtest"
	"kontor/store/testenv"
)

// TestStreams_ResumeAfterTheServerWasKilled kills the server while it writes notifications to streams. A client that resumes
// with Last-Event-ID must receive all later notifications, once and in order. All acknowledged ones must be stored.
func TestStreams_ResumeAfterTheServerWasKilled(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	p := systemtest.Start(t, dir)
	admin := p.Admin()
	me := admin.UserID(t)
	readers := make([]systemtest.StreamReader, 5)
	for i := range readers {
		readers[i].Follow(t, admin)
	}
	var acknowledged, posted atomic.Int64
	post := func(c *systemtest.Client) error {
		n := posted.Add(1)
		a, err := c.Try("POST", "/v1/notifications/trigger", fmt.Sprintf(`{"event":"test","title_key":"%d","user_ids":[%q]}`, n, me))
		if err == nil && a.Status == 200 {
			acknowledged.Add(1)
		}
		return err
	}
	var posting sync.WaitGroup
	for range 8 {
		posting.Go(func() {
			for keyed := p.Keyed(); post(keyed) == nil; {
			}
		})
	}
	testenv.Wait(t, "300 acknowledged notifications and a frame", func() bool { return acknowledged.Load() > 300 && len(readers[len(readers)-1].Seen()) > 0 })
	p.Kill()
	posting.Wait()

	p = systemtest.Start(t, dir)
	admin = p.Admin()
	for i := range readers {
		readers[i].Follow(t, admin)
	}
	keyed := p.Keyed()
	for range 20 {
		if err := post(keyed); err != nil {
			t.Fatal(err)
		}
	}
	stored := systemtest.AllNotifications(t, admin, me, "search.event=test")
	if int64(len(stored)) < acknowledged.Load() {
		t.Errorf("%d are stored, %d were acknowledged", len(stored), acknowledged.Load())
	}
	for i := range readers {
		r := &readers[i]
		testenv.Wait(t, "the last notification", func() bool { ids := r.Seen(); return len(ids) > 0 && ids[len(ids)-1] == stored[len(stored)-1] })
		if got := r.Seen(); !slices.Equal(got, stored) {
			t.Errorf("stream %d: got %d, want the %d that are stored, in their order", i, len(got), len(stored))
		}
		if r.Received("reset") {
			t.Errorf("stream %d received a reset", i)
		}
	}
	if code := p.Stop(); code != 0 {
		t.Errorf("exit code %d: %s", code, p.Stderr)
	}
	testenv.Wait(t, "the frame close", func() bool { return readers[0].Received("close") })
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
	p := systemtest.Start(t, dir, flag)
	p.Keyed().Do(t, "POST", "/v1/users/initiate-registration", `{"credential_type":"phone","credential_value":"+41446681800",
		"password":"a long enough password 42","terms_accepted":true,"privacy_policy_accepted":true}`, 201)
	first := testenv.Receive(t, "the message", arrived)
	p.Kill()
	answers.Store(true)
	p = systemtest.Start(t, dir, flag)
	if second := testenv.Receive(t, "the message again", arrived); second != first || first == "" {
		t.Errorf("got %q, want %q again", second, first)
	}
	admin := p.Admin()
	testenv.Wait(t, "the delivery to be sent", func() bool {
		return admin.Total(t, "/v1/notifications/deliveries?search.status=sent&search.id="+first) == 1
	})
	list := admin.Do(t, "GET", "/v1/notifications/deliveries?search.id="+first, "", 200)
	var sent struct {
		Data []struct {
			Attempts int
			Text     string
		}
	}
	if list.Decode(t, &sent); sent.Data[0].Attempts < 2 || sent.Data[0].Text != "" { // a slow gateway is called again
		t.Errorf("got %s, want two attempts and no code", list.Body)
	}
}
