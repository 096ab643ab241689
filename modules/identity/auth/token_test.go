package auth_test

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/gofiber/fiber/v2"
	"github.com/golang-jwt/jwt/v5"
	"github.com/valyala/fasthttp"

	"kontor/modules/identity/auth"
	"kontor/server/apierr"
	"kontor/store"
	"kontor/store/storetest"
	"kontor/store/testenv"
)

// signToken returns a token of any header and claims, signed with the real key.
func (h *harness) signToken(header, claims map[string]any) string {
	h.Helper()
	return signed(h, h.key(), header, claims)
}

// signed returns a token of any header and claims, signed with a key.
func signed(t testing.TB, key ed25519.PrivateKey, header, claims map[string]any) string {
	t.Helper()
	encode := func(v any) string {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(data)
	}
	text := encode(header) + "." + encode(claims)
	return text + "." + base64.RawURLEncoding.EncodeToString(ed25519.Sign(key, []byte(text)))
}

func (h *harness) key() ed25519.PrivateKey {
	_, key := h.auth.SigningKey()
	return key
}

func parts(t testing.TB, token string) (header, claims map[string]any) {
	t.Helper()
	pieces := strings.Split(token, ".")
	for i, into := range []*map[string]any{&header, &claims} {
		data, err := base64.RawURLEncoding.DecodeString(pieces[i])
		if err == nil {
			err = json.Unmarshal(data, into)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return header, claims
}

func TestToken_HasItsClaims(t *testing.T) {
	h := newHarness(t)
	anna := h.user("anna@example.ch")
	header, claims := parts(t, h.mustSignIn("anna@example.ch").text("access_token"))
	if kid, _ := h.auth.SigningKey(); len(header) != 3 || header["alg"] != "EdDSA" || header["typ"] != "at+jwt" || header["kid"] != kid {
		t.Errorf("header %v", header)
	}
	now := float64(h.clock.Now().Unix())
	if claims["iss"] != "kontor" || claims["sub"] != anna || claims["iat"] != now || claims["nbf"] != now || claims["exp"] != now+3600 {
		t.Errorf("claims %v", claims)
	}
	if claims["acr"] != "aal1" || fmt.Sprint(claims["amr"]) != "[pwd]" || claims["auth_time"] != now {
		t.Errorf("claims %v", claims)
	}
	for _, name := range []string{"aud", "sid", "jti"} {
		if claims[name] == nil {
			t.Errorf("no %s in %v", name, claims)
		}
	}
}

func TestToken_RejectsInvalidTokens(t *testing.T) {
	h := newHarness(t)
	anna := h.user("anna@example.ch")
	good := h.mustSignIn("anna@example.ch").text("access_token")
	bruno := h.user("bruno@example.ch")
	header, claims := parts(t, good)
	now := h.clock.Now().Unix()
	with := func(of map[string]any, name string, value any) map[string]any {
		changed := maps.Clone(of)
		if value == nil {
			delete(changed, name)
		} else {
			changed[name] = value
		}
		return changed
	}
	claim := func(name string, value any) string { return h.signToken(header, with(claims, name, value)) }
	head := func(name string, value any) string { return h.signToken(with(header, name, value), claims) }
	pieces := strings.Split(good, ".")
	otherKey := func() string {
		_, key, err := ed25519.GenerateKey(nil)
		if err != nil {
			t.Fatal(err)
		}
		return pieces[0] + "." + pieces[1] + "." + base64.RawURLEncoding.EncodeToString(ed25519.Sign(key, []byte(pieces[0]+"."+pieces[1])))
	}
	hmac := func(method *jwt.SigningMethodHMAC) string {
		token := jwt.NewWithClaims(method, jwt.MapClaims(claims))
		token.Header["typ"] = "at+jwt"
		signed, err := token.SignedString([]byte(h.key().Public().(ed25519.PublicKey)))
		if err != nil {
			t.Fatal(err)
		}
		return signed
	}
	none := func() string {
		data := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","typ":"at+jwt"}`))
		return data + "." + pieces[1] + "."
	}

	h.expect("the forger works", h.getSessions(anna, h.signToken(header, claims)), 200, "")
	h.expect("a life of a day", h.getSessions(anna, claim("exp", now+24*3600)), 200, "")
	h.expect("the token itself", h.getSessions(anna, good), 200, "")
	for name, token := range map[string]string{
		"nothing":                       "",
		"garbage":                       "garbage",
		"a life longer than a day":      claim("exp", now+24*3600+1),
		"a life of a year":              claim("exp", now+365*24*3600),
		"a life that began long ago":    claim("iat", now-24*3600),
		"a life beyond all times":       claim("exp", 1e300),
		"issued before all times":       claim("iat", -1e300),
		"two parts":                     pieces[0] + "." + pieces[1],
		"four parts":                    good + ".x",
		"empty parts":                   "..",
		"alias by spare bits":           alias(good),
		"alias by padding":              good + "==",
		"alias by a line break":         good[:20] + "\n" + good[20:],
		"alias by a space":              good[:20] + " " + good[20:],
		"standard alphabet":             strings.NewReplacer("-", "+", "_", "/").Replace(good) + "+",
		"too long":                      h.signToken(header, with(claims, "x", strings.Repeat("x", 1000))),
		"another key":                   otherKey(),
		"no signature":                  pieces[0] + "." + pieces[1] + ".",
		"alg none":                      none(),
		"alg HS256 with the public key": hmac(jwt.SigningMethodHS256),
		"alg HS512 with the public key": hmac(jwt.SigningMethodHS512),
		"alg in another case":           head("alg", "eddsa"),
		"alg ES256":                     head("alg", "ES256"),
		"alg missing":                   head("alg", nil),
		"typ JWT":                       head("typ", "JWT"),
		"typ missing":                   head("typ", nil),
		"crit":                          head("crit", []string{"exp"}),
		"crit unknown":                  head("crit", []string{"x"}),
		"b64":                           head("b64", false),
		"kid unknown":                   head("kid", "1"),
		"kid missing":                   head("kid", nil),
		"kid empty":                     head("kid", ""),
		"kid a path":                    head("kid", "../../../../dev/null"),
		"kid with SQL":                  head("kid", "x' OR '1'='1"),
		"kid huge":                      head("kid", strings.Repeat("A", 600)),
		"kid a number":                  head("kid", 1),
		"kid a list":                    head("kid", []string{header["kid"].(string)}),
		"kid an object":                 head("kid", map[string]any{"kid": header["kid"]}),
		"kid null":                      h.signToken(map[string]any{"alg": "EdDSA", "typ": "at+jwt", "kid": nil}, claims),
		"kid in another case":           head("kid", strings.ToUpper(header["kid"].(string))),
		"kid with a space":              head("kid", header["kid"].(string)+" "),
		"kid of another key":            head("kid", "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"),
		"jku":                           head("jku", "https://evil.example/jwks.json"),
		"x5u":                           head("x5u", "https://evil.example/x.pem"),
		"x5c":                           head("x5c", []string{"AAAA"}),
		"jku instead of the kid":        h.signToken(map[string]any{"alg": "EdDSA", "typ": "at+jwt", "jku": "https://evil.example/"}, claims),
		"jwk":                           head("jwk", map[string]any{"kty": "OKP"}),
		"iss wrong":                     claim("iss", "Kontor"),
		"iss missing":                   claim("iss", nil),
		"aud wrong":                     claim("aud", []string{"other"}),
		"aud one of several":            claim("aud", []any{claims["aud"].([]any)[0], "other"}),
		"aud missing":                   claim("aud", nil),
		"exp past":                      claim("exp", now),
		"exp missing":                   claim("exp", nil),
		"exp as text":                   claim("exp", strconv.FormatInt(now+3600, 10)),
		"nbf as text":                   claim("nbf", strconv.FormatInt(now, 10)),
		"iat as text":                   claim("iat", strconv.FormatInt(now, 10)),
		"exp as a list":                 claim("exp", []int64{now + 3600}),
		"exp true":                      claim("exp", true),
		"exp a string":                  claim("exp", "tomorrow"),
		"exp zero":                      claim("exp", 0),
		"iat in the future":             claim("iat", now+60),
		"iat missing":                   claim("iat", nil),
		"nbf in the future":             claim("nbf", now+60),
		"nbf missing":                   claim("nbf", nil),
		"sub missing":                   claim("sub", nil),
		"sub of another user":           claim("sub", bruno),
		"sub in upper case":             claim("sub", strings.ToUpper(anna)),
		"sid missing":                   claim("sid", nil),
		"sid unknown":                   claim("sid", store.NewID()),
		"sid no id":                     claim("sid", "x' OR 1=1"),
		"jti missing":                   claim("jti", nil),
		"claims changed":                pieces[0] + "." + strings.Split(claim("exp", now+9999), ".")[1] + "." + pieces[2],
	} {
		a := h.call("GET", "/v1/users/"+anna+"/sessions", nil, "Authorization", "Bearer "+strings.ReplaceAll(token, "\n", ""))
		if name == "alias by a line break" { // no header can carry it; the form is checked all the same
			_, err := h.bearer(token)
			if err == nil {
				t.Errorf("%s: accepted", name)
			}
			continue
		}
		h.expect(name, a, 401, "common.unauthorized")
	}
	for name, header := range map[string]string{
		"another scheme": "Basic " + good, "no scheme": good, "no space": "Bearer" + good, "twice": "Bearer Bearer " + good,
	} {
		h.expect(name, h.call("GET", "/v1/users/"+anna+"/sessions", nil, "Authorization", header), 401, "common.unauthorized")
	}
	h.expect("in the query", h.call("GET", "/v1/users/"+anna+"/sessions?access_token="+good+"&token="+good, nil), 401, "common.unauthorized")
	h.expect("scheme in another case", h.call("GET", "/v1/users/"+anna+"/sessions", nil, "Authorization", "bearer "+good), 200, "")
}

// alias returns another encoding of the same token: it changes the unused bits of the last character.
func alias(token string) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	last := strings.IndexByte(alphabet, token[len(token)-1])
	return token[:len(token)-1] + string(alphabet[last|1])
}

// bearer calls the module without the server, which would reject some headers earlier.
func (h *harness) bearer(token string) (userID string, err error) {
	app := fiber.New(fiber.Config{Immutable: true})
	var request fasthttp.RequestCtx
	c := app.AcquireCtx(&request)
	defer app.ReleaseCtx(c)
	c.Request().Header.Set("Authorization", "Bearer "+token)
	caller, err := h.auth.Bearer(c)
	if err != nil {
		return "", err
	}
	return caller.UserID, nil
}

// Tokens expire by the clock of the store, including cached tokens.
func TestToken_ExpiresByTheClock(t *testing.T) {
	h := newHarness(t)
	anna := h.user("anna@example.ch")
	token := h.mustSignIn("anna@example.ch").text("access_token")
	h.expect("fresh", h.getSessions(anna, token), 200, "")
	h.clock.Advance(time.Hour - 200*time.Millisecond) // whole seconds: the clock starts at .123
	h.expect("in the last moment", h.getSessions(anna, token), 200, "")
	h.clock.Advance(200 * time.Millisecond)
	h.expect("expired", h.getSessions(anna, token), 401, "common.unauthorized")
	h.clock.Advance(-2 * time.Hour)
	h.expect("set back", h.getSessions(anna, token), 200, "")
}

// Requests are rejected when the session is not in memory and cannot be read.
func TestBearer_RejectsWhenTheSessionCannotBeRead(t *testing.T) {
	clock := storetest.NewClock()
	h := &harness{T: t, clock: clock, data: storetest.Options(t), events: &recorder{}, factors: newFactors()}
	h.start()
	anna := h.user("anna@example.ch")
	token := h.mustSignIn("anna@example.ch").text("access_token")
	if _, err := h.bearer(token); err != nil {
		t.Fatal(err)
	}
	db := h.db
	fresh, err := auth.New(db, auth.Options{Log: slog.New(slog.DiscardHandler)})
	if err == nil {
		err = fresh.Start(context.Background())
	}
	if err != nil {
		t.Fatal(err)
	}
	defer fresh.Close(context.Background())
	h.stop()
	old := h.auth
	h.auth = fresh
	_, err = h.bearer(token)
	h.auth = old
	if !isKind(err, apierr.AuthUnavailable) {
		t.Errorf("got %v for %s", err, anna)
	}
	if _, err := fresh.APIKey(context.Background(), "kontor_some_unknown_key"); !isKind(err, apierr.AuthUnavailable) {
		t.Errorf("API key: got %v", err)
	}
}

func TestExpiry(t *testing.T) {
	h := newHarness(t)
	h.user("anna@example.ch")
	token := h.mustSignIn("anna@example.ch").text("access_token")
	app := fiber.New(fiber.Config{Immutable: true})
	c := app.AcquireCtx(&fasthttp.RequestCtx{})
	defer app.ReleaseCtx(c)
	if _, ok := h.auth.Expiry(c); ok {
		t.Error("a request without a token has an expiry")
	}
	c.Request().Header.Set("Authorization", "Bearer "+token)
	if at, ok := h.auth.Expiry(c); !ok || at.Std() != h.clock.Now().UTC().Truncate(time.Second).Add(time.Hour) {
		t.Errorf("got %v, %v", at, ok)
	}
}

// Requests with a cached token allocate nothing and do not wait.
func TestKnown_AllocatesNothing(t *testing.T) {
	h := newHarness(t)
	token := h.cachedToken()
	if raceDetector {
		t.Log("the race detector empties the pools of the cache at random, so that allocations cannot be counted")
	}
	if allocations := testing.AllocsPerRun(100, func() { h.auth.Known(token, netip.Addr{}) }); allocations > 0 && !raceDetector {
		t.Errorf("%v allocations", allocations)
	}
}

// cachedToken returns an access token once the cache contains it.
func (h *harness) cachedToken() string {
	h.Helper()
	h.user("anna@example.ch")
	token := h.mustSignIn("anna@example.ch").text("access_token")
	testenv.Wait(h, "the cache to contain the token", func() bool {
		if _, err := h.bearer(token); err != nil {
			h.Fatal(err)
		}
		_, ok := h.auth.Known(token, netip.Addr{})
		return ok
	})
	return token
}
