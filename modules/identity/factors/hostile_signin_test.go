package factors_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"kontor/server/servertest"
)

// The sequences of requests that an attacker may try.
func TestHostile_SignInSequences(t *testing.T) {
	b := startBank(t)
	anna, beat := b.person().enrolPasskey().enrolTOTP(), b.person().enrolPasskey().enrolTOTP()
	gone := b.person().enrolPasskey().enrolTOTP()
	servertest.Exec(t, b.DB, `UPDATE users SET status = 'disabled' WHERE id = $1`, gone.UserID)
	b.SkipRecordCheck() // the statement above leaves no entry
	type request func(t *testing.T) servertest.Response
	get := func(p *person, o json.RawMessage) servertest.Body {
		return servertest.Body{"passkey": p.device.get(o, nil)}
	}
	code := func(text string) servertest.Body { return servertest.Body{"code": text} }
	recovery := func(text string) servertest.Body { return servertest.Body{"recovery_code": text} }
	used := anna.first()
	usedAnswer := get(anna, used.Passkey.Options)
	anna = anna.signedIn(b.second(used.Token, usedAnswer))
	spent := anna.code(0)
	anna = anna.signedIn(b.second(anna.first().Token, code(spent)))
	spentRecovery := anna.codes[0]
	anna = anna.signedIn(b.second(anna.first().Token, recovery(spentRecovery)))
	for _, attack := range []struct {
		name   string
		do     request
		status int
		code   string
	}{
		{"an accepted answer with its token", func(*testing.T) servertest.Response { return b.second(used.Token, usedAnswer) }, 401, expired},
		{"an accepted answer with a new token", func(*testing.T) servertest.Response { return b.second(anna.first().Token, usedAnswer) }, 401, invalidFactor},
		{"an accepted answer with a token without a password", func(*testing.T) servertest.Response { return b.second(b.withoutPassword().Token, usedAnswer) }, 401, invalidFactor},
		{"the passkey of another user", func(*testing.T) servertest.Response {
			first := anna.first()
			return b.second(first.Token, get(beat, first.Passkey.Options))
		}, 401, invalidFactor},
		{"the passkey of another user with the user's handle", func(*testing.T) servertest.Response {
			first := anna.first()
			return b.second(first.Token, servertest.Body{"passkey": beat.device.get(first.Passkey.Options, func(a *assertion) { a.handle = anna.device.auth.Options.UserHandle })})
		}, 401, invalidFactor},
		{"the credential id of the user, signed by another key", func(*testing.T) servertest.Response {
			first := anna.first()
			return b.second(first.Token, servertest.Body{"passkey": beat.device.get(first.Passkey.Options, func(a *assertion) {
				a.credentialID, a.handle, a.counter = anna.device.key.ID, anna.device.auth.Options.UserHandle, 1000
			})})
		}, 401, invalidFactor},
		{"without a password, a passkey with another user's handle", func(*testing.T) servertest.Response {
			alone := b.withoutPassword()
			return b.second(alone.Token, servertest.Body{"passkey": beat.device.get(alone.Options, func(a *assertion) { a.handle = anna.device.auth.Options.UserHandle })})
		}, 401, invalidFactor},
		{"without a password, a passkey without a handle", func(*testing.T) servertest.Response {
			alone := b.withoutPassword()
			return b.second(alone.Token, servertest.Body{"passkey": anna.device.get(alone.Options, func(a *assertion) { a.handle = nil })})
		}, 401, invalidFactor},
		{"without a password, a code", func(*testing.T) servertest.Response { return b.second(b.withoutPassword().Token, code(anna.code(0))) }, 401, invalidFactor},
		{"without a password, a recovery code", func(*testing.T) servertest.Response {
			return b.second(b.withoutPassword().Token, recovery(anna.codes[1]))
		}, 401, invalidFactor},
		{"without a password, the passkey of a disabled user", func(*testing.T) servertest.Response {
			alone := b.withoutPassword()
			return b.second(alone.Token, get(gone, alone.Options))
		}, 401, invalidFactor},
		{"the options of a sign-in without a password at the second step", func(*testing.T) servertest.Response {
			return b.second(anna.first().Token, get(anna, b.withoutPassword().Options))
		}, 401, invalidFactor},
		{"the options of a second step for a sign-in without a password", func(*testing.T) servertest.Response {
			return b.second(b.withoutPassword().Token, get(anna, anna.first().Passkey.Options))
		}, 401, invalidFactor},
		{"the token of an enrolment", func(*testing.T) servertest.Response {
			e := beat.fresh().begin("passkey")
			return b.second(e.Passkey.Token, get(beat, e.Passkey.Options))
		}, 401, expired},
		{"the options of an enrolment", func(*testing.T) servertest.Response {
			e := beat.fresh().begin("passkey")
			return b.second(beat.first().Token, get(beat, e.Passkey.Options))
		}, 401, invalidFactor},
		{"after five minutes", func(*testing.T) servertest.Response {
			first := anna.first()
			b.Clock.Advance(5*time.Minute + time.Second)
			return b.second(first.Token, get(anna, first.Passkey.Options))
		}, 401, expired},
		{"from another device", func(*testing.T) servertest.Response {
			first := anna.first()
			return b.Anonymous().With("X-Device-ID", "thief").Do("POST", "/authenticate/factor", get(anna, first.Passkey.Options).With("token", first.Token))
		}, 401, expired},
		{"an unknown token", func(*testing.T) servertest.Response {
			return b.second(base64.RawURLEncoding.EncodeToString(randomBytes(32)), code(anna.code(0)))
		}, 401, expired},
		{"a used code", func(*testing.T) servertest.Response { return b.second(anna.first().Token, code(spent)) }, 401, invalidFactor},
		{"a code of two steps ago", func(*testing.T) servertest.Response { return b.second(anna.first().Token, code(anna.code(-2))) }, 401, invalidFactor},
		{"a code of two steps ahead", func(*testing.T) servertest.Response { return b.second(anna.first().Token, code(anna.code(2))) }, 401, invalidFactor},
		{"another user's code", func(*testing.T) servertest.Response { return b.second(anna.first().Token, code(beat.code(0))) }, 401, invalidFactor},
		{"a code with a digit more", func(*testing.T) servertest.Response { return b.second(anna.first().Token, code(anna.code(0)+"0")) }, 401, invalidFactor},
		{"a code in other digits", func(*testing.T) servertest.Response { return b.second(anna.first().Token, code("２８７０８２")) }, 401, invalidFactor},
		{"a code of a megabyte", func(*testing.T) servertest.Response {
			return b.second(anna.first().Token, code(strings.Repeat("1", 1<<20)))
		}, 413, "common.payload_too_large"},
		{"a used recovery code", func(*testing.T) servertest.Response { return b.second(anna.first().Token, recovery(spentRecovery)) }, 401, invalidFactor},
		{"another user's recovery code", func(*testing.T) servertest.Response { return b.second(anna.first().Token, recovery(beat.codes[0])) }, 401, invalidFactor},
		{"a recovery code as a code", func(*testing.T) servertest.Response { return b.second(anna.first().Token, code(anna.codes[1])) }, 401, invalidFactor},
		{"a code as a recovery code", func(*testing.T) servertest.Response { return b.second(anna.first().Token, recovery(anna.code(0))) }, 401, invalidFactor},
		{"two answers", func(*testing.T) servertest.Response {
			return b.second(anna.first().Token, code(anna.code(0)).With("recovery_code", anna.codes[1]))
		}, 400, invalidInput},
		{"no answer", func(*testing.T) servertest.Response { return b.second(anna.first().Token, servertest.Body{}) }, 400, invalidInput},
		{"a passkey that is a list", func(*testing.T) servertest.Response {
			return b.second(anna.first().Token, servertest.Body{"passkey": []int{1}})
		}, 400, invalidInput},
		{"an empty passkey", func(*testing.T) servertest.Response {
			return b.second(anna.first().Token, servertest.Body{"passkey": servertest.Body{}})
		}, 401, invalidFactor},
	} {
		t.Run(attack.name, func(t *testing.T) {
			b.Clock.Advance(time.Hour) // the lockout after earlier attacks is over
			sessions := b.opened()
			attack.do(t).ExpectError(t, attack.status, attack.code)
			if opened := b.opened(); opened != sessions {
				t.Errorf("%d sessions were opened", opened-sessions)
			}
		})
	}
	b.Clock.Advance(time.Hour)
	if remaining := anna.remaining(); remaining != 9 {
		t.Errorf("%d recovery codes are left, want 9", remaining)
	}
}
