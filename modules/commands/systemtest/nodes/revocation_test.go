package nodes_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"kontor/modules/commands/systemtest"
	"kontor/store/postgres/postgrestest"
	"kontor/store/testenv"
)

// revocation is a change on one node after which another node must answer differently.
type revocation struct {
	name   string
	before func(t *testing.T, a, b *systemtest.Process, admin *systemtest.Client, n int) (probe func(*systemtest.Client) (systemtest.Answer, error), revoke func())
	want   int // status of the probe from the moment on that the change was answered
}

// revocations are the changes that hold on all nodes as soon as they are answered.
func revocations() []revocation {
	me := func(c *systemtest.Client) func(*systemtest.Client) (systemtest.Answer, error) {
		return func(at *systemtest.Client) (systemtest.Answer, error) {
			return c.Using(at).Try("GET", "/v1/users/me", "")
		}
	}
	user := func(a *systemtest.Process, admin *systemtest.Client, what string, n int) systemtest.Account {
		return a.Account(admin, fmt.Sprintf("%s%d@example.ch", what, n), "Advisor")
	}
	return []revocation{
		{"logout", func(t *testing.T, a, _ *systemtest.Process, admin *systemtest.Client, n int) (func(*systemtest.Client) (systemtest.Answer, error), func()) {
			u := user(a, admin, "logout", n)
			return me(u.Client), func() { u.Do(t, "POST", "/v1/logout", "", 200) }
		}, 401},
		{"disabled user", func(t *testing.T, a, _ *systemtest.Process, admin *systemtest.Client, n int) (func(*systemtest.Client) (systemtest.Answer, error), func()) {
			u := user(a, admin, "disabled", n)
			return me(u.Client), func() { admin.Do(t, "PATCH", "/v1/users/"+u.ID, `{"status":"disabled"}`, 200) }
		}, 401},
		{"changed password", func(t *testing.T, a, b *systemtest.Process, admin *systemtest.Client, n int) (func(*systemtest.Client) (systemtest.Answer, error), func()) {
			u := user(a, admin, "password", n)
			other := b.SignIn(u.Email, systemtest.CustomerPassword)
			return me(other), func() {
				u.Do(t, "PUT", "/v1/users/"+u.ID+"/password", systemtest.Object("old_password", systemtest.CustomerPassword, "password", "nine loud geese swim rivers"), 200)
			}
		}, 401},
		{"lost role", func(t *testing.T, a, _ *systemtest.Process, admin *systemtest.Client, n int) (func(*systemtest.Client) (systemtest.Answer, error), func()) {
			u := user(a, admin, "role", n)
			return func(at *systemtest.Client) (systemtest.Answer, error) {
					return u.Using(at).Try("GET", "/v1/users?limit=1", "")
				},
				func() { admin.Do(t, "PUT", "/v1/users/"+u.ID+"/roles", `{"roles":["Customer"]}`, 200) }
		}, 403},
		{"revoked API key", func(t *testing.T, a, _ *systemtest.Process, admin *systemtest.Client, n int) (func(*systemtest.Client) (systemtest.Answer, error), func()) {
			id, key := admin.CreateKey(t, fmt.Sprintf(`{"name":"key %d"}`, n))
			keyed := a.Client("X-API-Key", key)
			return func(at *systemtest.Client) (systemtest.Answer, error) {
					return keyed.Using(at).Try("GET", "/v1/public-endpoint", "")
				},
				func() { admin.Do(t, "DELETE", "/v1/api-keys/"+id, "", 200) }
		}, 401},
	}
}

// TestNodes_RevokeAtOnce changes rights on one node while four clients keep the same rights in use on the other. No request that
// begins after the change was answered may succeed.
func TestNodes_RevokeAtOnce(t *testing.T) {
	address := postgrestest.URL(t)
	nodes := []*systemtest.Process{startNode(t, address), startNode(t, address)}
	for _, r := range revocations() {
		t.Run(strings.ReplaceAll(r.name, " ", "_"), func(t *testing.T) {
			for n := range nodeRounds(3) {
				a, b := nodes[n%2], nodes[1-n%2]
				probe, revoke := r.before(t, a, b, a.Admin(), n)
				holdsAtOnce(t, b, probe, revoke, r.want)
			}
		})
	}
}

// holdsAtOnce probes a node from four clients, before, during and after a change.
func holdsAtOnce(t *testing.T, b *systemtest.Process, probe func(*systemtest.Client) (systemtest.Answer, error), revoke func(), want int) {
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
		c := b.Client()
		probing.Go(func() {
			for n := 0; n < after && !stopped.Load(); {
				late := answered.Load()
				got, err := probe(c)
				switch {
				case err != nil:
					t.Error(err)
					return
				case late && got.Status != want:
					t.Errorf("after the change was answered: got %d %s, want %d", got.Status, got.Body, want)
					return
				case got.Status != 200 && got.Status != want:
					t.Errorf("got %d %s", got.Status, got.Body)
					return
				case late:
					n++
				case got.Status == 200:
					before.Add(1)
				}
			}
		})
	}
	testenv.Wait(t, "20 successful probes", func() bool { return before.Load() >= 20 || t.Failed() })
	revoke()
	answered.Store(true)
	probing.Wait()
}
