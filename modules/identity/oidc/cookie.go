package oidc

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"kontor/server/endpoint"
	"kontor/store"
)

const (
	cookieName = "kontor-oidc"
	// beginLife is the time for a sign-in at the provider.
	beginLife = 10 * time.Minute
	// secretBytes is the length of states, nonces, codes and the secrets of browsers.
	secretBytes = 32
)

// begun is what the cookie holds while the browser is at the provider.
type begun struct {
	State    string     `json:"s"`
	Nonce    string     `json:"n"`
	Verifier string     `json:"v"` // of PKCE
	ReturnTo string     `json:"r"`
	At       store.Time `json:"a"`
	Again    bool       `json:"p,omitempty"` // for a proof, not for a sign-in
}

var errCookie = errors.New("the browser has no cookie of a sign-in, or more than one")

// newSecret returns a random text.
func newSecret() string {
	b := make([]byte, secretBytes)
	rand.Read(b) // does not fail: it would end the program
	return encode(b)
}

// equal compares secrets in constant time.
func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// secure reports whether browsers reach this installation by TLS.
func (s *Service) secure() bool { return strings.HasPrefix(s.options.BaseURL, "https://") }

// cookieName returns the name of the cookie. With the prefix, browsers reject a cookie that a sibling domain or plain HTTP has set.
func (s *Service) cookieName() string {
	if s.secure() {
		return "__Host-" + cookieName
	}
	return cookieName
}

// setCookie returns the header that stores a value in the browser for a time. An empty value deletes the cookie.
func (s *Service) setCookie(value string, life time.Duration) string {
	c := http.Cookie{ //nolint:gosec // over plain HTTP, browsers would not keep a Secure cookie
		Name: s.cookieName(), Value: value, Path: "/", HttpOnly: true, Secure: s.secure(), SameSite: http.SameSiteLaxMode,
		MaxAge: int(life / time.Second),
	}
	if value == "" {
		c.MaxAge = -1
	}
	return c.String()
}

// cookie returns the value of the cookie of a request.
func (s *Service) cookie(ctx context.Context) (string, error) {
	all, err := http.ParseCookie(endpoint.Of(ctx).Cookie)
	if err != nil {
		return "", errCookie
	}
	value, name := "", s.cookieName()
	for _, c := range all {
		if c.Name != name {
			continue
		}
		if value != "" {
			return "", errCookie // a sibling domain may have set the other
		}
		value = c.Value
	}
	if value == "" {
		return "", errCookie
	}
	return value, nil
}

// sealer returns the cipher of the cookie. Its key depends on the master key: a rotation ends the sign-ins that have begun.
func (s *Service) sealer() (cipher.AEAD, error) {
	block, err := aes.NewCipher(s.db.Keyed("oidc cookie", []byte("key")))
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// sealBegun encrypts what the browser keeps.
func (s *Service) sealBegun(b begun) (string, error) {
	plain, err := json.Marshal(b)
	if err != nil {
		return "", err
	}
	aead, err := s.sealer()
	if err != nil {
		return "", err
	}
	return encode(aead.Seal(nil, nil, plain, []byte(cookieName))), nil //nolint:gosec // the cipher makes a random nonce
}

// readBegun returns what the browser has kept, of a sign-in that was begun by this installation.
func (s *Service) readBegun(ctx context.Context) (b begun, err error) {
	value, err := s.cookie(ctx)
	if err != nil {
		return begun{}, err
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(value)
	if err != nil {
		return begun{}, err
	}
	aead, err := s.sealer()
	if err != nil {
		return begun{}, err
	}
	plain, err := aead.Open(nil, nil, sealed, []byte(cookieName))
	if err != nil {
		return begun{}, err
	}
	return b, json.Unmarshal(plain, &b)
}
