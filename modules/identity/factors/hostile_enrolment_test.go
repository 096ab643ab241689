package factors_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/descope/virtualwebauthn"

	"kontor/server/servertest"
)

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
