package crash_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"

	"kontor/modules/commands/systemtest"
	"kontor/store/testenv"
)

// eventReceiver gets the calls of a webhook over several lives of the server. It rejects the first call of one event of forty.
type eventReceiver struct {
	*httptest.Server
	t *testing.T

	mu       sync.Mutex
	calls    int
	repeated int
	bodies   map[string]string // by webhook-id
	accepted map[string]bool
}

func newEventReceiver(t *testing.T) *eventReceiver {
	r := &eventReceiver{t: t, bodies: map[string]string{}, accepted: map[string]bool{}}
	r.Server = httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(r.Close)
	return r
}

func (r *eventReceiver) serve(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return // the server was killed in the middle of the call
	}
	id := request.Header.Get("Webhook-Id")
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls++
	before, known := r.bodies[id]
	if known {
		r.repeated++
		if before != string(body) {
			r.t.Errorf("%s was sent as %s and as %s", id, before, body)
		}
	}
	r.bodies[id] = string(body)
	if !known && len(r.bodies)%40 == 0 {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	r.accepted[id] = true
}

func (r *eventReceiver) has(ids []string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range ids {
		if !r.accepted[id] {
			return false
		}
	}
	return true
}

// TestKill_LosesNoEvent kills the server under load several times. The feed has every acknowledged customer once, and the webhook
// gets every event of the feed, each repetition under the same id.
func TestKill_LosesNoEvent(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	r := newEventReceiver(t)
	rounds := testenv.Rounds(0, 3, 200)
	enough := max(300/rounds, 50)
	launch := func() *systemtest.Process {
		return systemtest.Start(t, dir, "--webhooks.allowed_networks=127.0.0.0/8", "--rate_limits.enabled=false")
	}
	var acknowledged []string
	for round := range rounds {
		p := launch()
		admin := p.Admin()
		if round == 0 {
			admin.Do(t, "POST", "/v1/webhooks", `{"url":"`+r.URL+`","types":["customers.*"]}`, 201)
		}
		for _, sent := range systemtest.WriteUntilDead(t, p, admin, round, enough, p.Kill) {
			var customer struct{ ID string }
			if sent.Acknowledged != "" {
				if err := json.Unmarshal([]byte(sent.Acknowledged), &customer); err != nil {
					t.Fatal(err)
				}
				acknowledged = append(acknowledged, customer.ID)
			}
		}
		p.Kill() // in case the server has not been killed
	}
	p := launch()
	defer p.Stop()
	admin := p.Admin()
	records, ids := map[string]int{}, []string{}
	for after := ""; ; {
		var page struct {
			Data []struct {
				ID    string
				RecID string `json:"rec_id"`
			}
			Next    string
			HasMore bool `json:"has_more"`
		}
		got := admin.Do(t, "GET", "/v1/events?types=customers.created&limit=1000"+after, "", 200)
		if err := json.Unmarshal([]byte(got.Body), &page); err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Data {
			records[e.RecID]++
			ids = append(ids, e.ID)
		}
		if after = "&after=" + page.Next; !page.HasMore {
			break
		}
	}
	for _, id := range acknowledged {
		if records[id] != 1 {
			t.Errorf("the feed has %d creations of %s", records[id], id)
		}
	}
	testenv.Wait(t, "the webhook to accept all events", func() bool { return r.has(ids) })
	r.mu.Lock()
	defer r.mu.Unlock()
	t.Logf("%d kills: %d acknowledged, %d events, %d calls, %d of them repetitions", rounds, len(acknowledged), len(ids), r.calls, r.repeated)
	if len(ids) < len(acknowledged) || len(acknowledged) < rounds*enough {
		t.Errorf("%d events of %d acknowledged customers", len(ids), len(acknowledged))
	}
}
