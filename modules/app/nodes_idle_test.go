package app_test

import (
	"testing"
	"time"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/server/settings"
)

// A session that is used on one node does not become idle on another, and ends when no node has used it.
func TestNodes_IdleSessions(t *testing.T) {
	const idle = 15 * time.Minute
	a, b := nodes(t, func(o *settings.Settings) { o.Auth.SessionIdle, o.Auth.AccessToken = idle, 12*time.Hour })
	u := a.User(access.Customer)
	me := func(node *servertest.Server) int { return at(node, u).Do("GET", "/v1/users/me", nil).Status }
	flush := func(node *servertest.Server) {
		t.Helper()
		if err := node.Auth.FlushSessionUse(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if me(a) != 200 || me(b) != 200 {
		t.Fatal("a new session is rejected")
	}
	for range 4 { // an hour on a alone; b has the use of the beginning in memory
		a.Clock.Advance(idle - time.Minute)
		if me(a) != 200 {
			t.Fatal("a session in use is rejected where it is used")
		}
		flush(a)
	}
	a.Clock.Advance(idle - time.Minute)
	for _, node := range []*servertest.Server{a, b} {
		if err := node.Auth.SweepSessions(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if me(b) != 200 {
		t.Fatal("a session in use on another node is rejected")
	}
	// b has noted its use, and writes it after a has written a later one.
	a.Clock.Advance(20 * time.Second)
	if me(a) != 200 {
		t.Fatal("a session in use is rejected")
	}
	flush(a)
	flush(b)
	a.Clock.Advance(idle + 15*time.Second)
	if me(b) != 200 {
		t.Fatal("an older use has replaced a later one")
	}
	a.Clock.Advance(idle + time.Minute)
	if one, other := me(a), me(b); one != 401 || other != 401 {
		t.Errorf("an idle session: %d and %d", one, other)
	}
	if err := a.Auth.SweepSessions(t.Context()); err != nil {
		t.Fatal(err)
	}
}
