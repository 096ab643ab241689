package oidc_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"kontor/modules/oidc/oidctest"
	"kontor/server/servertest"
	"kontor/server/settings"
)

const (
	failed      = "auth_m.oidc_failed"
	expired     = "auth_m.oidc_expired"
	unavailable = "auth_m.oidc_unavailable"
	cancelled   = "auth_m.oidc_cancelled"
	noAccount   = "auth_m.oidc_no_account"
)

// victim is a linked advisor, whom every hostile case tries to sign in as.
var victim = oidctest.Claims{"sub": "sub-victim", "email": "victim@bank.test", "groups": []string{"bank-advisors"}}

// hostile is a case that must not open a session.
type hostile struct {
	name   string
	want   string                           // the error with which the console is opened
	set    func(h *harness)                 // what is wrong at the provider
	walk   func(h *harness) (at url.Values) // what is wrong at the browser; nil: nothing
	unsent bool                             // the code must not reach a token endpoint
}

// claims returns a change of the provider: a claim of the ID token; nil removes it.
func claims(name string, value any) func(h *harness) {
	return func(h *harness) {
		h.provider.Claims = func(c oidctest.Claims) {
			if c[name] = value; value == nil {
				delete(c, name)
			}
		}
	}
}

// in returns the time that is a number of seconds away from now, as a claim of the ID token.
func in(name string, seconds int64) func(h *harness) {
	return func(h *harness) {
		h.provider.Claims = func(c oidctest.Claims) { c[name] = h.Clock.Now().Unix() + seconds }
	}
}

// signed replaces the signature.
func signed(sign func(h *harness, c oidctest.Claims) string) func(h *harness) {
	return func(h *harness) {
		h.provider.Sign = func(c oidctest.Claims) string { return sign(h, c) }
	}
}

// path replaces an endpoint of the provider.
func path(name string, handle func(h *harness) http.HandlerFunc) func(h *harness) {
	return func(h *harness) { h.provider.Paths = map[string]http.HandlerFunc{name: handle(h)} }
}

// rotated also replaces the key, so that the keys are requested.
func rotated(set func(h *harness)) func(h *harness) {
	return func(h *harness) {
		h.provider.RotateKey()
		set(h)
	}
}

// configured changes the configuration.
func configured(change func(h *harness, c oidctest.Claims)) func(h *harness) {
	return func(h *harness) { h.provider.Configuration = func(c oidctest.Claims) { change(h, c) } }
}

// returned changes the parameters with which the browser returns.
func returned(change func(q url.Values)) func(h *harness) {
	return func(h *harness) { h.provider.Answer = change }
}

func redirect(to string) func(h *harness) http.HandlerFunc {
	return func(h *harness) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, strings.ReplaceAll(to, "SELF", h.provider.URL), http.StatusFound)
		}
	}
}

func huge(start string) func(h *harness) http.HandlerFunc {
	return func(*harness) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(start))
			for range 64 {
				if _, err := w.Write([]byte(strings.Repeat(" ", 8<<10))); err != nil {
					return
				}
			}
			_, _ = w.Write([]byte("}"))
		}
	}
}

// blocked waits until the client gives up.
func blocked(*harness) http.HandlerFunc {
	return func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // before that the server does not see that the client is gone
		<-r.Context().Done()
	}
}

func text(status int, kind, body string) func(h *harness) http.HandlerFunc {
	return func(*harness) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	}
}

func foreignKey() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return key
}

// unsigned returns a token with the algorithm none.
func unsigned(_ *harness, c oidctest.Claims) string {
	key := foreignKey()
	parts := strings.Split(oidctest.Sign(jose.ES256, key, "", c), ".")
	return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","typ":"JWT"}`)) + "." + parts[1] + "."
}

// symmetric returns a token that is signed with the public key as a secret.
func symmetric(h *harness, c oidctest.Claims) string {
	public, err := x509.MarshalPKIXPublicKey(h.provider.Keys().Keys[0].Key)
	if err != nil {
		panic(err)
	}
	return oidctest.Sign(jose.HS256, public, h.provider.Keys().Keys[0].KeyID, c)
}

// twice returns a token with a repeated claim.
func twice(h *harness, c oidctest.Claims) string {
	key, id := h.provider.Key()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: id}}, nil)
	if err != nil {
		panic(err)
	}
	token := oidctest.Sign(jose.ES256, key, id, c)
	payload, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
	if err != nil {
		panic(err)
	}
	return oidctest.SignBytes(signer, []byte(strings.TrimSuffix(string(payload), "}")+`,"groups":["bank-admins"]}`))
}

var tokenCases = []hostile{
	{name: "token of another issuer", want: failed, set: claims("iss", "https://evil.test")},
	{name: "token for another client", want: failed, set: claims("aud", "other")},
	{name: "token without audience", want: failed, set: claims("aud", nil)},
	{name: "two audiences without azp", want: failed, set: claims("aud", []string{oidctest.ClientID, "other"})},
	{name: "azp of another client", want: failed, set: claims("azp", "other")},
	{name: "azp of a wrong type", want: failed, set: claims("azp", 7)},
	{name: "no signature", want: failed, set: signed(unsigned)},
	{name: "HS256 with the public key", want: failed, set: signed(symmetric)},
	{name: "HS256 with the client secret", want: failed, set: signed(func(_ *harness, c oidctest.Claims) string {
		return oidctest.Sign(jose.HS256, []byte(oidctest.ClientSecret+"-padded-to-be-long"), "", c)
	})},
	{name: "signed with another key", want: failed, set: signed(func(h *harness, c oidctest.Claims) string {
		_, id := h.provider.Key()
		return oidctest.Sign(jose.ES256, foreignKey(), id, c)
	})},
	{name: "signed with an unknown key", want: failed, set: signed(func(_ *harness, c oidctest.Claims) string {
		return oidctest.Sign(jose.ES256, foreignKey(), "unknown", c)
	})},
	{name: "no token", want: failed, set: signed(func(*harness, oidctest.Claims) string { return "" })},
	{name: "no JWT", want: failed, set: signed(func(*harness, oidctest.Claims) string { return "a.b.c" })},
	{name: "huge token", want: failed, set: claims("filler", strings.Repeat("x", 40<<10))},
	{name: "expired", want: failed, set: in("exp", -60)},
	{name: "without exp", want: failed, set: claims("exp", nil)},
	{name: "exp is a text", want: failed, set: claims("exp", "253402300799")},
	{name: "exp is huge", want: failed, set: claims("exp", 1e300)},
	{name: "issued in the future", want: failed, set: in("iat", 120)},
	{name: "issued long ago", want: failed, set: in("iat", -3600)},
	{name: "without iat", want: failed, set: claims("iat", nil)},
	{name: "not yet valid", want: failed, set: in("nbf", 120)},
	{name: "authenticated in the future", want: failed, set: in("auth_time", 120)},
	{name: "wrong nonce", want: failed, set: claims("nonce", "another")},
	{name: "missing nonce", want: failed, set: claims("nonce", nil)},
	{name: "empty subject", want: failed, set: claims("sub", "")},
	{name: "long subject", want: failed, set: claims("sub", strings.Repeat("x", 256))},
	{name: "subject with a line break", want: failed, set: claims("sub", "sub-victim\n")},
	{name: "another subject", want: noAccount, set: func(h *harness) {
		h.provider.Claims = func(c oidctest.Claims) {
			c["sub"] = "SUB-VICTIM"
			delete(c, "email")
		}
	}},
	{name: "wrong at_hash", want: failed, set: claims("at_hash", "AAAAAAAAAAAAAAAAAAAAAA")},
	{name: "repeated claim", want: failed, set: signed(twice)},
	{name: "amr of a wrong type", want: failed, set: claims("amr", map[string]any{"mfa": true})},
	{name: "address of a wrong type", want: failed, set: claims("email", []string{"victim@bank.test"})},
	{name: "no token response but HTML", want: failed, set: path("/token", text(200, "text/html", "<html>"))},
	{name: "huge token response", want: failed, set: path("/token", huge(`{"access_token":"x"`))},
	{name: "token endpoint with an error", want: unavailable, set: path("/token", text(500, "text/plain", "no"))},
	{name: "token endpoint that redirects", want: failed, set: path("/token", redirect("https://evil.test/token"))},
	{name: "token endpoint that is slow", want: unavailable, set: path("/token", blocked)},
	{name: "huge key set", want: failed, set: rotated(path("/jwks", huge(`{"keys":[]`)))},
	{name: "key set that redirects", want: failed, set: rotated(path("/jwks", redirect("SELF/jwks2")))},
	{name: "key set that is slow", want: unavailable, set: rotated(path("/jwks", blocked))},
}

var configurationCases = []hostile{
	{name: "configuration of another issuer", want: unavailable, set: configured(func(_ *harness, c oidctest.Claims) { c["issuer"] = "https://evil.test" })},
	{name: "configuration that redirects", want: unavailable, set: path("/.well-known/openid-configuration", redirect("https://evil.test/"))},
	{name: "configuration that redirects to itself", want: unavailable, set: path("/.well-known/openid-configuration", redirect("SELF/elsewhere"))},
	{name: "configuration that is slow", want: unavailable, set: path("/.well-known/openid-configuration", blocked)},
	{name: "huge configuration", want: unavailable, set: path("/.well-known/openid-configuration", huge(`{"issuer":"x"`))},
	{name: "token endpoint without TLS", want: unavailable, set: configured(func(_ *harness, c oidctest.Claims) { c["token_endpoint"] = "http://evil.test/token" })},
	{name: "authorization endpoint of another scheme", want: unavailable, set: configured(func(_ *harness, c oidctest.Claims) { c["authorization_endpoint"] = "javascript:alert(1)" })},
	{name: "keys in a file", want: unavailable, set: configured(func(_ *harness, c oidctest.Claims) { c["jwks_uri"] = "file:///etc/passwd" })},
	{name: "only symmetric algorithms", want: unavailable, set: configured(func(_ *harness, c oidctest.Claims) {
		c["id_token_signing_alg_values_supported"] = []string{"HS256", "none"}
	})},
	{name: "user info of another subject", want: failed, set: func(h *harness) {
		h.provider.Configuration = func(c oidctest.Claims) { c["userinfo_endpoint"] = h.provider.URL + "/userinfo" }
		h.provider.Claims = func(c oidctest.Claims) { delete(c, "groups") }
		h.provider.UserInfo = func(c oidctest.Claims) { c["sub"], c["groups"] = "another", "bank-admins" }
	}},
	{name: "downgrade of PKCE", want: unavailable, set: configured(func(_ *harness, c oidctest.Claims) { c["code_challenge_methods_supported"] = []string{"plain"} })},
}

var browserCases = []hostile{
	{name: "answer of another issuer (mix-up)", want: failed, set: returned(func(q url.Values) { q.Set("iss", "https://evil.test") }), unsent: true},
	{name: "answer without an issuer (mix-up)", want: failed, set: returned(func(q url.Values) { q.Del("iss") }), unsent: true},
	{name: "no code", want: failed, set: returned(func(q url.Values) { q.Del("code") })},
	{name: "a long code", want: failed, set: returned(func(q url.Values) { q.Set("code", strings.Repeat("x", 5000)) }), unsent: true},
	{name: "no state", want: expired, set: returned(func(q url.Values) { q.Del("state") }), unsent: true},
	{name: "wrong state", want: expired, set: returned(func(q url.Values) { q.Set("state", "x") }), unsent: true},
	{name: "cancelled, with HTML in the description", want: cancelled, set: returned(func(q url.Values) {
		q.Del("code")
		q.Set("error", "access_denied")
		q.Set("error_description", "<script>alert(1)</script> call +41 44 000 00 00")
	})},
	{name: "an error with HTML as its code", want: failed, set: returned(func(q url.Values) { q.Set("error", "<b>x</b>") }), unsent: true},
	{name: "an error of the provider", want: unavailable, set: returned(func(q url.Values) { q.Set("error", "server_error") })},
	{name: "without a cookie", want: expired, unsent: true, walk: func(h *harness) url.Values {
		return h.browser().back(h.provider.SignIn(h.browser().begin(""), victim))
	}},
	{name: "with two cookies", want: expired, walk: func(h *harness) url.Values {
		b := h.browser()
		answer := h.provider.SignIn(b.begin(""), victim)
		b.cookie = b.cookie + "; " + b.cookie
		return b.back(answer)
	}},
	{name: "with a forged cookie", want: expired, walk: func(h *harness) url.Values {
		b := h.browser()
		answer := h.provider.SignIn(b.begin(""), victim)
		b.cookie = b.cookie[:len(b.cookie)-2] + "AA"
		return b.back(answer)
	}},
	{name: "with the state of another browser", want: expired, walk: func(h *harness) url.Values {
		b := h.browser()
		b.begin("")
		return b.back(h.provider.SignIn(h.browser().begin(""), victim))
	}},
	{name: "a code of another browser with the own state (PKCE)", want: failed, walk: func(h *harness) url.Values {
		b := h.browser()
		own := h.provider.SignIn(b.begin(""), oidctest.Claims{"sub": "x"})
		own.Set("code", h.provider.SignIn(h.browser().begin(""), victim).Get("code"))
		return b.back(own)
	}},
	{name: "a code twice", want: failed, walk: func(h *harness) url.Values {
		b := h.browser()
		used := h.provider.SignIn(b.begin(""), victim)
		b.back(used)
		again := h.provider.SignIn(b.begin(""), victim)
		again.Set("code", used.Get("code"))
		return b.back(again)
	}},
	{name: "the same answer twice", want: expired, walk: func(h *harness) url.Values {
		b := h.browser()
		answer := h.provider.SignIn(b.begin(""), victim)
		cookie := b.cookie
		b.back(answer)
		b.cookie = cookie
		return b.back(answer)
	}},
	{name: "a token with the nonce of an earlier sign-in", want: failed, walk: func(h *harness) url.Values {
		var former string
		h.provider.Token = func(w http.ResponseWriter, c oidctest.Claims) {
			if former == "" {
				former = c["id_token"].(string)
			}
			c["id_token"] = former
			oidctest.WriteJSON(w, 200, c)
		}
		h.browser().signIn(victim)
		return h.browser().signIn(victim)
	}},
	{name: "after ten minutes", want: expired, unsent: true, walk: func(h *harness) url.Values {
		b := h.browser()
		answer := h.provider.SignIn(b.begin(""), victim)
		h.Clock.Advance(10 * time.Minute)
		return b.back(answer)
	}},
	{name: "a user who is disabled", want: noAccount, walk: func(h *harness) url.Values {
		h.SignIn(servertest.AdminEmail, servertest.AdminPassword).
			Do("PATCH", "/v1/users/"+h.userOf("sub-victim"), map[string]string{"status": "disabled"}).Expect(h.t, http.StatusOK)
		return h.browser().signIn(victim)
	}},
}

// userOf returns the user whom a subject is linked to.
func (h *harness) userOf(subject string) (id string) {
	h.t.Helper()
	if err := h.DB.QueryRow(h.t.Context(), `SELECT user_id FROM identities WHERE subject = $1`, subject).Scan(&id); err != nil {
		h.t.Fatal(err)
	}
	return id
}

func TestHostile_TokensAreRejected(t *testing.T)   { runHostile(t, hostileServer(t), tokenCases) }
func TestHostile_BrowsersAreRejected(t *testing.T) { runHostile(t, hostileServer(t), browserCases) }

// A configuration that was read once stays in memory, so each case has a server of its own.
func TestHostile_ConfigurationsAreRejected(t *testing.T) {
	for _, c := range configurationCases {
		runHostile(t, hostileServer(t), []hostile{c})
	}
}

// hostileServer returns a server with the most generous settings and the victim.
func hostileServer(t *testing.T) *harness {
	t.Helper()
	h := start(t, createsUsers, func(s *settings.Settings) { s.Server.RequestTime = time.Second })
	h.link(h.User("Advisor").UserID, "sub-victim")
	return h
}

func runHostile(t *testing.T, h *harness, cases []hostile) {
	t.Helper()
	user := h.userOf("sub-victim")
	sessions := h.count(`SELECT count(*) FROM sessions WHERE user_id = $1`, user)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h.t = t
			h.provider.Reset()
			h.Clock.Advance(15 * time.Second) // keys may be requested again
			if c.set != nil {
				c.set(h)
			}
			before := h.provider.Hits("/token")
			walk := (*harness).walk
			if c.walk != nil {
				walk = c.walk
			}
			fragment := walk(h)
			h.expectError(fragment, c.want)
			if len(fragment) != 1 {
				t.Errorf("the console was opened with more than a code: %v", fragment)
			}
			if n := h.provider.Hits("/token") - before; c.unsent && n != 0 {
				t.Errorf("the code was sent to the token endpoint %d times", n)
			}
			if n := h.count(`SELECT count(*) FROM identities`); n != 1 {
				t.Errorf("%d identities", n)
			}
			if n := h.count(`SELECT count(*) FROM held_roles WHERE user_id = $1`, user); n != 1 {
				t.Errorf("the victim has %d roles", n)
			}
			if n := h.count(`SELECT count(*) FROM sessions WHERE user_id = $1`, user); n != sessions {
				t.Errorf("%d sessions of the victim, want %d", n, sessions)
			}
		})
	}
}

// walk signs the victim in, unless the browser does not even reach the provider.
func (h *harness) walk() url.Values {
	h.t.Helper()
	b := h.browser()
	location := b.do("GET", "/authenticate/oidc", nil).Expect(h.t, http.StatusSeeOther).Header.Get("Location")
	if strings.HasPrefix(location, baseURL) {
		return b.fragment(location)
	}
	return b.back(h.provider.SignIn(location, victim))
}

func TestHostile_OneTimeCodes(t *testing.T) {
	const invalid = "auth_m.oidc_invalid_code"
	for name, c := range map[string]struct {
		use  func(h *harness, b *browser, body map[string]string)
		want string
	}{
		"twice": {func(h *harness, b *browser, body map[string]string) {
			cookie := b.cookie
			b.accept(b.do("POST", "/authenticate/oidc", body))
			b.cookie = cookie
		}, invalid},
		"in another browser, which makes it void": {func(h *harness, _ *browser, body map[string]string) {
			other := h.browser()
			other.signIn(victim) // with a cookie of its own
			other.do("POST", "/authenticate/oidc", body).ExpectError(h.t, http.StatusUnauthorized, invalid)
		}, invalid},
		"without a cookie": {func(_ *harness, b *browser, _ map[string]string) { b.cookie = "" }, invalid},
		"after a minute":   {func(h *harness, _ *browser, _ map[string]string) { h.Clock.Advance(time.Minute) }, invalid},
		"when the clock was set back": {func(h *harness, _ *browser, _ map[string]string) {
			h.Clock.Advance(-time.Hour)
		}, invalid},
		"malformed": {func(_ *harness, _ *browser, body map[string]string) { body["code"] += "=" }, invalid},
		"unknown":   {func(_ *harness, _ *browser, body map[string]string) { body["code"] = strings.Repeat("A", 43) }, invalid},
		"by a user who was disabled": {func(h *harness, _ *browser, _ map[string]string) {
			h.setStatus(h.userOf("sub-victim"), "disabled")
		}, noAccount},
		"by a user who is no longer staff": {func(h *harness, _ *browser, _ map[string]string) {
			h.Admin().Do("PUT", "/v1/users/"+h.userOf("sub-victim")+"/roles", map[string]any{"roles": []string{"Customer"}}).Expect(h.t, http.StatusOK)
		}, noAccount},
	} {
		t.Run(name, func(t *testing.T) {
			h := start(t)
			h.link(h.User("Advisor").UserID, "sub-victim")
			b := h.browser()
			body := map[string]string{"code": b.signIn(victim).Get("oidc_code")}
			c.use(h, b, body)
			answer := b.do("POST", "/authenticate/oidc", body)
			if answer.Status < 400 || answer.JSON(t)["code"] != c.want {
				t.Errorf("got %d %s, want %s", answer.Status, answer.Body, c.want)
			}
			b.do("POST", "/authenticate/oidc", body).ExpectError(t, http.StatusUnauthorized, invalid)
		})
	}
}

func TestHostile_ReturnTo(t *testing.T) {
	h := start(t)
	for _, address := range []string{
		"https://evil.test", "//evil.test", "/\\evil.test", "\\\\evil.test", "/%5Cevil.test", "/%2F/evil.test", "javascript:alert(1)", "customers",
		"/\tevil", "/a\r\nSet-Cookie: x=1", "/..//evil.test", "/%2e%2e/evil", "/v1/logout", "/authenticate/oidc", "/<script>", "/a#b", "/" + strings.Repeat("a", 512), "/ä", "/%zz",
	} {
		h.Anonymous().Do("GET", "/authenticate/oidc?return_to="+url.QueryEscape(address), nil).ExpectError(t, http.StatusBadRequest, "common.invalid_input")
	}
	for _, address := range []string{"/", "/customers", "/customers/0193a000-0000-7000-8000-000000000001/kyc?x=1&y=%20"} {
		h.browser().begin(address)
	}
}
