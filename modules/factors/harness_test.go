package factors_test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/descope/virtualwebauthn"
	"github.com/pquerna/otp/totp"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/server/settings"
)

const (
	host     = "bank.example"
	address  = "https://" + host
	password = "a long enough password 42" // of every user of servertest
)

// bank is a server whose address lets browsers use passkeys.
type bank struct {
	*servertest.Server
	t    testing.TB
	last step // of proceed
	own  int  // sessions that fresh opened
}

func startBank(t testing.TB, options ...servertest.Option) *bank {
	t.Helper()
	options = append([]servertest.Option{func(s *settings.Settings) { s.Server.BaseURL = address }}, options...)
	return &bank{Server: servertest.Start(t, options...), t: t}
}

// person is a user with a session and their authenticators.
type person struct {
	*servertest.Client
	bank     *bank
	secret   string
	totpID   string
	codes    []string // recovery codes
	device   *device
	deviceID string // id of the factor
}

func (b *bank) person(roles ...string) *person {
	b.t.Helper()
	if roles == nil {
		roles = []string{access.Customer}
	}
	return &person{Client: b.User(roles...), bank: b}
}

func (p *person) path(rest string) string { return "/v1/users/" + p.UserID + "/factors" + rest }

// enrolled is the answer to a new factor.
type enrolled struct {
	ID, Name, Status string
	TOTP             struct {
		Secret, URI string
		QRSVG       string `json:"qr_svg"`
	}
	Passkey struct {
		Options json.RawMessage
		Token   string
	}
	Codes     []string `json:"recovery_codes"`
	Remaining *int
}

func (p *person) begin(kind string) (e enrolled) {
	p.bank.t.Helper()
	p.Do("POST", p.path(""), servertest.Body{"type": kind}).Expect(p.bank.t, 201).Into(p.bank.t, &e)
	return e
}

// enrolTOTP enrols an authenticator app. Its code counts as used, so the clock moves to the next one.
func (p *person) enrolTOTP() *person {
	p.bank.t.Helper()
	e := p.begin("totp")
	p.secret, p.totpID = e.TOTP.Secret, e.ID
	p.confirmed(e.ID, servertest.Body{"code": p.code(0)})
	p.bank.Clock.Advance(30 * time.Second)
	return p
}

// enrolPasskey enrols a new authenticator.
func (p *person) enrolPasskey() *person {
	p.bank.t.Helper()
	e := p.begin("passkey")
	p.deviceID, p.device = e.ID, newDevice(p.bank.t, e.Passkey.Options)
	p.confirmed(e.ID, servertest.Body{"token": e.Passkey.Token, "passkey": p.device.create(e.Passkey.Options)})
	return p
}

func (p *person) confirmed(id string, body servertest.Body) {
	p.bank.t.Helper()
	var done enrolled
	p.Do("POST", p.path("/"+id+"/confirm"), body).Expect(p.bank.t, 200).Into(p.bank.t, &done)
	if done.Codes != nil {
		p.codes = done.Codes
	}
}

// code returns the code of the person's app, some steps from now.
func (p *person) code(steps int) string {
	p.bank.t.Helper()
	return codeOf(p.bank.t, p.secret, p.bank.Clock.Now().Add(time.Duration(steps)*30*time.Second))
}

func codeOf(t testing.TB, secret string, at time.Time) string {
	t.Helper()
	code, err := totp.GenerateCode(secret, at)
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// step is an open sign-in.
type step struct {
	Token   string
	Methods []string
	Passkey struct{ Options json.RawMessage }
	Options json.RawMessage // of a sign-in without a password
}

// first sends the password of the person.
func (p *person) first() (s step) {
	p.bank.t.Helper()
	p.bank.Anonymous().Do("POST", "/authenticate", servertest.Body{"user_id": p.UserID, "password": password}).Expect(p.bank.t, 202).Into(p.bank.t, &s)
	return s
}

// withoutPassword begins a sign-in with a passkey.
func (b *bank) withoutPassword() (s step) {
	b.t.Helper()
	b.Anonymous().Do("POST", "/authenticate/passkey", servertest.Body{}).Expect(b.t, 200).Into(b.t, &s)
	return s
}

func (b *bank) second(token string, answer servertest.Body) servertest.Response {
	b.t.Helper()
	return b.Anonymous().Do("POST", "/authenticate/factor", answer.With("token", token))
}

// signedIn replaces the session of the person.
func (p *person) signedIn(r servertest.Response) *person {
	p.bank.t.Helper()
	var tokens struct {
		AccessToken string `json:"access_token"`
		UserID      string `json:"user_id"`
	}
	r.Expect(p.bank.t, 200).Into(p.bank.t, &tokens)
	next := *p
	next.Client = p.bank.Anonymous()
	next.Token, next.UserID = tokens.AccessToken, tokens.UserID
	return &next
}

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

// state returns everything about factors and sessions that an attack must not change.
func (b *bank) state() string {
	b.t.Helper()
	var text strings.Builder
	for _, statement := range []string{
		`SELECT id || type || name || status || COALESCE(credential_id, '') || sign_count || ' ' || last_step || ' ' || version FROM factors WHERE status = 'active' ORDER BY id`,
		`SELECT factor_id || code_hash || COALESCE(used_at, 0) FROM recovery_codes ORDER BY factor_id, code_hash`,
		`SELECT id || user_id || COALESCE(ended_at, 0) || amr || COALESCE(factor_at, 0) FROM sessions ORDER BY id`,
	} {
		rows, err := b.DB.Query(context.Background(), statement)
		if err != nil {
			b.t.Fatal(err)
		}
		for rows.Next() {
			var line string
			if err := rows.Scan(&line); err != nil {
				b.t.Fatal(err)
			}
			text.WriteString(line + "\n")
		}
		if err := rows.Close(); err != nil {
			b.t.Fatal(err)
		}
	}
	return text.String()
}
