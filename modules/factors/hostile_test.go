package factors_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/descope/virtualwebauthn"

	"kontor/server/access"
	"kontor/server/servertest"
)

const (
	invalidFactor = "auth_m.invalid_factor"
	expired       = "auth_m.challenge_expired"
	invalidInput  = "common.invalid_input"
	over          = "factors.enrolment_over"
	noAccess      = "common.rbac_no_rec_access"
)

// assertionAttack is a wrong answer of an authenticator at the second step of a sign-in. Status and code are 401
// auth_m.invalid_factor unless it names others.
type assertionAttack struct {
	name   string
	change func(a *assertion)
	status int
	code   string
}

func origin(text string) func(a *assertion) { return func(a *assertion) { a.origin = text } }
func response(name string, value any) func(a *assertion) {
	return func(a *assertion) { a.response = map[string]any{name: value} }
}
func outer(name string, value any) func(a *assertion) {
	return func(a *assertion) { a.outer = map[string]any{name: value} }
}
func flags(set, clear byte) func(a *assertion) {
	return func(a *assertion) { a.flags = a.flags&^clear | set }
}

var assertionAttacks = []assertionAttack{
	{name: "the origin of another site", change: origin("https://bank.example.evil.example")},
	{name: "a subdomain as origin", change: origin("https://login.bank.example")},
	{name: "another scheme as origin", change: origin("http://bank.example")},
	{name: "another port as origin", change: origin("https://bank.example:8443")},
	{name: "an empty origin", change: origin("")},
	{name: "the origin of a mobile app", change: origin("android:apk-key-hash:2jmj7l5rSw0yVb/vlWAYkK/YBwk")},
	{name: "another relying party", change: func(a *assertion) { a.rpID = "evil.example" }},
	{name: "a subdomain as relying party", change: func(a *assertion) { a.rpID = "login.bank.example" }},
	{name: "the parent domain as relying party", change: func(a *assertion) { a.rpID = "example" }},
	{name: "no user verification", change: flags(0, userVerified)},
	{name: "no user presence", change: flags(0, userPresent)},
	{name: "a passkey that has become eligible for backups", change: flags(backupEligible|backedUp, 0)},
	{name: "a backup of a passkey that is not eligible", change: flags(backedUp, 0)},
	{name: "attested data that is missing", change: flags(hasKey, 0)},
	{name: "attested data of garbage", change: func(a *assertion) { a.flags |= hasKey; a.tail = randomBytes(200) }},
	{name: "extensions that are missing", change: flags(hasExtensions, 0)},
	{name: "extensions of truncated CBOR", change: func(a *assertion) { a.flags |= hasExtensions; a.tail = []byte{0xbf, 0x61} }},
	{name: "extensions of deeply nested CBOR", change: func(a *assertion) { a.flags |= hasExtensions; a.tail = []byte(strings.Repeat("\x81", 5000)) }},
	{name: "extensions that announce four billion entries", change: func(a *assertion) { a.flags |= hasExtensions; a.tail = []byte("\xba\xff\xff\xff\xff") }},
	{name: "bytes after the authenticator data", change: func(a *assertion) { a.tail = []byte{0} }},
	{name: "a counter that went back", change: func(a *assertion) { a.counter = 1 }},
	{name: "a counter of zero", change: func(a *assertion) { a.counter = 0 }},
	{name: "the type of an enrolment", change: func(a *assertion) { a.kind = "webauthn.create" }},
	{name: "an unknown type", change: func(a *assertion) { a.kind = "payment.get" }},
	{name: "a request from a frame of another origin", change: func(a *assertion) { a.more = `,"crossOrigin":true` }},
	{name: "a top origin", change: func(a *assertion) { a.more = `,"crossOrigin":true,"topOrigin":"https://bank.example"` }},
	{name: "a challenge that Kontor did not make", change: func(a *assertion) { a.challenge = base64.RawURLEncoding.EncodeToString(randomBytes(32)) }},
	{name: "an empty challenge", change: func(a *assertion) { a.challenge = "" }},
	{name: "a challenge of another case", change: func(a *assertion) { a.challenge = strings.ToUpper(a.challenge) }},
	{name: "an unknown credential", change: func(a *assertion) { a.credentialID = randomBytes(32) }},
	{name: "an empty credential id", change: func(a *assertion) { a.credentialID = nil }},
	{name: "an id that is not the raw id", change: outer("id", base64.RawURLEncoding.EncodeToString(randomBytes(32)))},
	{name: "another user's handle", change: func(a *assertion) { a.handle = randomBytes(16) }},
	{name: "an empty signature", change: response("signature", "")},
	{name: "a random signature", change: response("signature", base64.RawURLEncoding.EncodeToString(randomBytes(71)))},
	{name: "a signature that is no text", change: response("signature", 17)},
	{name: "client data that is not JSON", change: response("clientDataJSON", base64.RawURLEncoding.EncodeToString([]byte("{")))},
	{name: "client data that is not base64", change: response("clientDataJSON", "****")},
	{name: "no client data", change: response("clientDataJSON", nil)},
	{name: "truncated authenticator data", change: response("authenticatorData", base64.RawURLEncoding.EncodeToString(randomBytes(36)))},
	{name: "no authenticator data", change: response("authenticatorData", "")},
	{name: "authenticator data of 20 KB", change: response("authenticatorData", base64.RawURLEncoding.EncodeToString(randomBytes(20<<10))), status: 400, code: invalidInput},
	{name: "authenticator data of 10 KB", change: response("authenticatorData", base64.RawURLEncoding.EncodeToString(randomBytes(10<<10)))},
	{name: "a body of 100 KB", change: response("authenticatorData", strings.Repeat("A", 100<<10)), status: 413, code: "common.payload_too_large"},
	{name: "another type of credential", change: outer("type", "password")},
	{name: "no response", change: outer("response", nil)},
	{name: "a response that is a text", change: outer("response", "yes")},
	{name: "extensions that were not requested", change: outer("clientExtensionResults", map[string]any{"appid": true})},
}

// The second step of a sign-in with a password, and of one without.
func TestHostile_Assertions(t *testing.T) {
	b := startBank(t)
	anna := b.person().enrolPasskey()
	answer := func(options json.RawMessage, change func(a *assertion)) servertest.Body {
		return servertest.Body{"passkey": anna.device.get(options, change)}
	}
	// The counter has grown, so that it can go back.
	anna = anna.signedIn(b.second(b.proceed(anna), answer(b.last.Passkey.Options, nil)))
	anna = anna.signedIn(b.second(b.proceed(anna), answer(b.last.Passkey.Options, nil)))
	for _, attack := range assertionAttacks {
		if attack.status == 0 {
			attack.status, attack.code = 401, invalidFactor
		}
		t.Run(attack.name, func(t *testing.T) {
			b.Clock.Advance(time.Hour) // the lockout after earlier attacks is over
			first := anna.first()
			before := b.state()
			b.second(first.Token, answer(first.Passkey.Options, attack.change)).ExpectError(t, attack.status, attack.code)
			if after := b.state(); after != before {
				t.Errorf("with a password, the state changed from\n%s\nto\n%s", before, after)
			}
			b.Clock.Advance(time.Hour)
			alone := b.withoutPassword()
			b.second(alone.Token, answer(alone.Options, attack.change)).ExpectError(t, attack.status, attack.code)
			if after := b.state(); after != before {
				t.Errorf("without a password, the state changed from\n%s\nto\n%s", before, after)
			}
		})
	}
	b.Clock.Advance(time.Hour)
	b.second(b.proceed(anna), answer(b.last.Passkey.Options, nil)).Expect(t, 200)
}

// proceed sends the password of the person and keeps the answer in last.
func (b *bank) proceed(p *person) (token string) {
	b.t.Helper()
	b.last = p.first()
	return b.last.Token
}

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

// opened returns how many sessions of users with a factor were opened, except those that the tests open themselves.
func (b *bank) opened() (n int) {
	b.t.Helper()
	if err := b.DB.QueryRow(b.t.Context(), `SELECT count(*) FROM sessions`).Scan(&n); err != nil {
		b.t.Fatal(err)
	}
	return n - b.own
}

// fresh returns the person with a new session that has just verified a factor.
func (p *person) fresh() *person {
	p.bank.t.Helper()
	first := p.first()
	p.bank.own++
	return p.signedIn(p.bank.second(first.Token, servertest.Body{"passkey": p.device.get(first.Passkey.Options, nil)}))
}

func (p *person) remaining() int {
	p.bank.t.Helper()
	var page struct {
		Data []struct {
			Type      string
			Remaining *int
		}
	}
	p.fresh().Do("GET", p.path("?search.type=recovery_codes"), nil).Expect(p.bank.t, 200).Into(p.bank.t, &page)
	if len(page.Data) != 1 || page.Data[0].Remaining == nil {
		p.bank.t.Fatalf("recovery codes: %+v", page)
	}
	return *page.Data[0].Remaining
}

// Answers of an authenticator that must not become a passkey.
func TestHostile_Enrolments(t *testing.T) {
	b := startBank(t)
	anna, beat := b.person().enrolPasskey(), b.person().enrolPasskey()
	inner := func(text json.RawMessage, name string, value any) json.RawMessage {
		var answer map[string]any
		if err := json.Unmarshal(text, &answer); err != nil {
			t.Fatal(err)
		}
		answer["response"].(map[string]any)[name] = value
		changed, err := json.Marshal(answer)
		if err != nil {
			t.Fatal(err)
		}
		return changed
	}
	object := func(text json.RawMessage, change func(object []byte) []byte) json.RawMessage {
		var answer struct {
			Response struct{ AttestationObject string }
		}
		if err := json.Unmarshal(text, &answer); err != nil {
			t.Fatal(err)
		}
		raw, err := base64.RawURLEncoding.DecodeString(answer.Response.AttestationObject)
		if err != nil {
			t.Fatal(err)
		}
		return inner(text, "attestationObject", base64.RawURLEncoding.EncodeToString(change(raw)))
	}
	const rejected = `"passkey"`
	for _, attack := range []struct {
		name   string
		answer func(d *device, options json.RawMessage) json.RawMessage
	}{
		{"another origin", func(d *device, o json.RawMessage) json.RawMessage {
			d.rp.Origin = "https://evil.example"
			return d.create(o)
		}},
		{"an origin without TLS", func(d *device, o json.RawMessage) json.RawMessage {
			d.rp.Origin = "http://bank.example"
			return d.create(o)
		}},
		{"another relying party", func(d *device, o json.RawMessage) json.RawMessage { d.rp.ID = "evil.example"; return d.create(o) }},
		{"no user verification", func(d *device, o json.RawMessage) json.RawMessage {
			d.auth.Options.UserNotVerified = true
			return d.create(o)
		}},
		{"no user presence", func(d *device, o json.RawMessage) json.RawMessage {
			d.auth.Options.UserNotPresent = true
			return d.create(o)
		}},
		{"a backup that is not eligible", func(d *device, o json.RawMessage) json.RawMessage {
			d.auth.Options.BackupState = true
			return d.create(o)
		}},
		{"another challenge", func(d *device, o json.RawMessage) json.RawMessage {
			return d.create(json.RawMessage(strings.Replace(string(o), `"challenge":"`, `"challenge":"AAAA`, 1)))
		}},
		{"an assertion", func(d *device, o json.RawMessage) json.RawMessage { return d.get(o, nil) }},
		{"client data of an assertion", func(d *device, o json.RawMessage) json.RawMessage {
			return inner(d.create(o), "clientDataJSON", base64.RawURLEncoding.EncodeToString([]byte(`{"type":"webauthn.get","challenge":"x","origin":"`+address+`"}`)))
		}},
		{"truncated CBOR", func(d *device, o json.RawMessage) json.RawMessage {
			return object(d.create(o), func(raw []byte) []byte { return raw[:len(raw)-40] })
		}},
		{"empty CBOR", func(d *device, o json.RawMessage) json.RawMessage {
			return object(d.create(o), func([]byte) []byte { return []byte{0xa0} })
		}},
		{"no CBOR", func(d *device, o json.RawMessage) json.RawMessage {
			return object(d.create(o), func([]byte) []byte { return nil })
		}},
		{"CBOR of ten thousand levels", func(d *device, o json.RawMessage) json.RawMessage {
			return object(d.create(o), func([]byte) []byte { return []byte(strings.Repeat("\x81", 10000)) })
		}},
		{"CBOR that announces four billion entries", func(d *device, o json.RawMessage) json.RawMessage {
			return object(d.create(o), func([]byte) []byte { return []byte("\xba\xff\xff\xff\xff") })
		}},
		{"an attestation of another vendor", func(d *device, o json.RawMessage) json.RawMessage {
			return object(d.create(o), func(raw []byte) []byte {
				return []byte(strings.Replace(string(raw), "fpacked", "capple"[:1]+"apple\x00", 1))
			})
		}},
		{"an attestation in an unknown format", func(d *device, o json.RawMessage) json.RawMessage {
			return object(d.create(o), func(raw []byte) []byte { return []byte(strings.Replace(string(raw), "packed", "pocked", 1)) })
		}},
		{"a tampered key", func(d *device, o json.RawMessage) json.RawMessage {
			return object(d.create(o), func(raw []byte) []byte { raw[len(raw)-5] ^= 1; return raw })
		}},
		{"a credential id of 2,000 bytes", func(d *device, o json.RawMessage) json.RawMessage { d.key.ID = randomBytes(2000); return d.create(o) }},
		{"an empty credential id", func(d *device, o json.RawMessage) json.RawMessage { d.key.ID = nil; return d.create(o) }},
		{"20 KB", func(d *device, o json.RawMessage) json.RawMessage {
			return object(d.create(o), func([]byte) []byte { return randomBytes(20 << 10) })
		}},
		{"a weak key", func(d *device, o json.RawMessage) json.RawMessage {
			return object(d.create(o), func(raw []byte) []byte { // algorithm -65535 is RS1: RSA with SHA-1
				return []byte(strings.Replace(string(raw), "\x01\x02\x03\x26", "\x01\x02\x03\x39\xff\xfe", 1))
			})
		}},
	} {
		t.Run(attack.name, func(t *testing.T) {
			e := anna.begin("passkey")
			d := newDevice(t, e.Passkey.Options)
			before := b.state()
			answer := anna.Do("POST", anna.path("/"+e.ID+"/confirm"), servertest.Body{"token": e.Passkey.Token, "passkey": attack.answer(d, e.Passkey.Options)})
			answer.ExpectError(t, 400, invalidInput)
			if !strings.Contains(answer.Body, rejected) {
				t.Errorf("%s does not name the field passkey", answer.Body)
			}
			if after := b.state(); after != before {
				t.Errorf("the state changed from\n%s\nto\n%s", before, after)
			}
			// The token has one attempt.
			right := newDevice(t, e.Passkey.Options).create(e.Passkey.Options)
			anna.Do("POST", anna.path("/"+e.ID+"/confirm"), servertest.Body{"token": e.Passkey.Token, "passkey": right}).ExpectError(t, 400, invalidInput)
		})
	}
	t.Run("the credential of another user", func(t *testing.T) {
		e := anna.begin("passkey")
		d := newDevice(t, e.Passkey.Options)
		d.key = beat.device.key
		anna.Do("POST", anna.path("/"+e.ID+"/confirm"), servertest.Body{"token": e.Passkey.Token, "passkey": d.create(e.Passkey.Options)}).
			ExpectError(t, 409, "factors.passkey_exists")
	})
	t.Run("an RSA key is accepted", func(t *testing.T) {
		e := anna.begin("passkey")
		d := newDevice(t, e.Passkey.Options)
		d.key = virtualwebauthn.NewCredential(virtualwebauthn.KeyTypeRSA)
		anna.Do("POST", anna.path("/"+e.ID+"/confirm"), servertest.Body{"token": e.Passkey.Token, "passkey": d.create(e.Passkey.Options)}).Expect(t, 200)
	})
}

// Requests about factors that their caller must not make.
func TestHostile_Requests(t *testing.T) {
	b := startBank(t)
	anna, beat, advisor := b.person().enrolPasskey(), b.person(), b.person(access.Advisor)
	admin := b.Admin()
	e := beat.begin("passkey")
	d := newDevice(t, e.Passkey.Options)
	right := func() servertest.Body {
		return servertest.Body{"token": e.Passkey.Token, "passkey": d.create(e.Passkey.Options)}
	}
	other := b.SignIn(beat.UserID, password) // another session of the same user
	pendingApp := anna.begin("totp")
	foreign := anna.path("/" + anna.deviceID)
	before := b.state()
	servertest.Run(t, b.Server, []servertest.Scenario{
		{Name: "another user lists them", As: beat.Client, Method: "GET", Path: anna.path(""), Status: 403, Contains: []string{noAccess}},
		{Name: "an advisor lists them", As: advisor.Client, Method: "GET", Path: anna.path(""), Status: 403, Contains: []string{noAccess}},
		{Name: "another user enrols one", As: beat.Client, Method: "POST", Path: anna.path(""), Body: servertest.Body{"type": "totp"}, Status: 403, Contains: []string{noAccess}},
		{Name: "an administrator enrols one", As: admin, Method: "POST", Path: anna.path(""), Body: servertest.Body{"type": "totp"}, Status: 403, Contains: []string{noAccess}, Excludes: []string{"secret"}},
		{Name: "an administrator replaces the recovery codes", As: admin, Method: "POST", Path: anna.path(""), Body: servertest.Body{"type": "recovery_codes"}, Status: 403, Contains: []string{noAccess}},
		{Name: "another user confirms one", As: anna.Client, Method: "POST", Path: beat.path("/" + e.ID + "/confirm"), Body: right(), Status: 403, Contains: []string{noAccess}},
		{Name: "an administrator confirms one", As: admin, Method: "POST", Path: beat.path("/" + e.ID + "/confirm"), Body: right(), Status: 403, Contains: []string{noAccess}},
		{Name: "another session confirms one", As: other, Method: "POST", Path: beat.path("/" + e.ID + "/confirm"), Body: right(), Status: 409, Contains: []string{over}},
		{Name: "another user confirms one below their own path", As: anna.Client, Method: "POST", Path: anna.path("/" + e.ID + "/confirm"), Body: right(), Status: 404, Contains: []string{"factors.factor_not_found"}},
		{Name: "another user renames one", As: beat.Client, Method: "PATCH", Path: foreign, Body: servertest.Body{"name": "mine"}, Status: 403, Contains: []string{noAccess}},
		{Name: "an administrator renames one", As: admin, Method: "PATCH", Path: foreign, Body: servertest.Body{"name": "mine"}, Status: 403, Contains: []string{noAccess}},
		{Name: "another user removes one", As: beat.Client, Method: "DELETE", Path: foreign, Status: 403, Contains: []string{noAccess}},
		{Name: "an advisor removes one", As: advisor.Client, Method: "DELETE", Path: foreign, Status: 403, Contains: []string{noAccess}},
		{Name: "an unknown type", As: anna.Client, Method: "POST", Path: anna.path(""), Body: servertest.Body{"type": "sms"}, Status: 400, Contains: []string{`"type"`}},
		{Name: "no type", As: anna.Client, Method: "POST", Path: anna.path(""), Body: servertest.Body{}, Status: 400, Contains: []string{`"type"`}},
		{Name: "a name of two lines", As: anna.Client, Method: "POST", Path: anna.path(""), Body: servertest.Body{"type": "totp", "name": "a\nb"}, Status: 400, Contains: []string{`"name"`}},
		{Name: "a name of 101 characters", As: anna.Client, Method: "POST", Path: anna.path(""), Body: servertest.Body{"type": "totp", "name": strings.Repeat("ä", 101)}, Status: 400, Contains: []string{`"name"`}},
		{Name: "a name that is taken", As: anna.Client, Method: "POST", Path: anna.path(""), Body: servertest.Body{"type": "passkey", "name": "PASSKEY"}, Status: 409, Contains: []string{"factors.name_exists"}},
		{Name: "an empty new name", As: anna.Client, Method: "PATCH", Path: foreign, Body: servertest.Body{"name": " "}, Status: 400, Contains: []string{`"name"`}},
		{Name: "recovery codes without a factor", As: beat.Client, Method: "POST", Path: beat.path(""), Body: servertest.Body{"type": "recovery_codes"}, Status: 409, Contains: []string{"factors.no_second_factor"}, Excludes: []string{"recovery_codes\":["}},
		{Name: "an app is confirmed without a code", As: anna.Client, Method: "POST", Path: anna.path("/" + pendingApp.ID + "/confirm"), Body: servertest.Body{}, Status: 400, Contains: []string{`"code"`}},
		{Name: "an app is confirmed with a passkey", As: anna.Client, Method: "POST", Path: anna.path("/" + pendingApp.ID + "/confirm"), Body: right(), Status: 400, Contains: []string{`"code"`}},
		{Name: "a passkey is confirmed with a code", As: beat.Client, Method: "POST", Path: beat.path("/" + e.ID + "/confirm"), Body: servertest.Body{"code": "123456"}, Status: 400, Contains: []string{`"passkey"`, `"token"`}},
		{Name: "a passkey is confirmed with a text", As: beat.Client, Method: "POST", Path: beat.path("/" + e.ID + "/confirm"), Body: right().With("passkey", "x"), Status: 400, Contains: []string{`"passkey"`}},
		{Name: "an active factor is confirmed again", As: anna.Client, Method: "POST", Path: foreign + "/confirm", Body: right(), Status: 409, Contains: []string{"factors.already_active"}},
		{Name: "a foreign token", As: anna.Client, Method: "POST", Path: anna.path("/" + anna.begin("passkey").ID + "/confirm"), Body: right(), Status: 400, Contains: []string{`"token"`}},
		{Name: "the API key lists them", As: b.Keyed(), Method: "GET", Path: anna.path(""), Status: 401},
		{Name: "an anonymous client removes one", Method: "DELETE", Path: foreign, Status: 401},
	})
	if after := b.state(); after != before {
		t.Errorf("the state changed from\n%s\nto\n%s", before, after)
	}
}

// Every change needs a recent authentication; without a factor, any, and with one, by the factor.
func TestHostile_StaleSessions(t *testing.T) {
	b := startBank(t)
	anna := b.person().enrolPasskey()
	app := anna.begin("totp")
	b.Clock.Advance(10 * time.Minute)
	before := b.state()
	const stale = "auth_m.insufficient_user_authentication"
	attacks := []servertest.Scenario{
		{Name: "enrol", Method: "POST", Path: anna.path(""), Body: servertest.Body{"type": "totp"}},
		{Name: "confirm", Method: "POST", Path: anna.path("/" + app.ID + "/confirm"), Body: servertest.Body{"code": codeOf(t, app.TOTP.Secret, b.Clock.Now())}},
		{Name: "replace the recovery codes", Method: "POST", Path: anna.path(""), Body: servertest.Body{"type": "recovery_codes"}},
		{Name: "rename", Method: "PATCH", Path: anna.path("/" + anna.deviceID), Body: servertest.Body{"name": "mine"}},
		{Name: "remove", Method: "DELETE", Path: anna.path("/" + anna.deviceID)},
	}
	for _, password := range []bool{false, true} {
		if password { // a password makes the session fresh, which is not enough for a user with a factor
			anna.Do("POST", "/v1/users/"+anna.UserID+"/reauthenticate", servertest.Body{"password": "a long enough password 42"}).Expect(t, 200)
		}
		for i, attack := range attacks {
			attack.As, attack.Status, attack.Contains = anna.Client, 401, []string{stale, `"acr_values":["aal2"]`}
			attack.Name = fmt.Sprintf("%d %s, password %t", i, attack.Name, password)
			servertest.Run(t, b.Server, []servertest.Scenario{attack})
		}
	}
	if after := b.state(); after != before {
		t.Errorf("the state changed from\n%s\nto\n%s", before, after)
	}
}
