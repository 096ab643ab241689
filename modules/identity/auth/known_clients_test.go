package auth_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"kontor/store"
)

// lockOutUnknownNetworks sends wrong passwords from new networks until unknown networks are locked out for a minute.
func (h *harness) lockOutUnknownNetworks(value string) {
	h.Helper()
	for {
		h.attackNetworks++
		a := h.signIn(value, "wrong", from(fmt.Sprintf("2001:db8:%x::1", 0x1000+h.attackNetworks))...)
		if a.status == 401 {
			continue
		}
		if wait := h.retryAfter(a); wait < 60 {
			h.clock.Advance(seconds(wait))
			continue
		}
		return
	}
}

func TestKnownNetwork_IsNotLockedOutByOthers(t *testing.T) {
	h := newHarness(t)
	h.user("anna@example.ch")
	home := from("2001:db8:1:1::7")
	h.mustSignIn("anna@example.ch", home...)
	for range 3 {
		h.lockOutUnknownNetworks("anna@example.ch")
		h.mustSignIn("anna@example.ch", home...)
		h.restart()
	}
	// Another network of the user's own provider counts as unknown.
	h.lockOutUnknownNetworks("anna@example.ch")
	h.retryAfter(h.signIn("anna@example.ch", password, from("2001:db8:1:2::7")...))
}

func TestKnownNetwork_HasItsOwnBudget(t *testing.T) {
	h := newHarness(t)
	h.user("anna@example.ch")
	h.mustSignIn("anna@example.ch")
	h.failSignIns(5, "anna@example.ch")
	if got := h.retryAfter(h.signIn("anna@example.ch", password)); got != 2 {
		t.Errorf("Retry-After %d, want 2", got)
	}
	for _, want := range []int{2, 4, 8, 16} {
		h.clock.Advance(seconds(want))
		h.failSignIns(1, "anna@example.ch")
	}
	if got := h.retryAfter(h.signIn("anna@example.ch", password)); got != 32 {
		t.Errorf("Retry-After %d, want 32", got)
	}
	h.mustSignIn("anna@example.ch", from("192.0.2.7")...) // other networks have their own budget
}

// A success from a known network does not reset the shared budgets.
func TestKnownNetwork_SuccessKeepsSharedBudgets(t *testing.T) {
	h := newHarness(t)
	h.user("anna@example.ch")
	h.mustSignIn("anna@example.ch")
	h.lockOutUnknownNetworks("anna@example.ch")
	h.mustSignIn("anna@example.ch")
	h.retryAfter(h.signIn("anna@example.ch", "wrong", from("203.0.113.1")...))
}

func TestLockout_CountsNetworksOfAnIPv6SubscriberTogether(t *testing.T) {
	h := newHarness(t)
	h.user("anna@example.ch")
	for i := range 10 { // two for each /64, ten for the /56
		h.failSignIns(1, "anna@example.ch", from(fmt.Sprintf("2001:db8:1:%x::1", i/2))...)
	}
	h.retryAfter(h.signIn("anna@example.ch", password, from("2001:db8:1:ff::1")...))
	h.failSignIns(1, "anna@example.ch", from("2001:db8:1:100::1")...)
	h.mustSignIn("anna@example.ch", from("2001:db8:2::1")...)
}

// An attacker with one /48 cannot use up the budget of a user: the /48 is locked out first.
func TestLockout_OneSubscriberCannotUseUpTheBudgetOfAUser(t *testing.T) {
	h := newHarness(t)
	h.user("anna@example.ch")
	tried := 0
	for i := range 600 {
		if h.signIn("anna@example.ch", "wrong", from(fmt.Sprintf("2001:db8:77:%x::1", i%256*256+i/256))...).status == 401 {
			tried++
		}
		h.clock.Advance(time.Second)
	}
	if tried > 20+9 { // nine doubling lockouts in ten minutes
		t.Errorf("%d passwords were compared", tried)
	}
	h.clock.Advance(seconds(2))
	h.mustSignIn("anna@example.ch", from("192.0.2.7")...)
}

func TestLockout_RejectsSprayingFromOneIPv6Subscriber(t *testing.T) {
	h := newHarness(t)
	for i := range 60 {
		h.failSignIns(1, fmt.Sprintf("guess%d@example.ch", i), from(fmt.Sprintf("2001:db8:1:%x::1", i))...)
	}
	h.retryAfter(h.signIn("another@example.ch", "wrong", from("2001:db8:1:aa::1")...))
	h.failSignIns(1, "another@example.ch", from("2001:db8:1:100::1")...)
}

func TestLockout_CountsAllSignInValuesOfAUserTogether(t *testing.T) {
	h := newHarness(t)
	anna := h.user("anna@example.ch")
	h.inTx(func(tx *store.Tx) error { return h.addCredential(tx, anna, "anna@second.example", true) })
	h.failSignIns(2, "anna@example.ch")
	h.failSignIns(2, "anna@second.example")
	h.failSignIns(1, anna)
	for _, value := range []string{"anna@example.ch", "anna@second.example", anna} {
		if got := h.retryAfter(h.signIn(value, password)); got != 2 {
			t.Errorf("%s: Retry-After %d, want 2", value, got)
		}
	}
}

func TestDeviceToken_HasItsOwnBudget(t *testing.T) {
	h := newHarness(t)
	h.user("anna@example.ch")
	token := h.mustSignIn("anna@example.ch", from("192.0.2.1")...).text("device_token")
	away := from("198.51.100.1")
	h.lockOutUnknownNetworks("anna@example.ch")
	h.retryAfter(h.signIn("anna@example.ch", password, away...))
	next := h.mustSignIn("anna@example.ch", append(away, "X-Device-Token", token)...).text("device_token")
	if next == "" || next == token {
		t.Fatalf("got the token %q for %q, want a new one", next, token)
	}
	h.failSignIns(5, "anna@example.ch", append(from("198.51.100.2"), "X-Device-Token", next)...)
	h.retryAfter(h.signIn("anna@example.ch", password, append(from("198.51.100.3"), "X-Device-Token", next)...))
	h.mustSignIn("anna@example.ch", away...) // a known network by now
}

// Invalid tokens do not change a sign-in from an unknown network.
func TestDeviceToken_IsInvalidForOthers(t *testing.T) {
	h := newHarness(t)
	anna := h.user("anna@example.ch")
	h.user("beat@example.ch")
	first := h.mustSignIn("anna@example.ch", from("192.0.2.1")...).text("device_token")
	current := h.mustSignIn("anna@example.ch", append(from("192.0.2.1"), "X-Device-Token", first)...).text("device_token")
	foreign := h.mustSignIn("beat@example.ch", from("192.0.2.2")...).text("device_token")
	h.lockOutUnknownNetworks("anna@example.ch")
	parts := strings.Split(current, ".")
	for name, token := range map[string]string{
		"none": "", "another user's": foreign, "rotated": first, "not signed": parts[0] + "." + parts[1] + ".",
		"of a later rotation": parts[0] + ".9." + parts[2], "of another device": store.NewID() + "." + parts[1] + "." + parts[2],
		"padded": current + "=", "endless": strings.Repeat(current, 50), "the user's id": anna, "dots": "...", "rotation out of range": parts[0] + ".99999999999999999999." + parts[2],
	} {
		a := h.signIn("anna@example.ch", password, append(from("198.51.100.1"), "X-Device-Token", token)...)
		if a.status != 429 {
			t.Errorf("%s: got %d, want 429", name, a.status)
		}
	}
	h.mustSignIn("anna@example.ch", append(from("198.51.100.1"), "X-Device-Token", current)...)
}

func TestDeviceToken_IsRevoked(t *testing.T) {
	for name, end := range map[string]func(h *harness, anna, access, session string){
		"with time": func(h *harness, _, _, _ string) { h.clock.Advance(180 * 24 * time.Hour) },
		"with its session, ended as a lost one": func(h *harness, anna, token, session string) {
			h.expect("end", h.call("DELETE", "/v1/users/"+anna+"/sessions/"+session, nil, "Authorization", "Bearer "+token), 200, "")
		},
		"with a new password": func(h *harness, anna, _, _ string) { h.setPassword(anna) },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			anna := h.user("anna@example.ch")
			a := h.mustSignIn("anna@example.ch", from("192.0.2.1")...)
			page := h.call("GET", "/v1/users/"+anna+"/sessions", nil, "Authorization", "Bearer "+a.text("access_token"))
			session := page.json["data"].([]any)[0].(map[string]any)["id"].(string)
			end(h, anna, a.text("access_token"), session)
			h.lockOutUnknownNetworks("anna@example.ch")
			h.retryAfter(h.signIn("anna@example.ch", password, append(from("198.51.100.1"), "X-Device-Token", a.text("device_token"))...))
		})
	}
}

func TestDeviceToken_LimitsTheirNumber(t *testing.T) {
	h := newHarness(t)
	h.user("anna@example.ch")
	oldest := h.mustSignIn("anna@example.ch").text("device_token")
	for range 25 {
		h.clock.Advance(time.Second)
		h.mustSignIn("anna@example.ch")
	}
	var n int
	if err := h.db.QueryRow(context.Background(), `SELECT count(*) FROM device_tokens`).Scan(&n); err != nil || n != 20 {
		t.Errorf("%d rows, %v; want 20", n, err)
	}
	h.lockOutUnknownNetworks("anna@example.ch")
	h.retryAfter(h.signIn("anna@example.ch", password, append(from("198.51.100.1"), "X-Device-Token", oldest)...))
}

// A new password deletes the known networks.
func TestSetPassword_DeletesKnownNetworks(t *testing.T) {
	h := newHarness(t)
	anna := h.user("anna@example.ch")
	h.mustSignIn("anna@example.ch", from("192.0.2.1")...)
	h.setPassword(anna)
	h.lockOutUnknownNetworks("anna@example.ch")
	h.retryAfter(h.signIn("anna@example.ch", password, from("192.0.2.1")...))
}

func (h *harness) setPassword(userID string) {
	h.Helper()
	hash, err := h.auth.HashPassword(context.Background(), password)
	if err != nil {
		h.Fatal(err)
	}
	h.inTx(func(tx *store.Tx) error { return h.auth.SetPassword(context.Background(), tx, userID, hash) })
}

// A password of a megabyte costs one hash and has the response of a wrong password.
func TestSignIn_LongPasswordsCostNoMore(t *testing.T) {
	h := newHarness(t)
	h.user("anna@example.ch")
	ordinary := h.signIn("anna@example.ch", "wrong", "X-Request-ID", "same")
	before := h.auth.Hashes()
	endless := h.signIn("anna@example.ch", strings.Repeat("x", 1<<20-100), "X-Request-ID", "same")
	if endless.status != 401 || endless.body != ordinary.body || h.auth.Hashes()-before != 1 {
		t.Errorf("got %d %s after %d hashes, want %s", endless.status, endless.body, h.auth.Hashes()-before, ordinary.body)
	}
	h.failSignIns(3, "anna@example.ch") // the long password consumed an attempt
	h.retryAfter(h.signIn("anna@example.ch", password))
}

// Two nodes disagree about the time. Guesses that alternate between them are locked out as those of one node are, whichever counts.
func TestLockout_CountsGuessesOfNodesThatDisagree(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"by seconds": 3 * time.Second, "by minutes": 5 * time.Minute, "by hours": 3 * time.Hour} {
		h := newHarness(t)
		h.user("anna@example.ch")
		compared := 0
		for range 20 {
			for _, step := range []time.Duration{ahead, -ahead} {
				h.clock.Advance(step)
				if got := h.signIn("anna@example.ch", "wrong password"); got.status == 401 {
					compared++
				} else if got.status != 429 {
					t.Fatalf("%s: got %d %s", name, got.status, got.body)
				}
			}
		}
		if compared > 15 {
			t.Errorf("%s: %d of 40 guesses were compared", name, compared)
		}
	}
}

// Lockouts stay, and stay short, after the clock was set back: they begin again.
func TestLockout_StaysShortAfterTheClockWasSetBack(t *testing.T) {
	h := newHarness(t)
	h.user("anna@example.ch")
	h.failSignIns(5, "anna@example.ch")
	for i := range 29 {
		h.failSignIns(1, fmt.Sprintf("guess%d@example.ch", i))
	}
	h.retryAfter(h.signIn("anna@example.ch", password))
	h.retryAfter(h.signIn("beat@example.ch", password))
	h.clock.Advance(-30 * 24 * time.Hour)
	for who, want := range map[string]int{"anna@example.ch": 2, "beat@example.ch": 600} {
		if got := h.retryAfter(h.signIn(who, password)); got != want {
			t.Errorf("%s: Retry-After %d after the clock was set back, want %d", who, got, want)
		}
	}
	h.user("carla@example.ch") // a write follows the clock
	h.clock.Advance(10 * time.Minute)
	h.failSignIns(1, "beat@example.ch")
	h.failSignIns(1, "anna@example.ch")
	if got := h.retryAfter(h.signIn("anna@example.ch", password)); got != 4 {
		t.Errorf("Retry-After %d after one more failure, want 4", got)
	}
	h.clock.Advance(seconds(4))
	h.mustSignIn("anna@example.ch")
}
