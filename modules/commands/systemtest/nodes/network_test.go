package nodes_test

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"kontor/modules/commands/systemtest"
	"kontor/store/postgres/postgrestest"
	"kontor/store/testenv"
)

// addressOf returns host and port of a database.
func addressOf(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

// failures are what the network between a node and PostgreSQL does, and what ends it.
var failures = []struct {
	name       string
	begin, end func(p *postgrestest.Proxy)
}{
	{"cut", (*postgrestest.Proxy).Cut, func(*postgrestest.Proxy) {}},
	{"cut and refused", func(p *postgrestest.Proxy) { p.Refuse(true); p.Cut() }, func(p *postgrestest.Proxy) { p.Refuse(false) }},
	{"black hole", (*postgrestest.Proxy).Hold, (*postgrestest.Proxy).Release},
	{"black hole, then cut", (*postgrestest.Proxy).Hold, func(p *postgrestest.Proxy) { p.Cut(); p.Release() }},
	{"no answers", (*postgrestest.Proxy).HoldAnswers, (*postgrestest.Proxy).Release},
	{"half-open", (*postgrestest.Proxy).HalfOpen, func(*postgrestest.Proxy) {}},
}

// TestNodes_SurviveTheNetwork breaks the connections of one node to PostgreSQL, under load on both. The other node continues and
// answers a logout; the broken one accepts the ended session neither meanwhile nor later. It recovers by itself, and no
// acknowledged write is lost.
func TestNodes_SurviveTheNetwork(t *testing.T) {
	address := postgrestest.URL(t)
	proxy := postgrestest.NewProxy(t, addressOf(t, address))
	a, b := startNode(t, address), startNode(t, proxy.Through(address), "--server.request_seconds=10") // ends what waits on a half-open connection
	admin := a.Admin()
	l := newLoad(t, "network")
	onA, onB := l.on(a, admin, 4), l.on(b, admin.At(b), 4)
	for round := range nodeRounds(1) {
		for n, failure := range failures {
			u := a.Account(admin, fmt.Sprintf("net%d-%d@example.ch", round, n), "Advisor")
			other := u.At(b)
			expectOnly(t, failure.name+", before", other, 200)
			progress(t, onB, 5)
			failure.begin(proxy)
			progress(t, onA, 20)
			u.Do(t, "POST", "/v1/logout", "", 200)
			expectRefused(t, failure.name+", meanwhile", other)
			progress(t, onA, 20)
			failure.end(proxy)
			expectRefused(t, failure.name+", afterwards", other)
			began := time.Now()
			testenv.Wait(t, "the node to be ready", admin.At(b).Ready)
			progress(t, onB, 5)
			t.Logf("%s: the node was back after %v", failure.name, time.Since(began).Round(time.Millisecond))
			if got := expectOnly(t, failure.name+", later", other, 401); got.Code() == "" {
				t.Errorf("got %s", got.Body)
			}
		}
	}
	l.check(t, a)
}

// expectOnly sends a request until its answer has a status. Before, the node may only answer that the time of the request was over.
func expectOnly(t *testing.T, when string, c *systemtest.Client, status int) (got systemtest.Answer) {
	t.Helper()
	testenv.Wait(t, when+", an answer", func() bool {
		var err error
		if got, err = c.Try("GET", "/v1/users/me", ""); err != nil || got.Status != status && got.Status != 503 && got.Status != 504 {
			t.Fatalf("%s: got %d %s, %v, want %d", when, got.Status, got.Body, err, status)
		}
		return got.Status == status
	})
	return got
}

// expectRefused sends a request whose session has ended. Without a database the node may answer that it is not available.
func expectRefused(t *testing.T, when string, c *systemtest.Client) {
	t.Helper()
	if got, err := c.Try("GET", "/v1/users/me", ""); err == nil && got.Status != 401 && got.Status != 503 && got.Status != 504 {
		t.Errorf("%s: an ended session got %d %s", when, got.Status, got.Body)
	}
}

// TestNodes_WorkOverASlowNetwork runs a node with 2 ms to PostgreSQL in each direction beside one without.
func TestNodes_WorkOverASlowNetwork(t *testing.T) {
	address := postgrestest.URL(t)
	proxy := postgrestest.NewProxy(t, addressOf(t, address))
	proxy.Delay(2 * time.Millisecond)
	a, b := startNode(t, address), startNode(t, proxy.Through(address))
	admin := a.Admin()
	l := newLoad(t, "slow")
	onA, onB := l.on(a, admin, 4), l.on(b, admin.At(b), 4)
	for n := range 3 {
		u := a.Account(admin, fmt.Sprintf("slow%d@example.ch", n), "Advisor")
		holdsAtOnce(t, b, func(at *systemtest.Client) (systemtest.Answer, error) {
			return u.Using(at).Try("GET", "/v1/users/me", "")
		},
			func() { u.Do(t, "POST", "/v1/logout", "", 200) }, 401)
		progress(t, onA, 20)
		progress(t, onB, 20)
	}
	l.check(t, b)
}
