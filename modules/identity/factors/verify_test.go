package factors_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kontor/modules/kit/factor"
	"kontor/server/apierr"
	"kontor/server/servertest"
	"kontor/store"
)

func TestSignIn_EachMethod(t *testing.T) {
	b := startBank(t)
	anna := b.person().enrolTOTP().enrolPasskey()
	first := anna.first()
	if !slices.Equal(first.Methods, []string{"passkey", "totp", "recovery_code"}) {
		t.Errorf("methods are %v", first.Methods)
	}
	for _, c := range []struct {
		name   string
		begin  func() step
		answer func(s step) servertest.Body
		amr    []string
	}{
		{"app", anna.first, func(step) servertest.Body { return servertest.Body{"code": anna.code(0)} }, []string{"pwd", "otp", "mfa"}},
		{"passkey", anna.first, func(s step) servertest.Body {
			return servertest.Body{"passkey": anna.device.get(s.Passkey.Options, nil)}
		}, []string{"pwd", "hwk", "user", "mfa"}},
		{"recovery code in lower case without hyphens", anna.first, func(step) servertest.Body {
			return servertest.Body{"recovery_code": strings.ToLower(strings.ReplaceAll(anna.codes[3], "-", ""))}
		}, []string{"pwd", "otp", "mfa"}},
		{"passkey without a password", b.withoutPassword, func(s step) servertest.Body {
			return servertest.Body{"passkey": anna.device.get(s.Options, nil)}
		}, []string{"hwk", "user", "mfa"}},
	} {
		s := c.begin()
		p := anna.signedIn(b.second(s.Token, c.answer(s)))
		open := p.sessions()
		var current session
		for _, s := range open {
			if slices.Equal(s.AMR, c.amr) {
				current = s
			}
		}
		if current.ACR != "aal2" || p.UserID != anna.UserID {
			t.Errorf("%s: the sessions are %+v, want one with %v", c.name, open, c.amr)
		}
	}
}

func TestSignIn_SynchronisedPasskeyIsAKeyInSoftware(t *testing.T) {
	b := startBank(t)
	anna := b.person()
	e := anna.begin("passkey")
	anna.device = newDevice(t, e.Passkey.Options)
	anna.device.auth.Options.BackupEligible, anna.device.auth.Options.BackupState = true, true
	anna.confirmed(e.ID, servertest.Body{"token": e.Passkey.Token, "passkey": anna.device.create(e.Passkey.Options)})
	alone := b.withoutPassword()
	// Such passkeys have no counter.
	answer := anna.device.get(alone.Options, func(a *assertion) { a.flags |= backupEligible; a.counter = 0 })
	p := anna.signedIn(b.second(alone.Token, servertest.Body{"passkey": answer}))
	if open := p.sessions(); !slices.ContainsFunc(open, func(s session) bool { return slices.Equal(s.AMR, []string{"swk", "user", "mfa"}) }) {
		t.Errorf("the sessions are %+v, want one with swk", open)
	}
	var backedUp bool
	if err := b.DB.QueryRow(t.Context(), `SELECT backed_up FROM factors WHERE id = $1`, e.ID).Scan(&backedUp); err != nil || backedUp {
		t.Errorf("the passkey is backed up: %t, %v; its last answer says it is not", backedUp, err)
	}
}

// Of many equal answers at the same time, one is accepted.
func TestVerify_AnswersCountOnce(t *testing.T) {
	b := startBank(t)
	anna := b.person().enrolTOTP().enrolPasskey()
	const parallel = 20
	for name, answer := range map[string]func() servertest.Body{
		"code":          func() servertest.Body { return servertest.Body{"code": anna.code(0)} },
		"recovery code": func() servertest.Body { return servertest.Body{"recovery_code": anna.codes[5]} },
	} {
		steps := make([]step, parallel)
		for i := range steps {
			steps[i] = anna.first()
		}
		same := answer()
		accepted := make([]int, parallel)
		var group sync.WaitGroup
		for i := range steps {
			group.Go(func() {
				r, err := b.Anonymous().Try("POST", "/authenticate/factor", same.With("token", steps[i].Token))
				if err == nil {
					accepted[i] = r.Status
				}
			})
		}
		group.Wait()
		n := 0
		for _, status := range accepted {
			switch status {
			case 200:
				n++
			case 401, 429, 503:
			default:
				t.Errorf("%s: status %d", name, status)
			}
		}
		if n != 1 {
			t.Errorf("%s: accepted %d times, want once: %v", name, n, accepted)
		}
		b.Clock.Advance(time.Hour)
	}
}

// A user who is disabled between the two steps is not signed in: neither the token nor the factors work.
func TestVerify_DisabledBetweenTheSteps(t *testing.T) {
	b := startBank(t)
	anna := b.person().enrolTOTP()
	first := anna.first()
	accepted, err := b.Factors.Verify(t.Context(), anna.UserID, nil, factor.Answer{Code: anna.code(0)})
	if err != nil {
		t.Fatal(err)
	}
	b.Admin().Do("PATCH", "/v1/users/"+anna.UserID, servertest.Body{"status": "disabled"}).Expect(t, 200)
	if r := b.second(first.Token, servertest.Body{"code": anna.code(0)}); r.Status != 401 {
		t.Errorf("got %d %s, want 401", r.Status, r.Body)
	}
	if err := b.DB.InTx(t.Context(), func(tx *store.Tx) error { return accepted.Use(t.Context(), tx) }); !errors.Is(err, apierr.InvalidFactor) {
		t.Errorf("a verified answer of a disabled user: %v, want InvalidFactor", err)
	}
}

func TestCounter_GoingBackIsReported(t *testing.T) {
	b := startBank(t)
	anna := b.person().enrolPasskey()
	alone := b.withoutPassword()
	b.second(alone.Token, servertest.Body{"passkey": anna.device.get(alone.Options, func(a *assertion) { a.counter = 0 })}).Expect(t, 200)
	for i, counter := range []uint32{5, 5, 4} {
		alone := b.withoutPassword()
		answer := b.second(alone.Token, servertest.Body{"passkey": anna.device.get(alone.Options, func(a *assertion) { a.counter = counter })})
		if want := map[bool]int{true: 200, false: 401}[i == 0]; answer.Status != want {
			t.Errorf("counter %d: got %d, want %d", counter, answer.Status, want)
		}
	}
	if err := b.Audit.WriteEvents(t.Context()); err != nil {
		t.Fatal(err)
	}
	events := b.Admin().Do("GET", "/v1/audit?search.action=factors.counter_went_back", nil).Expect(t, 200).Body
	if !strings.Contains(events, anna.deviceID) || !strings.Contains(events, `"count":2`) {
		t.Errorf("want two events about the passkey: %s", events)
	}
}
