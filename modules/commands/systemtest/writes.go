package systemtest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
)

// Write is a request to create a customer, with its response.
type Write struct {
	Key, Body    string
	Acknowledged string // the body of the response; empty without one
}

// WriteUntilDead creates customers over many connections until the server has ended, and returns all requests. It calls
// kill once, after enough requests were acknowledged.
func WriteUntilDead(tb testing.TB, p *Process, admin *Client, round, enough int, kill func()) []Write {
	tb.Helper()
	const writers = 32
	var all []Write
	var mu sync.Mutex
	var acknowledged atomic.Int64
	var wait sync.WaitGroup
	for w := range writers {
		connection := p.Client(admin.Headers...)
		wait.Go(func() {
			for n := 0; ; n++ {
				name := fmt.Sprintf("r%d-w%d-n%d", round, w, n)
				sent := Write{Key: "key-" + name, Body: fmt.Sprintf(`{"first_name":"Anna <& Co>","last_name":%q,"email":"%s@example.ch","metadata":{"round":%d}}`, name, name, round)}
				got, err := connection.With("Idempotency-Key", sent.Key).Try("POST", "/v1/customers", sent.Body)
				if err == nil && got.Status == 503 {
					return // the server is shutting down
				}
				if err == nil && got.Status != 201 {
					tb.Errorf("got %d %s", got.Status, got.Body)
					return
				}
				if err == nil {
					sent.Acknowledged = got.Body
				}
				mu.Lock()
				all = append(all, sent)
				mu.Unlock()
				if err != nil {
					return
				}
				if int(acknowledged.Add(1)) == enough {
					kill()
				}
			}
		})
	}
	wait.Wait()
	return all
}

// CheckWrite sends a request again, with its idempotency key, and checks the record and its audit entry.
func CheckWrite(t *testing.T, admin *Client, w Write) {
	t.Helper()
	again := admin.With("Idempotency-Key", w.Key).Do(t, "POST", "/v1/customers", w.Body, 201)
	if w.Acknowledged == "" {
		return
	}
	if again.Body != w.Acknowledged || again.Header.Get("Idempotency-Replayed") != "true" {
		t.Fatalf("the replay returned %s, the original request %s", again.Body, w.Acknowledged)
	}
	id := IDOf(t, w.Acknowledged)
	if got := admin.Do(t, "GET", "/v1/customers/"+id, "", 200); got.Body != w.Acknowledged {
		t.Fatalf("acknowledged %s, after the crash %s", w.Acknowledged, got.Body)
	}
	if n := admin.Total(t, "/v1/audit?search.action=customers.create&search.rec_id="+id); n != 1 {
		t.Fatalf("customer %s has %d audit entries", id, n)
	}
}
