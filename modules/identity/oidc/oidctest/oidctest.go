// Package oidctest is an OpenID Connect provider for tests. It answers as a correct provider does, until a test changes one
// of its hooks.
package oidctest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Credentials of the client at every provider of this package.
const (
	ClientID     = "kontor"
	ClientSecret = "a-secret-of-the-client"
)

// Claims are claims by name.
type Claims map[string]any

// Hooks change answers of the provider. A nil hook changes nothing.
type Hooks struct {
	Configuration func(c Claims)                        // of the configuration
	Claims        func(c Claims)                        // of the ID token
	Sign          func(c Claims) string                 // returns the ID token
	UserInfo      func(c Claims)                        // of the user info
	Answer        func(query url.Values)                // the parameters with which the browser returns
	Paths         map[string]http.HandlerFunc           // replace the handler of a path
	Token         func(w http.ResponseWriter, c Claims) // writes the token response
}

// Provider is a running provider.
type Provider struct {
	*httptest.Server
	Hooks

	now   func() time.Time
	mu    sync.Mutex
	key   *ecdsa.PrivateKey
	keyID string
	codes map[string]grant
	hits  map[string]int
}

// grant is what a code stands for.
type grant struct {
	claims                 Claims
	challenge, redirectURI string
}

// New starts a provider with the clock of a test.
func New(t testing.TB, now func() time.Time) *Provider {
	t.Helper()
	p := &Provider{now: now, codes: map[string]grant{}, hits: map[string]int{}}
	p.RotateKey()
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

// RotateKey replaces the signing key.
func (p *Provider) RotateKey() {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.key, p.keyID = key, rand.Text()
}

// Reset removes all hooks. Handlers of requests that the server gave up may still be running.
func (p *Provider) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Hooks = Hooks{}
}

// Hits returns how often a path was requested.
func (p *Provider) Hits(path string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hits[path]
}

// ServeHTTP answers the requests of the server.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.hits[r.URL.Path]++
	replaced := p.Paths[r.URL.Path]
	p.mu.Unlock()
	if replaced != nil {
		replaced(w, r)
		return
	}
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		p.configuration(w)
	case "/jwks":
		WriteJSON(w, http.StatusOK, p.Keys())
	case "/token":
		p.token(w, r)
	case "/userinfo":
		claims := Claims{"sub": strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer access-of-")}
		if p.UserInfo != nil {
			p.UserInfo(claims)
		}
		WriteJSON(w, http.StatusOK, claims)
	default:
		http.NotFound(w, r)
	}
}

func (p *Provider) configuration(w http.ResponseWriter) {
	c := Claims{
		"issuer": p.URL, "authorization_endpoint": p.URL + "/auth", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/jwks",
		"id_token_signing_alg_values_supported": []string{"ES256"}, "response_types_supported": []string{"code"},
		"subject_types_supported": []string{"public"}, "code_challenge_methods_supported": []string{"S256"},
		"authorization_response_iss_parameter_supported": true,
	}
	if p.Configuration != nil {
		p.Configuration(c)
	}
	WriteJSON(w, http.StatusOK, c)
}

// Keys returns the public key set.
func (p *Provider) Keys() jose.JSONWebKeySet {
	p.mu.Lock()
	defer p.mu.Unlock()
	return jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: p.key.Public(), KeyID: p.keyID, Algorithm: "ES256", Use: "sig"}}}
}

// Key returns the private key, for tokens that a test signs itself.
func (p *Provider) Key() (crypto.Signer, string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.key, p.keyID
}

// SignIn signs a person in at the authorization endpoint and returns the parameters with which their browser returns to the
// client. The claims describe the person; sub is required.
func (p *Provider) SignIn(authorization string, person Claims) url.Values {
	u, err := url.Parse(authorization)
	if err != nil {
		panic(err)
	}
	q := u.Query()
	now := p.now().Unix()
	claims := Claims{
		"iss": p.URL, "aud": q.Get("client_id"), "iat": now, "exp": now + 300, "auth_time": now, "amr": []string{"pwd"}, "acr": "1",
		"nonce": q.Get("nonce"), "email_verified": true,
	}
	maps.Copy(claims, person)
	code := rand.Text()
	p.mu.Lock()
	p.codes[code] = grant{claims: claims, challenge: q.Get("code_challenge"), redirectURI: q.Get("redirect_uri")}
	p.mu.Unlock()
	answer := url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {p.URL}}
	if p.Answer != nil {
		p.Answer(answer)
	}
	return answer
}

// token redeems a code once, for the client that began with its challenge (RFC 7636).
func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	id, secret, _ := r.BasicAuth()
	p.mu.Lock()
	g, known := p.codes[r.FormValue("code")]
	delete(p.codes, r.FormValue("code"))
	p.mu.Unlock()
	digest := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	switch {
	case id != ClientID || secret != ClientSecret:
		WriteJSON(w, http.StatusUnauthorized, Claims{"error": "invalid_client"})
		return
	case !known, r.FormValue("redirect_uri") != g.redirectURI, base64.RawURLEncoding.EncodeToString(digest[:]) != g.challenge:
		WriteJSON(w, http.StatusBadRequest, Claims{"error": "invalid_grant"})
		return
	}
	if p.Claims != nil {
		p.Claims(g.claims)
	}
	sign := p.Sign
	if sign == nil {
		key, keyID := p.Key()
		sign = func(c Claims) string { return Sign(jose.ES256, key, keyID, c) }
	}
	answer := Claims{"access_token": fmt.Sprintf("access-of-%v", g.claims["sub"]), "token_type": "Bearer", "expires_in": 300, "id_token": sign(g.claims)}
	if p.Token != nil {
		p.Token(w, answer)
		return
	}
	WriteJSON(w, http.StatusOK, answer)
}

// Sign returns a signed token.
func Sign(algorithm jose.SignatureAlgorithm, key any, keyID string, claims Claims) string {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: jose.JSONWebKey{Key: key, KeyID: keyID}}, nil)
	if err != nil {
		panic(err)
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		panic(err)
	}
	return SignBytes(signer, payload)
}

// SignBytes signs a payload that may be malformed.
func SignBytes(signer jose.Signer, payload []byte) string {
	signed, err := signer.Sign(payload)
	if err != nil {
		panic(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		panic(err)
	}
	return token
}

// WriteJSON writes an answer.
func WriteJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // a client that has gone away is no failure
}
