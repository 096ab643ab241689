package auth

import (
	"context"
	"encoding/base64"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
	"kontor/store/storetest"
)

// An entry that was read before a revocation is invalid after it, even if it is cached later.
func TestGenerations_InvalidateLateReads(t *testing.T) {
	db := storetest.OpenWith(t, storetest.NewClock())
	s, err := New(db, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(context.Background())
	user, id := store.NewID(), store.NewID()
	late := &session{caller: &access.Caller{UserID: user, SessionID: id}, expires: db.Now() + 1000, read: s.generations.Now(user)}
	s.generations.End(user)
	s.sessions.Put(id, late)
	s.sessions.Wait()
	if _, ok := s.sessions.Get(id); !ok {
		t.Fatal("the cache rejected the entry: the test proves nothing")
	}
	if _, ok := s.cachedSession(user, id, db.Now()); ok {
		t.Error("a session that was read before its end is still accepted")
	}
	late.read = s.generations.Now(user)
	if _, ok := s.cachedSession(user, id, db.Now()); !ok {
		t.Error("a session that was read after it is rejected")
	}
	if _, ok := s.cachedSession(store.NewID(), id, db.Now()); ok {
		t.Error("a session is accepted for another user")
	}
}

func TestCommonPasswords_CanBeSearched(t *testing.T) {
	list := commonPasswords()
	if len(list) < 10_000 || !slices.IsSorted(list) {
		t.Errorf("%d passwords, sorted %v", len(list), slices.IsSorted(list))
	}
	for _, password := range list {
		if password == "" || password != strings.ToLower(password) {
			t.Errorf("%q can never be found", password)
		}
	}
}

func FuzzParseHash(f *testing.F) {
	f.Add(storedHash{HashCost{MemoryKiB: 64, Passes: 1, Threads: 1}, make([]byte, saltBytes), make([]byte, hashBytes)}.String())
	f.Add("$argon2id$v=19$m=4294967295,t=4294967295,p=255$c2FsdHNhbHQ$c3Vtc3Vtc3Vtc3Vtc3Vt")
	f.Add("$argon2id$v=19$m=0,t=0,p=0$$")
	f.Fuzz(func(t *testing.T, text string) {
		h, err := parseHash(text)
		if err != nil {
			return
		}
		if h.cost.MemoryKiB > maxStoredMemoryKiB || h.cost.Passes == 0 || h.cost.Threads == 0 {
			t.Errorf("%q has implausible parameters: %+v", text, h.cost)
		}
		if again, err := parseHash(h.String()); err != nil || again.String() != h.String() {
			t.Errorf("%q does not survive a round trip: %v", h.String(), err)
		}
	})
}

// Only tokens that the service signed are accepted, and only in their canonical spelling.
func FuzzBearer(f *testing.F) {
	db := storetest.OpenWith(f, storetest.NewClock())
	s, err := New(db, Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		f.Fatal(err)
	}
	if err := s.Start(f.Context()); err != nil {
		f.Fatal(err)
	}
	good, _, err := s.issue(Session{ID: store.NewID(), UserID: store.NewID()}, db.Now(), store.NewID())
	if err != nil {
		f.Fatal(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	header, rest, _ := strings.Cut(good, ".")
	for _, seed := range []string{
		"", ".", "..", good, good + "=", good + ".", header + "." + header + "." + header, strings.ToLower(good),
		encode([]byte(`{"alg":"none"}`)) + "." + rest, encode([]byte(`{"alg":"EdDSA","typ":"at+jwt","crit":[]}`)) + "." + rest,
		encode([]byte(`{"alg":["EdDSA"],"typ":{}}`)) + "." + encode([]byte(`{"exp":1e999}`)) + ".AAAA",
	} {
		f.Add(seed)
	}
	app := fiber.New(fiber.Config{Immutable: true})
	f.Fuzz(func(t *testing.T, token string) {
		c := app.AcquireCtx(&fasthttp.RequestCtx{})
		defer app.ReleaseCtx(c)
		c.Request().Header.Set(fiber.HeaderAuthorization, "Bearer "+token)
		if endpoint.BearerToken(c) == good {
			return
		}
		if err := s.verifyToken(c); apierr.Of(err).Kind != apierr.Unauthorized {
			t.Errorf("%q: %v", token, err)
		}
	})
}

func BenchmarkKnown(b *testing.B) {
	db := storetest.Open(b)
	s, err := New(db, Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close(context.Background())
	if err := s.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	user, id := store.NewID(), store.NewID()
	token, expires, err := s.issue(Session{ID: id, UserID: user}, db.Now(), store.NewID())
	if err != nil {
		b.Fatal(err)
	}
	s.tokens.Put(token, &verified{userID: user, sessionID: id, expires: expires, key: s.signing.Load().active})
	s.sessions.Put(id, &session{caller: &access.Caller{UserID: user}, expires: expires, read: s.generations.Now(user)})
	s.tokens.Wait()
	s.sessions.Wait()
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := s.Known(token, netip.Addr{}); !ok {
			b.Fatal("the entry is not in the cache")
		}
	}
}
