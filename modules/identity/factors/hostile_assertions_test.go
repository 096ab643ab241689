package factors_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"kontor/server/servertest"
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
