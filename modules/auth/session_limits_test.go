package auth_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"kontor/modules/auth"
	"kontor/store"
)

func idleAfter(limit time.Duration) func(*auth.Options) {
	return func(o *auth.Options) { o.SessionIdle = limit }
}

func atMost(sessions int) func(*auth.Options) {
	return func(o *auth.Options) { o.SessionsMax = sessions }
}

// ended returns the reasons of the ended sessions of a user, by id.
func (w *world) ended(userID string) map[string]string {
	w.Helper()
	rows, err := w.db.Query(context.Background(), `SELECT id, end_reason FROM sessions WHERE user_id = $1 AND ended_at IS NOT NULL`, userID)
	if err != nil {
		w.Fatal(err)
	}
	defer rows.Close()
	reasons := map[string]string{}
	for rows.Next() {
		var id, reason string
		if err := rows.Scan(&id, &reason); err != nil {
			w.Fatal(err)
		}
		reasons[id] = reason
	}
	if err := rows.Err(); err != nil {
		w.Fatal(err)
	}
	return reasons
}

// lastUse returns the last use of the only session of a user, as it is stored.
func (w *world) lastUse(userID string) (at store.Time) {
	w.Helper()
	if err := w.db.QueryRow(context.Background(), `SELECT last_used_at FROM sessions WHERE user_id = $1`, userID).Scan(&at); err != nil {
		w.Fatal(err)
	}
	return at
}

func (w *world) sweep() {
	w.Helper()
	if err := w.auth.SweepSessions(context.Background()); err != nil {
		w.Fatal(err)
	}
}

func TestIdle_AnUnusedSessionIsRejected(t *testing.T) {
	w := newWorld(t, idleAfter(15*time.Minute))
	anna := w.user("anna@example.ch")
	tokens := w.tokens("anna@example.ch")
	for range 10 { // more than the access token would last without the limit
		w.clock.Advance(15*time.Minute - time.Millisecond)
		if w.sessions(anna, tokens.text("access_token")).status == 401 {
			w.Fatal("a session in use is idle")
		}
		tokens = w.refresh(tokens.text("refresh_token"))
		w.expect("refresh", tokens, 200, "")
	}
	w.clock.Advance(15 * time.Minute)
	for range 2 {
		w.expect("access token", w.sessions(anna, tokens.text("access_token")), 401, "common.unauthorized")
	}
	w.expect("refresh token", w.refresh(tokens.text("refresh_token")), 401, "auth_m.invalid_refresh_token")
	if reasons := w.ended(anna); len(reasons) != 1 {
		t.Errorf("got %v", reasons)
	}
	for id, reason := range w.ended(anna) {
		if reason != "idle" {
			t.Errorf("session %s ended by %s", id, reason)
		}
	}
	w.expect("again", w.refresh(tokens.text("refresh_token")), 401, "auth_m.invalid_refresh_token")
	w.expect("a new session", w.sessions(anna, w.tokens("anna@example.ch").text("access_token")), 200, "")
}

// A request is a use, also when the session was read from the database again, or its user was changed.
func TestIdle_RequestsAreUses(t *testing.T) {
	w := newWorld(t, idleAfter(5*time.Minute))
	anna := w.user("anna@example.ch")
	token := w.tokens("anna@example.ch").text("access_token")
	for i := range 10 {
		w.clock.Advance(5*time.Minute - time.Millisecond)
		w.expect("in use", w.sessions(anna, token), 200, "")
		if i%2 > 0 {
			w.inTx(func(tx *store.Tx) error { w.auth.Changed(tx, anna); return nil })
		}
		w.sweep()
	}
	w.clock.Advance(5 * time.Minute)
	w.expect("unused", w.sessions(anna, token), 401, "common.unauthorized")
}

// Requests write nothing. The job writes the use of a session at most once a minute.
func TestIdle_RequestsDoNotWrite(t *testing.T) {
	w := newWorld(t, idleAfter(5*time.Minute))
	anna := w.user("anna@example.ch")
	token := w.tokens("anna@example.ch").text("access_token")
	opened := w.lastUse(anna)
	for range 59 {
		w.clock.Advance(time.Second)
		w.expect("request", w.sessions(anna, token), 200, "")
	}
	w.sweep()
	if got := w.lastUse(anna); got != opened {
		t.Errorf("written %d ms after the sign-in", got-opened)
	}
	w.clock.Advance(time.Second)
	w.expect("request", w.sessions(anna, token), 200, "")
	if got := w.lastUse(anna); got != opened {
		t.Error("the request wrote the use")
	}
	w.sweep()
	if got := w.lastUse(anna); got != opened.Add(time.Minute) {
		t.Errorf("stored %d ms after the sign-in, want a minute", got-opened)
	}
}

func TestIdle_SurvivesARestart(t *testing.T) {
	w := newWorld(t, idleAfter(10*time.Minute))
	anna := w.user("anna@example.ch")
	token := w.tokens("anna@example.ch").text("access_token")
	again := func() { w.Helper(); w.stop(); w.start(idleAfter(10 * time.Minute)) }
	for range 3 {
		w.clock.Advance(9 * time.Minute)
		w.expect("in use", w.sessions(anna, token), 200, "")
		again()
	}
	w.clock.Advance(10 * time.Minute)
	w.expect("unused over a restart", w.sessions(anna, token), 401, "common.unauthorized")
	again()
	w.expect("and after another", w.sessions(anna, token), 401, "common.unauthorized")
}

// The job ends idle sessions, and no session in use.
func TestSweepSessions_EndsIdleSessions(t *testing.T) {
	w := newWorld(t, idleAfter(10*time.Minute))
	anna, bruno := w.user("anna@example.ch"), w.user("bruno@example.ch")
	w.tokens("anna@example.ch")
	used := w.tokens("bruno@example.ch").text("access_token")
	w.clock.Advance(9 * time.Minute)
	w.expect("in use", w.sessions(bruno, used), 200, "")
	w.clock.Advance(2 * time.Minute)
	w.sweep()
	if got := w.ended(anna); len(got) != 1 {
		t.Errorf("the idle session did not end: %v", got)
	}
	if got := w.ended(bruno); len(got) != 0 {
		t.Errorf("a session in use ended: %v", got)
	}
	w.expect("still in use", w.sessions(bruno, used), 200, "")
	var entries int
	if err := w.db.QueryRow(context.Background(), `SELECT count(*) FROM audit_entries WHERE action = 'auth.session_ended'`).Scan(&entries); err != nil || entries != 1 {
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
			w := newWorld(t, idleAfter(10*time.Minute))
			anna := w.user("anna@example.ch")
			token := w.tokens("anna@example.ch").text("access_token")
			w.clock.Advance(step)
			w.expect("after the step", w.sessions(anna, token), 200, "")
			w.sweep()
			w.expect("after a sweep", w.sessions(anna, token), 200, "")
			w.clock.Advance(10 * time.Minute)
			w.expect("unused since", w.sessions(anna, token), 401, "common.unauthorized")
		})
	}
}

// Without limits, sessions last as long as their tokens, in any number.
func TestLimits_CanBeOff(t *testing.T) {
	w := newWorld(t)
	anna := w.user("anna@example.ch")
	tokens := w.tokens("anna@example.ch")
	for range 30 {
		w.tokens("anna@example.ch")
	}
	w.clock.Advance(24*time.Hour - time.Millisecond)
	w.sweep()
	w.expect("refresh", w.refresh(tokens.text("refresh_token")), 200, "")
	if got := w.ended(anna); len(got) != 0 {
		t.Errorf("ended %v", got)
	}
}

// The session that was not used for longest ends, not the oldest one. Sessions of other users stay.
func TestSessionsMax_EndsTheOneUnusedForLongest(t *testing.T) {
	w := newWorld(t, atMost(3))
	anna, bruno := w.user("anna@example.ch"), w.user("bruno@example.ch")
	other := w.tokens("bruno@example.ch").text("access_token")
	var open []answer
	for range 3 {
		open = append(open, w.tokens("anna@example.ch"))
		w.clock.Advance(time.Second)
	}
	w.expect("the oldest is used", w.sessions(anna, open[0].text("access_token")), 200, "")
	w.clock.Advance(time.Second)
	open[2] = w.refresh(open[2].text("refresh_token"))
	w.clock.Advance(time.Second)
	last := w.tokens("anna@example.ch")
	w.expect("unused for longest", w.sessions(anna, open[1].text("access_token")), 401, "common.unauthorized")
	w.expect("its refresh token", w.refresh(open[1].text("refresh_token")), 401, "auth_m.invalid_refresh_token")
	for name, a := range map[string]answer{"oldest": open[0], "refreshed": open[2], "new": last} {
		w.expect(name, w.sessions(anna, a.text("access_token")), 200, "")
	}
	w.expect("another user", w.sessions(bruno, other), 200, "")
	for id, reason := range w.ended(anna) {
		if reason != "limit" {
			t.Errorf("session %s ended by %q", id, reason)
		}
	}
	if got := w.ended(anna); len(got) != 1 {
		t.Errorf("ended %v", got)
	}
}

// A failed sign-in and a rolled-back one end nothing.
func TestSessionsMax_OnlySignInsCount(t *testing.T) {
	w := newWorld(t, atMost(1))
	anna := w.user("anna@example.ch")
	token := w.tokens("anna@example.ch").text("access_token")
	w.expect("wrong password", w.signIn("anna@example.ch", "wrong password, long"), 401, "auth_m.invalid_credentials")
	if err := w.db.InTx(context.Background(), func(tx *store.Tx) error {
		if _, _, err := w.auth.OpenSession(context.Background(), tx, anna); err != nil {
			return err
		}
		return fmt.Errorf("changed my mind")
	}); err == nil {
		t.Fatal("no error")
	}
	w.expect("still open", w.sessions(anna, token), 200, "")
	w.clock.Advance(2 * time.Hour)
	w.expect("a session without valid tokens does not count", w.sessions(anna, w.tokens("anna@example.ch").text("access_token")), 200, "")
}

// A lower limit takes effect at the next sign-in.
func TestSessionsMax_Lowered(t *testing.T) {
	w := newWorld(t)
	anna := w.user("anna@example.ch")
	for range 6 {
		w.tokens("anna@example.ch")
		w.clock.Advance(time.Second)
	}
	w.stop()
	w.start(atMost(2))
	if list := w.sessions(anna, w.tokens("anna@example.ch").text("access_token")); list.json["total"] != 2.0 {
		t.Errorf("got %s", list.body)
	}
}

// Fifty concurrent sign-ins leave exactly the maximum.
func TestSessionsMax_InParallel(t *testing.T) {
	const clients, most = 50, 5
	w := newWorld(t, atMost(most))
	anna := w.user("anna@example.ch")
	tokens := make(chan string, clients)
	var wait sync.WaitGroup
	for i := range clients {
		wait.Go(func() {
			for { // the queue of sign-ins is bounded; a rejected one comes again
				a, err := w.try("POST", "/authenticate", map[string]string{"user_id": "anna@example.ch", "password": password},
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
		switch a := w.sessions(anna, token); a.status {
		case 200:
			if active++; a.json["total"] != float64(most) {
				t.Errorf("the list has %v", a.json["total"])
			}
		case 401:
		default:
			t.Errorf("got %d %s", a.status, a.body)
		}
	}
	if reasons := w.ended(anna); active != most || len(reasons) != clients-most {
		t.Errorf("%d active, %d ended; want %d and %d", active, len(reasons), most, clients-most)
	}
}
