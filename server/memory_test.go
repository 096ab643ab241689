package server_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"

	"kontor/server"
	"kontor/server/access"
	"kontor/server/ratelimit"
	"kontor/server/servertest"
)

// lease is the memory of a node whose lease may end.
type lease struct {
	valid  atomic.Bool
	err    error
	renew  func()
	renews atomic.Int64
}

func (l *lease) Remembers() bool { return l.valid.Load() }

func (l *lease) Renew(context.Context) error {
	l.renews.Add(1)
	if l.renew != nil {
		l.renew()
	}
	return l.err
}

// A node without a lease reads the policy before it decides; a node with one does not read.
func TestMemory_IsRenewedWithoutALease(t *testing.T) {
	memory := &lease{}
	memory.valid.Store(true)
	address, _ := start(t, func(o *server.Options) {
		o.Auth, o.Memory = tokens{cached: true}, memory
		policy := o.Policy
		memory.renew = func() { policy.Store(access.NewPolicy(access.PolicyData{})) } // what another node has changed
	})
	status := func() int {
		response, _ := servertest.Send(t, address, "GET", thingPath, "", "Authorization", "Bearer user-reader")
		return response.StatusCode
	}
	if status() != http.StatusOK || memory.renews.Load() != 0 {
		t.Error("a node with a lease has read the policy")
	}
	memory.valid.Store(false)
	if got := status(); got != http.StatusForbidden || memory.renews.Load() == 0 {
		t.Errorf("a node without a lease answers %d", got)
	}
}

// A node that can neither hear of changes nor read them refuses callers, and still answers probes and public requests.
func TestMemory_CannotBeRenewed(t *testing.T) {
	address, _ := start(t, func(o *server.Options) {
		o.Auth, o.Memory = tokens{cached: true}, &lease{err: errors.New("no database")}
	})
	for path, want := range map[string]int{thingPath: 503, "/healthz": 200, "/public": 200, "/openapi.json": 200} {
		response, body := servertest.Send(t, address, "GET", path, "", "Authorization", "Bearer user-reader")
		if response.StatusCode != want {
			t.Errorf("%s: %d %s, want %d", path, response.StatusCode, body, want)
		}
	}
}

// counts is a table of counts that can fail.
type counts struct{ err error }

func (c counts) Count(_ context.Context, _ []byte, perMinute int) (ratelimit.Verdict, error) {
	return ratelimit.Verdict{Limit: perMinute}, c.err
}

func (c counts) Refund(context.Context, []byte, int) error { return c.err }

// Stored rules are counted in the table. Without it, each node allows its share of the rule.
func TestRateLimit_StoredRulesAreCountedForAllNodes(t *testing.T) {
	for _, c := range []struct {
		counts  server.Counts
		allowed int
	}{{counts{}, 0}, {counts{errors.New("no writes")}, 1}, {nil, 1}} {
		address, _ := start(t, func(o *server.Options) {
			o.Auth, o.Counts, o.LiveNodes = tokens{cached: true}, c.counts, func() int { return 2 }
		})
		allowed := 0
		for range 5 { // the rule allows 3 requests
			response, _ := servertest.Send(t, address, "POST", "/v1/things", `{"name":"x"}`, "Authorization", "Bearer user-creator")
			if response.StatusCode == http.StatusCreated {
				allowed++
			}
		}
		if allowed != c.allowed {
			t.Errorf("%+v: %d requests were allowed, want %d", c.counts, allowed, c.allowed)
		}
	}
}
