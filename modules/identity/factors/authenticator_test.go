package factors_test

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"testing"

	"github.com/descope/virtualwebauthn"
)

// device is a virtual authenticator with one passkey.
type device struct {
	t    testing.TB
	rp   virtualwebauthn.RelyingParty
	auth virtualwebauthn.Authenticator
	key  virtualwebauthn.Credential
}

// newDevice returns an authenticator for the user of the options.
func newDevice(t testing.TB, options json.RawMessage) *device {
	t.Helper()
	parsed, err := virtualwebauthn.ParseAttestationOptions(string(options))
	if err != nil {
		t.Fatal(err)
	}
	d := &device{t: t, rp: virtualwebauthn.RelyingParty{ID: host, Origin: address}, key: newKey()}
	d.auth = virtualwebauthn.NewAuthenticatorWithOptions(virtualwebauthn.AuthenticatorOptions{UserHandle: []byte(parsed.UserID)})
	return d
}

// newKey returns a new key. The library leaves out zeros at the beginning of a coordinate, which the standard does not allow
// (RFC 9053, section 7.1.1), so that one key in 128 would be rejected.
func newKey() virtualwebauthn.Credential {
	const length = 77 // of a key with two coordinates of 32 bytes
	for {
		if c := virtualwebauthn.NewCredential(virtualwebauthn.KeyTypeEC2); len(c.Key.AttestationData()) == length {
			return c
		}
	}
}

// create answers the options of an enrolment.
func (d *device) create(options json.RawMessage) json.RawMessage {
	d.t.Helper()
	parsed, err := virtualwebauthn.ParseAttestationOptions(string(options))
	if err != nil {
		d.t.Fatal(err)
	}
	return json.RawMessage(virtualwebauthn.CreateAttestationResponse(d.rp, d.auth, d.key, *parsed))
}

// assertion is an answer to the options of a sign-in, before it is signed.
type assertion struct {
	kind, challenge, origin string // client data
	more                    string // further members of the client data, with a leading comma
	rpID                    string
	flags                   byte
	counter                 uint32
	tail                    []byte // after the counter
	handle, credentialID    []byte
	outer                   map[string]any // replaces members of the answer
	response                map[string]any // replaces members of its response
}

// The flags of authenticator data (WebAuthn, section 6.1).
const (
	userPresent = 1 << iota
	_
	userVerified
	backupEligible
	backedUp
	_
	hasKey
	hasExtensions
)

// get answers the options of a sign-in, with what a test changes.
func (d *device) get(options json.RawMessage, change func(a *assertion)) json.RawMessage {
	d.t.Helper()
	var o struct{ Challenge string }
	if err := json.Unmarshal(options, &o); err != nil || o.Challenge == "" {
		d.t.Fatalf("%s: %v", options, err)
	}
	d.key.Counter++
	a := assertion{kind: "webauthn.get", challenge: o.Challenge, origin: d.rp.Origin, rpID: d.rp.ID, flags: userPresent | userVerified,
		counter: d.key.Counter, handle: d.auth.Options.UserHandle, credentialID: d.key.ID}
	if change != nil {
		change(&a)
	}
	return d.sign(a)
}

func (d *device) sign(a assertion) json.RawMessage {
	d.t.Helper()
	client := []byte(`{"type":"` + a.kind + `","challenge":"` + a.challenge + `","origin":"` + a.origin + `"` + a.more + `}`)
	rp, clientHash := sha256.Sum256([]byte(a.rpID)), sha256.Sum256(client)
	data := binary.BigEndian.AppendUint32(append(rp[:], a.flags), a.counter)
	data = append(data, a.tail...)
	digest := sha256.Sum256(append(append([]byte(nil), data...), clientHash[:]...))
	signature, err := d.key.Key.Sign(digest[:])
	if err != nil {
		d.t.Fatal(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	response := map[string]any{"authenticatorData": encode(data), "clientDataJSON": encode(client), "signature": encode(signature)}
	if a.handle != nil {
		response["userHandle"] = encode(a.handle)
	}
	for name, value := range a.response {
		response[name] = value
	}
	answer := map[string]any{"type": "public-key", "id": encode(a.credentialID), "rawId": encode(a.credentialID), "response": response}
	for name, value := range a.outer {
		answer[name] = value
	}
	text, err := json.Marshal(answer)
	if err != nil {
		d.t.Fatal(err)
	}
	return text
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	rand.Read(b) // does not fail: it would end the program
	return b
}
