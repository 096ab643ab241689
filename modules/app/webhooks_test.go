package app_test

import (
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"kontor/modules/webhooks"
	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/server/settings"
)

// received is a call of a webhook.
type received struct {
	header http.Header
	body   string
}

// receiver collects the calls of webhooks.
type receiver struct {
	*httptest.Server
	calls  chan received
	mu     sync.Mutex
	status func(n int, w http.ResponseWriter) // of the n-th call, from 1; nil: 204
	n      int
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{calls: make(chan received, 1000)}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, _ := io.ReadAll(request.Body)
		r.mu.Lock()
		r.n++
		n, status := r.n, r.status
		r.mu.Unlock()
		if status == nil {
			w.WriteHeader(http.StatusNoContent)
		} else {
			status(n, w)
		}
		r.calls <- received{request.Header, string(body)}
	}))
	t.Cleanup(r.Close)
	return r
}

func allowLocal(s *settings.Settings) {
	s.Webhooks.AllowedNetworks = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
}

func TestWebhooks_DeliverSignedEvents(t *testing.T) {
	s := servertest.Start(t, allowLocal)
	r := newReceiver(t)
	var hook struct{ ID, Secret string }
	s.Admin().Do("POST", "/v1/webhooks", map[string]any{"url": r.URL, "types": []string{"customers.*"}}).Expect(t, 201).Into(t, &hook)
	id := s.Admin().Create("/v1/customers", map[string]any{"first_name": "Anna", "last_name": "Keller", "email": "a@example.ch"})
	call := <-r.calls
	if !strings.Contains(call.body, `"type":"customers.created"`) || !strings.Contains(call.body, id) || strings.Contains(call.body, "Keller") {
		t.Errorf("got %s", call.body)
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(hook.Secret, "whsec_"))
	if err != nil {
		t.Fatal(err)
	}
	_ = key
	_ = webhooks.Signatures
	_ = access.Advisor
	t.Logf("%v %s", call.header, call.body)
	t.Log(s.Admin().Do("GET", "/v1/events?include=record&limit=3", nil).Body)
	t.Log(s.Admin().Do("GET", "/v1/webhooks/"+hook.ID+"/deliveries", nil).Body)
	t.Log(s.Admin().Do("GET", "/v1/webhooks", nil).Body)
}
