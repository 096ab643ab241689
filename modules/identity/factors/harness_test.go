package factors_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/server/settings"
)

const (
	host     = "bank.example"
	address  = "https://" + host
	password = servertest.Password
)

// proof is what users send with a change of their own factors.
var proof = servertest.Body{"password": password}

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
	p.Do("POST", p.path(""), servertest.Body{"type": kind, "password": password}).Expect(p.bank.t, 201).Into(p.bank.t, &e)
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

// session is a session as the API shows it.
type session struct {
	ID  string
	ACR string
	AMR []string
}

func (p *person) sessions() []session {
	p.bank.t.Helper()
	var page struct{ Data []session }
	p.Do("GET", "/v1/users/"+p.UserID+"/sessions", nil).Expect(p.bank.t, 200).Into(p.bank.t, &page)
	return page.Data
}

func (p *person) count(search string) int {
	p.bank.t.Helper()
	var page struct{ Total int }
	p.Do("GET", p.path(search), nil).Expect(p.bank.t, 200).Into(p.bank.t, &page)
	return page.Total
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

// fresh returns the person with a new session that has just verified a factor.
func (p *person) fresh() *person {
	p.bank.t.Helper()
	first := p.first()
	p.bank.own++
	return p.signedIn(p.bank.second(first.Token, servertest.Body{"passkey": p.device.get(first.Passkey.Options, nil)}))
}

// opened returns how many sessions of users with a factor were opened, except those that the tests open themselves.
func (b *bank) opened() (n int) {
	b.t.Helper()
	if err := b.DB.QueryRow(b.t.Context(), `SELECT count(*) FROM sessions`).Scan(&n); err != nil {
		b.t.Fatal(err)
	}
	return n - b.own
}

// proceed sends the password of the person and keeps the answer in last.
func (b *bank) proceed(p *person) (token string) {
	b.t.Helper()
	b.last = p.first()
	return b.last.Token
}
