package auth_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"kontor/modules/identity/auth"
	"kontor/server/access"
	"kontor/server/apierr"
)

// retryAfter returns the seconds of the Retry-After header of a 429.
func (h *harness) retryAfter(a answer) int {
	h.Helper()
	h.expect("lockout", a, 429, "auth_m.cooling_off")
	if a.text("class") != "temporary" || a.json["retryable"] != true {
		h.Errorf("not marked as temporary: %s", a.body)
	}
	n, err := strconv.Atoi(a.header.Get("Retry-After"))
	if err != nil {
		h.Errorf("Retry-After %q", a.header.Get("Retry-After"))
	}
	return n
}

// failSignIns sends n wrong passwords and expects 401 each time.
func (h *harness) failSignIns(n int, value string, headers ...string) {
	h.Helper()
	for range n {
		h.expect("a wrong password", h.signIn(value, "wrong", headers...), 401, "auth_m.invalid_credentials")
	}
}

func TestLockout_DoublesUpToTheLongest(t *testing.T) {
	for _, value := range []string{"anna@example.ch", "nobody@example.ch"} {
		t.Run(value, func(t *testing.T) {
			h := newHarness(t)
			h.user("anna@example.ch")
			h.failSignIns(5, value)
			for _, want := range []int{2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900} {
				if got := h.retryAfter(h.signIn(value, password)); got != want {
					t.Fatalf("Retry-After %d, want %d", got, want)
				}
				h.clock.Advance(seconds(want) - time.Millisecond)
				if got := h.retryAfter(h.signIn(value, password)); got != 1 {
					t.Fatalf("Retry-After %d just before the end of the lockout, want 1", got)
				}
				h.clock.Advance(time.Millisecond)
				h.failSignIns(1, value)
			}
		})
	}
}

func TestLockout_EndsWithASuccess(t *testing.T) {
	h := newHarness(t)
	h.user("anna@example.ch")
	h.failSignIns(5, "anna@example.ch")
	h.retryAfter(h.signIn("anna@example.ch", password))
	h.clock.Advance(seconds(2))
	h.mustSignIn("anna@example.ch")
	h.failSignIns(5, "anna@example.ch")
	if got := h.retryAfter(h.signIn("anna@example.ch", password)); got != 2 {
		t.Errorf("Retry-After %d after a success, want 2", got)
	}
}

func TestLockout_CountsSpellingsOfAValueTogether(t *testing.T) {
	h := newHarness(t)
	h.failSignIns(2, "anna@example.ch")
	h.failSignIns(3, " ANNA@example.ch")
	h.retryAfter(h.signIn("Anna@Example.ch", password))
}

func TestLockout_SurvivesARestartAndExpiresAfterADay(t *testing.T) {
	h := newHarness(t)
	h.user("anna@example.ch")
	h.failSignIns(5, "anna@example.ch")
	h.restart()
	h.retryAfter(h.signIn("anna@example.ch", password))
	h.clock.Advance(24 * time.Hour)
	if err := h.auth.Purge(context.Background()); err != nil {
		t.Fatal(err)
	}
	h.failSignIns(5, "anna@example.ch")
	if got := h.retryAfter(h.signIn("anna@example.ch", password)); got != 2 {
		t.Errorf("Retry-After %d after a day, want 2", got)
	}
}

// Failures from other networks lock a user out for a minute at most. Further networks do not help an attacker.
func TestLockout_CountsAValueFromAllNetworks(t *testing.T) {
	h := newHarness(t)
	h.user("anna@example.ch")
	for i := range 20 {
		h.failSignIns(1, "anna@example.ch", from(fmt.Sprintf("198.51.100.%d", i))...)
	}
	for i, want := range []int{2, 4, 8, 16, 32, 60, 60} {
		stranger := from(fmt.Sprintf("203.0.113.%d", i))
		if got := h.retryAfter(h.signIn("anna@example.ch", password, stranger...)); got != want {
			t.Fatalf("Retry-After %d, want %d", got, want)
		}
		h.clock.Advance(seconds(want))
		h.failSignIns(1, "anna@example.ch", stranger...)
	}
	h.clock.Advance(seconds(60))
	h.mustSignIn("anna@example.ch")
}

func TestLockout_CountsAnIPv6SubscriberOnce(t *testing.T) {
	h := newHarness(t)
	for i := range 5 {
		h.failSignIns(1, "anna@example.ch", from(fmt.Sprintf("2001:db8:1:1::%d", i+1))...)
	}
	h.retryAfter(h.signIn("anna@example.ch", password, from("2001:db8:1:1:ffff::1")...))
	h.failSignIns(1, "anna@example.ch", from("2001:db8:1:2::1")...)
}

func TestLockout_RejectsPasswordSpraying(t *testing.T) {
	h := newHarness(t)
	h.user("anna@example.ch")
	for i := range 31 { // successful sign-ins are not counted
		h.user(fmt.Sprintf("staff%d@example.ch", i))
		h.mustSignIn(fmt.Sprintf("staff%d@example.ch", i))
	}
	for i := range 30 {
		h.failSignIns(1, fmt.Sprintf("guess%d@example.ch", i))
		h.clock.Advance(time.Second)
	}
	if got := h.retryAfter(h.signIn("anna@example.ch", password)); got != 600-30 {
		t.Errorf("Retry-After %d, want %d", got, 570)
	}
	h.failSignIns(1, "guess7@example.ch") // is one of the thirty
	h.mustSignIn("anna@example.ch", from("192.0.2.7")...)
	h.clock.Advance(seconds(570) - time.Millisecond)
	h.retryAfter(h.signIn("anna@example.ch", password))
	h.clock.Advance(time.Millisecond)
	h.mustSignIn("anna@example.ch")
}

// Failures of others from the same office or carrier address do not lock out users who have signed in from there.
func TestLockout_SparesKnownUsersOfASharedNetwork(t *testing.T) {
	h := newHarness(t)
	h.user("anna@example.ch")
	h.mustSignIn("anna@example.ch")
	h.user("beat@example.ch")
	h.mustSignIn("beat@example.ch", from("192.0.2.7")...)
	h.clock.Advance(30*24*time.Hour - time.Minute)
	for i := range 30 {
		h.failSignIns(1, fmt.Sprintf("guess%d@example.ch", i))
	}
	h.retryAfter(h.signIn("beat@example.ch", password)) // is at home elsewhere
	h.mustSignIn("anna@example.ch")
	h.failSignIns(5, "anna@example.ch") // and her password is no easier to guess than before
	if got := h.retryAfter(h.signIn("anna@example.ch", password)); got != 2 {
		t.Errorf("Retry-After %d, want 2", got)
	}
}

func TestLockout_KnownNetworksExpireAfterAMonth(t *testing.T) {
	h := newHarness(t)
	h.user("anna@example.ch")
	h.mustSignIn("anna@example.ch")
	h.clock.Advance(30 * 24 * time.Hour)
	for i := range 30 {
		h.failSignIns(1, fmt.Sprintf("guess%d@example.ch", i))
	}
	h.retryAfter(h.signIn("anna@example.ch", password))
}

// Reauthentication does not bypass lockouts.
func TestVerifyPassword_LocksOut(t *testing.T) {
	h := newHarness(t)
	id := h.user("anna@example.ch")
	ctx := access.With(context.Background(), &access.Caller{UserID: id})
	for range 5 {
		if err := h.auth.VerifyPassword(ctx, id, "wrong"); !isKind(err, apierr.InvalidCredentials) {
			t.Fatalf("got %v", err)
		}
	}
	if err := h.auth.VerifyPassword(ctx, id, password); !isKind(err, apierr.LockedOut) {
		t.Fatalf("got %v", err)
	}
	h.clock.Advance(seconds(2))
	if err := h.auth.VerifyPassword(ctx, id, password); err != nil {
		t.Fatalf("got %v", err)
	}
}

func TestLockout_StoresNoSignInValue(t *testing.T) {
	h := newHarness(t)
	h.failSignIns(1, "secret-person@example.ch")
	rows, err := h.db.Query(context.Background(), `SELECT subject FROM sign_in_failures UNION ALL SELECT network || subject FROM sign_in_values`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var subject string
		if err := rows.Scan(&subject); err != nil || strings.Contains(subject, "secret") || strings.Contains(subject, "127.") {
			t.Errorf("stored %q, %v", subject, err)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}

func TestPurge(t *testing.T) {
	h := newHarness(t, func(o *auth.Options) { o.FreeAttempts = 100 })
	h.user("anna@example.ch")
	h.mustSignIn("anna@example.ch", "X-Device-ID", "laptop")
	h.failSignIns(2, "nobody@example.ch")
	ctx := context.Background()
	left := func() (text string) {
		for _, table := range []string{"sessions", "refresh_tokens", "devices", "sign_in_failures", "sign_in_values", "known_networks", "device_tokens"} {
			var n int
			if err := h.db.QueryRow(ctx, "SELECT count(*) FROM "+table).Scan(&n); err != nil {
				t.Fatal(err)
			}
			text += strconv.Itoa(n)
		}
		return text
	}
	for _, step := range []struct {
		after time.Duration
		want  string
	}{
		{0, "1112111"}, {10 * time.Minute, "1112011"}, {24 * time.Hour, "1110011"}, {31 * 24 * time.Hour, "0010001"}, {400 * 24 * time.Hour, "0000000"},
	} {
		h.clock.Advance(step.after)
		if err := h.auth.Purge(ctx); err != nil {
			t.Fatal(err)
		}
		if got := left(); got != step.want {
			t.Errorf("after %v: rows %s, want %s", step.after, got, step.want)
		}
	}
}
