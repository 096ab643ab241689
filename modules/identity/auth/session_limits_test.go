package auth_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"kontor/modules/identity/auth"
	"kontor/store"
)

// idleAfter limits how long a session may be unused. On PostgreSQL the service adds a slack for uses that other nodes have not
// written yet, which is subtracted here.
func idleAfter(limit time.Duration) func(*auth.Options) {
	return func(o *auth.Options) { o.SessionIdle = limit }
}

func atMost(sessions int) func(*auth.Options) {
	return func(o *auth.Options) { o.SessionsMax = sessions }
}

// ended returns the reasons of the ended sessions of a user, by id.
func (h *harness) ended(userID string) map[string]string {
	h.Helper()
	rows, err := h.db.Query(context.Background(), `SELECT id, end_reason FROM sessions WHERE user_id = $1 AND ended_at IS NOT NULL`, userID)
	if err != nil {
		h.Fatal(err)
	}
	defer rows.Close()
	reasons := map[string]string{}
	for rows.Next() {
		var id, reason string
		if err := rows.Scan(&id, &reason); err != nil {
			h.Fatal(err)
		}
		reasons[id] = reason
	}
	if err := rows.Err(); err != nil {
		h.Fatal(err)
	}
	return reasons
}

// lastUse returns the last use of the only session of a user, as it is stored.
func (h *harness) lastUse(userID string) (at store.Time) {
	h.Helper()
	if err := h.db.QueryRow(context.Background(), `SELECT last_used_at FROM sessions WHERE user_id = $1`, userID).Scan(&at); err != nil {
		h.Fatal(err)
	}
	return at
}

func (h *harness) sweep() {
	h.Helper()
	if err := h.auth.SweepSessions(context.Background()); err != nil {
		h.Fatal(err)
	}
}

func TestIdle_AnUnusedSessionIsRejected(t *testing.T) {
	h := newHarness(t, idleAfter(15*time.Minute))
	anna := h.user("anna@example.ch")
	tokens := h.mustSignIn("anna@example.ch")
	for range 10 { // more than the access token would last without the limit
		h.clock.Advance(15*time.Minute - time.Millisecond)
		if h.getSessions(anna, tokens.text("access_token")).status == 401 {
			h.Fatal("a session in use is idle")
		}
		tokens = h.refresh(tokens.text("refresh_token"))
		h.expect("refresh", tokens, 200, "")
	}
	h.clock.Advance(15 * time.Minute)
	for range 2 {
		h.expect("access token", h.getSessions(anna, tokens.text("access_token")), 401, "common.unauthorized")
	}
	h.expect("refresh token", h.refresh(tokens.text("refresh_token")), 401, "auth_m.invalid_refresh_token")
	if reasons := h.ended(anna); len(reasons) != 1 {
		t.Errorf("got %v", reasons)
	}
	for id, reason := range h.ended(anna) {
		if reason != "idle" {
			t.Errorf("session %s ended by %s", id, reason)
		}
	}
	h.expect("again", h.refresh(tokens.text("refresh_token")), 401, "auth_m.invalid_refresh_token")
	h.expect("a new session", h.getSessions(anna, h.mustSignIn("anna@example.ch").text("access_token")), 200, "")
}

// A request is a use, also when the session was read from the database again, or its user was changed.
func TestIdle_RequestsAreUses(t *testing.T) {
	h := newHarness(t, idleAfter(5*time.Minute))
	anna := h.user("anna@example.ch")
	token := h.mustSignIn("anna@example.ch").text("access_token")
	for i := range 10 {
		h.clock.Advance(5*time.Minute - time.Millisecond)
		h.expect("in use", h.getSessions(anna, token), 200, "")
		if i%2 > 0 {
			h.inTx(func(tx *store.Tx) error { h.auth.Changed(tx, anna); return nil })
		}
		h.sweep()
	}
	h.clock.Advance(5 * time.Minute)
	h.expect("unused", h.getSessions(anna, token), 401, "common.unauthorized")
}

// Requests write nothing. The job writes the last use.
func TestIdle_RequestsDoNotWrite(t *testing.T) {
	h := newHarness(t, idleAfter(5*time.Minute))
	anna := h.user("anna@example.ch")
	token := h.mustSignIn("anna@example.ch").text("access_token")
	opened := h.lastUse(anna)
	for range 59 {
		h.clock.Advance(time.Second)
		h.expect("request", h.getSessions(anna, token), 200, "")
	}
	if got := h.lastUse(anna); got != opened {
		t.Error("a request wrote the use")
	}
	h.sweep()
	if got := h.lastUse(anna); got != opened.Add(59*time.Second) {
		t.Errorf("stored %d ms after the sign-in, want 59 s", got-opened)
	}
}

func TestIdle_SurvivesARestart(t *testing.T) {
	h := newHarness(t, idleAfter(10*time.Minute))
	anna := h.user("anna@example.ch")
	token := h.mustSignIn("anna@example.ch").text("access_token")
	again := h.restart
	for range 3 {
		h.clock.Advance(9 * time.Minute)
		h.expect("in use", h.getSessions(anna, token), 200, "")
		again()
	}
	h.clock.Advance(10 * time.Minute)
	h.expect("unused over a restart", h.getSessions(anna, token), 401, "common.unauthorized")
	again()
	h.expect("and after another", h.getSessions(anna, token), 401, "common.unauthorized")
}

// The job ends idle sessions, and no session in use.
func TestSweepSessions_EndsIdleSessions(t *testing.T) {
	h := newHarness(t, idleAfter(10*time.Minute))
	anna, bruno := h.user("anna@example.ch"), h.user("bruno@example.ch")
	h.mustSignIn("anna@example.ch")
	used := h.mustSignIn("bruno@example.ch").text("access_token")
	h.clock.Advance(9 * time.Minute)
	h.expect("in use", h.getSessions(bruno, used), 200, "")
	h.clock.Advance(2 * time.Minute)
	h.sweep()
	if got := h.ended(anna); len(got) != 1 {
		t.Errorf("the idle session did not end: %v", got)
	}
	if got := h.ended(bruno); len(got) != 0 {
		t.Errorf("a session in use ended: %v", got)
	}
	h.expect("still in use", h.getSessions(bruno, used), 200, "")
	var entries int
	if err := h.db.QueryRow(context.Background(), `SELECT count(*) FROM audit_entries WHERE action = 'auth.session_ended'`).Scan(&entries); err != nil || entries != 1 {
		t.Errorf("%d audit entries, %v", entries, err)
	}
}

// With the clock set back, sessions stay valid, and a use corrects the time: the limit counts from there.
func TestIdle_ClockSetBack(t *testing.T) {
	for name, step := range steps {
		if step > 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, idleAfter(10*time.Minute))
			anna := h.user("anna@example.ch")
			token := h.mustSignIn("anna@example.ch").text("access_token")
			h.clock.Advance(step)
			h.expect("after the step", h.getSessions(anna, token), 200, "")
			h.sweep()
			h.expect("after a sweep", h.getSessions(anna, token), 200, "")
			h.clock.Advance(10 * time.Minute)
			h.expect("unused since", h.getSessions(anna, token), 401, "common.unauthorized")
		})
	}
}

// Without limits, sessions last as long as their tokens, in any number.
func TestLimits_CanBeOff(t *testing.T) {
	h := newHarness(t)
	anna := h.user("anna@example.ch")
	tokens := h.mustSignIn("anna@example.ch")
	for range 30 {
		h.mustSignIn("anna@example.ch")
	}
	h.clock.Advance(24*time.Hour - time.Millisecond)
	h.sweep()
	h.expect("refresh", h.refresh(tokens.text("refresh_token")), 200, "")
	if got := h.ended(anna); len(got) != 0 {
		t.Errorf("ended %v", got)
	}
}

// The session that was not used for longest ends, not the oldest one. Sessions of other users stay.
func TestSessionsMax_EndsTheOneUnusedForLongest(t *testing.T) {
	h := newHarness(t, atMost(3))
	anna, bruno := h.user("anna@example.ch"), h.user("bruno@example.ch")
	other := h.mustSignIn("bruno@example.ch").text("access_token")
	var open []answer
	for range 3 {
		open = append(open, h.mustSignIn("anna@example.ch"))
		h.clock.Advance(time.Second)
	}
	h.expect("the oldest is used", h.getSessions(anna, open[0].text("access_token")), 200, "")
	h.auth.ForgetSessions() // the cache may drop any entry
	h.clock.Advance(time.Second)
	open[2] = h.refresh(open[2].text("refresh_token"))
	h.clock.Advance(time.Second)
	last := h.mustSignIn("anna@example.ch")
	h.expect("unused for longest", h.getSessions(anna, open[1].text("access_token")), 401, "common.unauthorized")
	h.expect("its refresh token", h.refresh(open[1].text("refresh_token")), 401, "auth_m.invalid_refresh_token")
	for name, a := range map[string]answer{"oldest": open[0], "refreshed": open[2], "new": last} {
		h.expect(name, h.getSessions(anna, a.text("access_token")), 200, "")
	}
	h.expect("another user", h.getSessions(bruno, other), 200, "")
	for id, reason := range h.ended(anna) {
		if reason != "limit" {
			t.Errorf("session %s ended by %q", id, reason)
		}
	}
	if got := h.ended(anna); len(got) != 1 {
		t.Errorf("ended %v", got)
	}
}

// A failed sign-in and a rolled-back one end nothing.
func TestSessionsMax_OnlySignInsCount(t *testing.T) {
	h := newHarness(t, atMost(1))
	anna := h.user("anna@example.ch")
	token := h.mustSignIn("anna@example.ch").text("access_token")
	h.expect("wrong password", h.signIn("anna@example.ch", "wrong password, long"), 401, "auth_m.invalid_credentials")
	if err := h.db.InTx(context.Background(), func(tx *store.Tx) error {
		if _, _, err := h.auth.OpenSession(context.Background(), tx, anna); err != nil {
			return err
		}
		return fmt.Errorf("changed my mind")
	}); err == nil {
		t.Fatal("no error")
	}
	h.expect("still open", h.getSessions(anna, token), 200, "")
	h.clock.Advance(2 * time.Hour)
	h.expect("a session without valid tokens does not count", h.getSessions(anna, h.mustSignIn("anna@example.ch").text("access_token")), 200, "")
}

// A lower limit takes effect at the next sign-in.
func TestSessionsMax_Lowered(t *testing.T) {
	h := newHarness(t)
	anna := h.user("anna@example.ch")
	for range 6 {
		h.mustSignIn("anna@example.ch")
		h.clock.Advance(time.Second)
	}
	h.stop()
	h.start(atMost(2))
	if list := h.getSessions(anna, h.mustSignIn("anna@example.ch").text("access_token")); list.json["total"] != 2.0 {
		t.Errorf("got %s", list.body)
	}
}

// Fifty concurrent sign-ins leave exactly the maximum.
func TestSessionsMax_InParallel(t *testing.T) {
	const clients, most = 50, 5
	h := newHarness(t, atMost(most))
	anna := h.user("anna@example.ch")
	tokens := make(chan string, clients)
	var wait sync.WaitGroup
	for i := range clients {
		wait.Go(func() {
			for { // the queue of sign-ins is bounded; a rejected one comes again
				a, err := h.try("POST", "/authenticate", map[string]string{"user_id": "anna@example.ch", "password": password},
					"X-Forwarded-For", fmt.Sprintf("10.%d.0.1", i))
				if err != nil {
					t.Error(err)
					return
				}
				if a.status == 200 {
					tokens <- a.text("access_token")
					return
				}
				if a.status != 503 && a.status != 429 {
					t.Errorf("sign in: %d %s", a.status, a.body)
					return
				}
			}
		})
	}
	wait.Wait()
	close(tokens)
	active := 0
	for token := range tokens {
		switch a := h.getSessions(anna, token); a.status {
		case 200:
			if active++; a.json["total"] != float64(most) {
				t.Errorf("the list has %v", a.json["total"])
			}
		case 401:
		default:
			t.Errorf("got %d %s", a.status, a.body)
		}
	}
	if reasons := h.ended(anna); active != most || len(reasons) != clients-most {
		t.Errorf("%d active, %d ended; want %d and %d", active, len(reasons), most, clients-most)
	}
}
