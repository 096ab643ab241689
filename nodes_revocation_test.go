package main

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"kontor/store/postgres/postgrestest"
)

// revocation is a change on one node after which another node must answer differently.
type revocation struct {
	name   string
	before func(t *testing.T, a, b *process, admin *client, n int) (probe func(*client) (answer, error), revoke func())
	want   int // status of the probe from the moment on that the change was answered
}

// revocations are the changes that hold on all nodes as soon as they are answered.
func revocations() []revocation {
	me := func(c *client) func(*client) (answer, error) {
		return func(at *client) (answer, error) { return c.using(at).try("GET", "/v1/users/me", "") }
	}
	user := func(a *process, admin *client, what string, n int) account {
		return a.account(admin, fmt.Sprintf("%s%d@example.ch", what, n), "Advisor")
	}
	return []revocation{
		{"logout", func(t *testing.T, a, _ *process, admin *client, n int) (func(*client) (answer, error), func()) {
			u := user(a, admin, "logout", n)
			return me(u.client), func() { u.do(t, "POST", "/v1/logout", "", 200) }
		}, 401},
		{"disabled user", func(t *testing.T, a, _ *process, admin *client, n int) (func(*client) (answer, error), func()) {
			u := user(a, admin, "disabled", n)
			return me(u.client), func() { admin.do(t, "PATCH", "/v1/users/"+u.id, `{"status":"disabled"}`, 200) }
		}, 401},
		{"changed password", func(t *testing.T, a, b *process, admin *client, n int) (func(*client) (answer, error), func()) {
			u := user(a, admin, "password", n)
			other := b.signIn(u.email, customerPassword)
			return me(other), func() {
				u.do(t, "PUT", "/v1/users/"+u.id+"/password", object("old_password", customerPassword, "password", "nine loud geese swim rivers"), 200)
			}
		}, 401},
		{"lost role", func(t *testing.T, a, _ *process, admin *client, n int) (func(*client) (answer, error), func()) {
			u := user(a, admin, "role", n)
			return func(at *client) (answer, error) { return u.using(at).try("GET", "/v1/users?limit=1", "") },
				func() { admin.do(t, "PUT", "/v1/users/"+u.id+"/roles", `{"roles":["Customer"]}`, 200) }
		}, 403},
		{"revoked API key", func(t *testing.T, a, _ *process, admin *client, n int) (func(*client) (answer, error), func()) {
			id, key := admin.createKey(t, fmt.Sprintf(`{"name":"key %d"}`, n))
			keyed := a.client("X-API-Key", key)
			return func(at *client) (answer, error) { return keyed.using(at).try("GET", "/v1/public-endpoint", "") },
				func() { admin.do(t, "DELETE", "/v1/api-keys/"+id, "", 200) }
		}, 401},
	}
}

// using returns a client with the headers of c that uses the connection and the node of another client.
func (c *client) using(at *client) *client {
	next := *at
	next.headers = c.headers
	return &next
}

// TestNodes_RevokeAtOnce changes rights on one node while four clients keep the same rights in use on the other. No request that
// begins after the change was answered may succeed.
func TestNodes_RevokeAtOnce(t *testing.T) {
	address := postgrestest.URL(t)
	nodes := []*process{startNode(t, address), startNode(t, address)}
	for _, r := range revocations() {
		t.Run(strings.ReplaceAll(r.name, " ", "_"), func(t *testing.T) {
			for n := range nodeRounds(t, 6) {
				a, b := nodes[n%2], nodes[1-n%2]
				probe, revoke := r.before(t, a, b, a.admin(), n)
				holdsAtOnce(t, b, probe, revoke, r.want)
			}
		})
	}
}

// holdsAtOnce probes a node from four clients, before, during and after a change.
func holdsAtOnce(t *testing.T, b *process, probe func(*client) (answer, error), revoke func(), want int) {
	t.Helper()
	var answered, stopped atomic.Bool
	var before atomic.Int64
	var probing sync.WaitGroup
	defer func() { // also when the change fails
		stopped.Store(true)
		probing.Wait()
	}()
	const after = 25 // requests of each client after the change
	for range 4 {
		c := b.client()
		probing.Go(func() {
			for n := 0; n < after && !stopped.Load(); {
				late := answered.Load()
				got, err := probe(c)
				switch {
				case err != nil:
					t.Error(err)
					return
				case late && got.status != want:
					t.Errorf("after the change was answered: got %d %s, want %d", got.status, got.body, want)
					return
				case got.status != 200 && got.status != want:
					t.Errorf("got %d %s", got.status, got.body)
					return
				case late:
					n++
				case got.status == 200:
					before.Add(1)
				}
			}
		})
	}
	waitUntil(t, func() bool { return before.Load() >= 20 || t.Failed() })
	revoke()
	answered.Store(true)
	probing.Wait()
}
