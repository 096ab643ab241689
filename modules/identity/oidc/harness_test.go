package oidc_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"kontor/modules/identity/oidc/oidctest"
	"kontor/server/servertest"
	"kontor/server/settings"
)

const userPassword = servertest.Password

const baseURL = "http://bank.test"

// harness is a Kontor with a provider.
type harness struct {
	*servertest.Server
	t        *testing.T
	provider *oidctest.Provider
}

// start runs both. The provider has the clock of the server.
func start(t *testing.T, change ...servertest.Option) *harness {
	t.Helper()
	h := &harness{t: t}
	h.provider = oidctest.New(t, func() time.Time { return h.Clock.Now() })
	options := append([]servertest.Option{func(s *settings.Settings) {
		s.Server.BaseURL = baseURL
		s.Auth.OIDC = settings.OIDC{
			Issuer: h.provider.URL, ClientID: oidctest.ClientID, ClientSecret: oidctest.ClientSecret, Scopes: []string{"openid", "email"},
			RolesClaim: "groups", RoleMap: []settings.MappedRole{{Claim: "bank-admins", Role: "Administrator"}, {Claim: "bank-advisors", Role: "Advisor"}},
		}
	}}, change...)
	h.Server = servertest.Start(t, options...)
	return h
}

// createsUsers switches on the creation of users.
func createsUsers(s *settings.Settings) { s.Auth.OIDC.CreateUsers = true }

// browser is a browser with its cookie of the sign-in.
type browser struct {
	h      *harness
	cookie string // name=value
	set    string // the latest Set-Cookie
	client *servertest.Client
}

func (h *harness) browser() *browser { return &browser{h: h, client: h.Anonymous()} }

// do sends a request with the cookie and keeps what the answer sets.
func (b *browser) do(method, path string, body any) servertest.Response {
	b.h.t.Helper()
	client := b.client
	if b.cookie != "" {
		client = client.With("Cookie", b.cookie)
	}
	answer := client.Do(method, path, body)
	if b.set = answer.Header.Get("Set-Cookie"); b.set != "" {
		b.cookie, _, _ = strings.Cut(b.set, ";")
		if strings.HasSuffix(b.cookie, "=") {
			b.cookie = ""
		}
	}
	return answer
}

// begin starts a sign-in and returns the address at the provider.
func (b *browser) begin(returnTo string) string {
	b.h.t.Helper()
	path := "/authenticate/oidc"
	if returnTo != "" {
		path += "?return_to=" + url.QueryEscape(returnTo)
	}
	location := b.do("GET", path, nil).Expect(b.h.t, http.StatusSeeOther).Header.Get("Location")
	if !strings.HasPrefix(location, b.h.provider.URL+"/auth?") {
		b.h.t.Fatalf("the browser was sent to %s", location)
	}
	return location
}

// back returns from the provider and reads the fragment with which the console is opened.
func (b *browser) back(answer url.Values) url.Values {
	b.h.t.Helper()
	location := b.do("GET", "/authenticate/oidc/callback?"+answer.Encode(), nil).Expect(b.h.t, http.StatusSeeOther).Header.Get("Location")
	return b.fragment(location)
}

func (b *browser) fragment(location string) url.Values {
	b.h.t.Helper()
	fragment, ok := strings.CutPrefix(location, baseURL+"/signin#")
	members, err := url.ParseQuery(fragment)
	if !ok || err != nil {
		b.h.t.Fatalf("the browser was sent to %s", location)
	}
	return members
}

// signIn takes the whole way to the console.
func (b *browser) signIn(person oidctest.Claims) url.Values {
	b.h.t.Helper()
	return b.back(b.h.provider.SignIn(b.begin(""), person))
}

// tokens exchanges the one-time code of a fragment and returns a client with the session.
func (b *browser) tokens(fragment url.Values) *servertest.Client {
	b.h.t.Helper()
	code := fragment.Get("oidc_code")
	if code == "" {
		b.h.t.Fatalf("no code but %v", fragment)
	}
	return b.accept(b.do("POST", "/authenticate/oidc", map[string]string{"code": code}))
}

func (b *browser) accept(answer servertest.Response) *servertest.Client {
	b.h.t.Helper()
	var tokens struct {
		AccessToken string `json:"access_token"`
		UserID      string `json:"user_id"`
	}
	answer.Expect(b.h.t, http.StatusOK).Into(b.h.t, &tokens)
	c := b.h.Anonymous()
	c.Token, c.UserID = tokens.AccessToken, tokens.UserID
	return c
}

// expectError fails the test unless the console was opened with an error code.
func (h *harness) expectError(fragment url.Values, code string) {
	h.t.Helper()
	if fragment.Get("oidc_error") != code || fragment.Get("oidc_code") != "" || fragment.Get("oidc_link") != "" {
		h.t.Errorf("the console was opened with %v, want %s", fragment, code)
	}
}

// link links a subject to a user as an administrator.
func (h *harness) link(userID, subject string) string {
	h.t.Helper()
	return h.Admin().Create("/v1/users/"+userID+"/identities", map[string]string{"subject": subject, "password": servertest.AdminPassword})
}

// count counts rows.
func (h *harness) count(statement string, args ...any) (n int) {
	h.t.Helper()
	if err := h.DB.QueryRow(h.t.Context(), statement, args...).Scan(&n); err != nil {
		h.t.Fatal(err)
	}
	return n
}

// roles returns the roles of a user, joined by commas.
func (h *harness) roles(userID string) string {
	h.t.Helper()
	var u struct{ Roles []string }
	h.Admin().Do("GET", "/v1/users/"+userID, nil).Expect(h.t, http.StatusOK).Into(h.t, &u)
	return strings.Join(u.Roles, ",")
}

// email returns the validated e-mail address of a user.
func (h *harness) email(userID string) (value string) {
	h.t.Helper()
	err := h.DB.QueryRow(h.t.Context(), `SELECT value FROM user_credentials WHERE user_id = $1 AND type = 'email'`, userID).Scan(&value)
	if err != nil {
		h.t.Fatal(err)
	}
	return value
}

// setStatus changes the status of a user as an administrator does.
func (h *harness) setStatus(userID, status string) {
	h.t.Helper()
	h.Admin().Do("PATCH", "/v1/users/"+userID, map[string]string{"status": status}).Expect(h.t, http.StatusOK)
}

// userOf returns the user whom a subject is linked to.
func (h *harness) userOf(subject string) (id string) {
	h.t.Helper()
	if err := h.DB.QueryRow(h.t.Context(), `SELECT user_id FROM identities WHERE subject = $1`, subject).Scan(&id); err != nil {
		h.t.Fatal(err)
	}
	return id
}
