package oidc_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"kontor/modules/identity/oidc/oidctest"
)

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
	{name: "huge key set", want: failed, set: rotated(path("/jwks", huge(`{"keys":[]`)))},
	{name: "key set that redirects", want: failed, set: rotated(path("/jwks", redirect("SELF/jwks2")))},
}

func TestHostile_TokensAreRejected(t *testing.T) { runHostile(t, hostileServer(t), tokenCases) }
