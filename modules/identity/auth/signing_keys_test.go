package auth_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"maps"
	"testing"
	"time"

	"kontor/modules/identity/auth"
	"kontor/server/apierr"
	"kontor/store"
	"kontor/store/storetest"
)

// jwks reads the public keys.
func (h *harness) jwks() map[string]ed25519.PublicKey {
	h.Helper()
	a := h.call("GET", "/.well-known/jwks.json", nil)
	h.expect("the public keys", a, 200, "")
	if got := a.header.Get("Cache-Control"); got != "public, max-age=300" {
		h.Errorf("Cache-Control %q", got)
	}
	keys := map[string]ed25519.PublicKey{}
	for _, k := range a.json["keys"].([]any) {
		k := k.(map[string]any)
		x, err := base64.RawURLEncoding.DecodeString(k["x"].(string))
		if err != nil || len(k) != 6 || k["kty"] != "OKP" || k["crv"] != "Ed25519" || k["alg"] != "EdDSA" || k["use"] != "sig" {
			h.Errorf("key %v, %v", k, err)
		}
		keys[k["kid"].(string)] = x
	}
	return keys
}

// The thumbprint of the example key (RFC 8037, appendix A.3).
func TestThumbprint(t *testing.T) {
	x, err := base64.RawURLEncoding.DecodeString("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo")
	if got := auth.Thumbprint(x); err != nil || got != "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k" {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestSigningKeys_Overlap(t *testing.T) {
	h := newHarness(t)
	anna := h.user("anna@example.ch")
	before := h.mustSignIn("anna@example.ch").text("access_token")
	firstKID, first := h.auth.SigningKey()
	if err := h.auth.RotateSigningKey(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	after := h.mustSignIn("anna@example.ch").text("access_token")
	h.expect("a token of the former key", h.getSessions(anna, before), 200, "")
	h.expect("a token of the new key", h.getSessions(anna, after), 200, "")
	header, claims := parts(t, after)
	if kid, _ := h.auth.SigningKey(); kid == firstKID || header["kid"] != kid {
		t.Errorf("the new token has the header %v", header)
	}
	public := h.jwks()
	if len(public) != 2 || !public[firstKID].Equal(first.Public()) {
		t.Errorf("public keys %v", public)
	}
	// A former key is not used for new tokens: one that says so was forged with it.
	h.clock.Advance(time.Minute)
	forged := maps.Clone(claims)
	forged["iat"], forged["nbf"], forged["exp"] = h.clock.Now().Unix(), h.clock.Now().Unix(), h.clock.Now().Unix()+3600
	h.expect("a later token of the former key", h.getSessions(anna, signed(t, first, map[string]any{"alg": "EdDSA", "typ": "at+jwt", "kid": firstKID}, forged)), 401, "common.unauthorized")
	h.expect("with the kid of the new one", h.getSessions(anna, signed(t, first, header, claims)), 401, "common.unauthorized")

	h.restart()
	h.expect("after a restart", h.getSessions(anna, before), 200, "")
	if len(h.jwks()) != 2 {
		t.Error("a restart has lost a key")
	}
	h.clock.Advance(24*time.Hour + time.Minute)
	if err := h.auth.MaintainSigningKeys(t.Context()); err != nil {
		t.Fatal(err)
	}
	if public := h.jwks(); len(public) != 1 || public[firstKID] != nil {
		t.Errorf("after a day: %v", public)
	}
}

func TestSigningKeys_ReplacedByAge(t *testing.T) {
	h := newHarness(t, func(o *auth.Options) { o.SigningKeyAge = 90 * 24 * time.Hour })
	first, _ := h.auth.SigningKey()
	for _, step := range []struct {
		wait     time.Duration
		replaced bool
		keys     int
	}{{0, false, 1}, {90*24*time.Hour - time.Second, false, 1}, {time.Second, true, 2}, {25 * time.Hour, false, 1}} {
		h.clock.Advance(step.wait)
		before, _ := h.auth.SigningKey()
		if err := h.auth.MaintainSigningKeys(t.Context()); err != nil {
			t.Fatal(err)
		}
		after, _ := h.auth.SigningKey()
		if (before != after) != step.replaced || len(h.jwks()) != step.keys {
			t.Errorf("after %v: replaced %v, %d keys", step.wait, before != after, len(h.jwks()))
		}
	}
	if last, _ := h.auth.SigningKey(); last == first {
		t.Error("the first key still signs")
	}
}

// Tokens of versions before the table of keys have no kid. They stay valid for a day after the upgrade, if they are older.
func TestSigningKeys_TokensFromBefore(t *testing.T) {
	h := newHarness(t)
	anna := h.user("anna@example.ch")
	_, claims := parts(t, h.mustSignIn("anna@example.ch").text("access_token"))
	seed, ok := h.db.FirstKey("access tokens", ed25519.SeedSize)
	if !ok {
		t.Fatal("no key of the first master key")
	}
	key := ed25519.NewKeyFromSeed(seed)
	header := map[string]any{"alg": "EdDSA", "typ": "at+jwt"}
	h.expect("from before", h.getSessions(anna, signed(t, key, header, claims)), 200, "")
	for name, header := range map[string]map[string]any{
		"with an empty kid": {"alg": "EdDSA", "typ": "at+jwt", "kid": ""},
		"with a null kid":   {"alg": "EdDSA", "typ": "at+jwt", "kid": nil},
		"with a jku":        {"alg": "EdDSA", "typ": "at+jwt", "jku": "x"},
		"without a typ":     {"alg": "EdDSA"},
	} {
		h.expect(name, h.getSessions(anna, signed(t, key, header, claims)), 401, "common.unauthorized")
	}
	h.clock.Advance(time.Minute)
	later := maps.Clone(claims)
	later["iat"], later["nbf"] = h.clock.Now().Unix(), h.clock.Now().Unix()
	h.expect("from after the upgrade", h.getSessions(anna, signed(t, key, header, later)), 401, "common.unauthorized")
	if err := h.auth.RotateSigningKey(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	h.expect("after a rotation of the signing key", h.getSessions(anna, signed(t, key, header, claims)), 200, "")
	if _, err := h.db.RotateMasterKey(t.Context(), storetest.Rotation(t, h.db)); err != nil {
		t.Fatal(err)
	}
	other := maps.Clone(claims)
	other["jti"] = store.NewID() // not in the cache
	h.expect("after a rotation of the master key", h.getSessions(anna, signed(t, key, header, other)), 401, "common.unauthorized")
	h.expect("from the cache", h.getSessions(anna, signed(t, key, header, claims)), 401, "common.unauthorized")
}

// An unknown kid costs no statement, so that a flood of them does not load the database.
func TestSigningKeys_UnknownKIDReadsNothing(t *testing.T) {
	if storetest.SQLiteOnly(t, "a node of a shared database looks an unknown kid up") {
		return
	}
	h := newHarness(t)
	h.user("anna@example.ch")
	header, claims := parts(t, h.mustSignIn("anna@example.ch").text("access_token"))
	known := h.signToken(header, claims)
	header["kid"] = "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"
	unknown := h.signToken(header, claims)
	if err := h.db.Close(); err != nil { // from now on every statement fails
		t.Fatal(err)
	}
	h.auth.ForgetSessions()
	if _, err := h.bearer(known); !isKind(err, apierr.AuthUnavailable) {
		t.Errorf("a known kid: %v", err)
	}
	if _, err := h.bearer(unknown); !isKind(err, apierr.Unauthorized) {
		t.Errorf("an unknown kid: %v", err)
	}
}

// A row that was copied or written without the master key stops the start.
func TestSigningKeys_ForgedRow(t *testing.T) {
	h := newHarness(t)
	err := h.db.InTx(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(t.Context(), `INSERT INTO signing_keys (kid, number, private_sealed, created_at, activated_at)
			SELECT 'kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k', 2, private_sealed, created_at, created_at FROM signing_keys`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	fresh, err := auth.New(h.db, auth.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer fresh.Close(t.Context())
	if err := fresh.Start(t.Context()); err == nil {
		t.Error("a copied row was accepted")
	}
}
