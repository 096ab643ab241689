package auth_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"kontor/modules/identity/auth"
	"kontor/modules/kit/list"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
	"kontor/store/storetest"
)

// adminToken signs in an administrator and returns the access token.
func (h *harness) adminToken() string {
	h.Helper()
	h.user("chief@example.ch", access.Administrator)
	return h.mustSignIn("chief@example.ch").text("access_token")
}

func (h *harness) callWithKey(key string) answer {
	h.Helper()
	return h.call("GET", "/v1/public-endpoint", nil, "X-API-Key", key)
}

func TestAPIKeys_Lifecycle(t *testing.T) {
	h := newHarness(t)
	admin := []string{"Authorization", "Bearer " + h.adminToken()}
	made := h.call("POST", "/v1/api-keys", map[string]string{"name": " Portal "}, admin...)
	h.expect("create", made, 201, "")
	id, key := made.text("id"), made.text("key")
	pieces := strings.SplitN(key, "_", 3)
	if len(pieces) != 3 || pieces[0] != "kontor" || pieces[1] != strings.ReplaceAll(id, "-", "") || len(pieces[2]) != 43 || made.text("name") != "Portal" {
		t.Errorf("got %s", made.body)
	}
	a := h.callWithKey(key)
	h.expect("use", a, 200, "")
	if a.text("message") != "The API key is valid." {
		t.Errorf("got %s", a.body)
	}
	list := h.call("GET", "/v1/api-keys", nil, admin...)
	h.expect("list", list, 200, "")
	if strings.Contains(list.body, pieces[2]) || strings.Contains(list.body, "hash") || list.json["total"] != 1.0 ||
		strings.Contains(list.body, `"last_used_at":null`) {
		t.Errorf("got %s", list.body)
	}
	h.expect("revoke", h.call("DELETE", "/v1/api-keys/"+id, nil, admin...), 200, "")
	h.expect("use after", h.callWithKey(key), 401, "common.unauthorized")
	h.expect("revoke again", h.call("DELETE", "/v1/api-keys/"+id, nil, admin...), 200, "")
	h.restart()
	h.expect("use after a restart", h.callWithKey(key), 401, "common.unauthorized")
	h.expect("revoke an unknown one", h.call("DELETE", "/v1/api-keys/"+store.NewID(), nil, admin...), 404, "auth_m.api_key_not_found")
}

func TestAPIKeys_AreForAdministrators(t *testing.T) {
	h := newHarness(t)
	h.user("anna@example.ch", access.Advisor)
	anna := []string{"Authorization", "Bearer " + h.mustSignIn("anna@example.ch").text("access_token")}
	for _, call := range [][2]string{{"GET", "/v1/api-keys"}, {"POST", "/v1/api-keys"}, {"DELETE", "/v1/api-keys/" + store.NewID()}} {
		h.expect(call[0], h.call(call[0], call[1], nil, anna...), 403, "common.rbac_no_rec_access")
		h.expect(call[0], h.call(call[0], call[1], nil), 401, "common.unauthorized")
	}
	admin := h.adminToken()
	for name, body := range map[string]any{"no name": map[string]string{}, "blank": map[string]string{"name": "  "}, "long": map[string]string{"name": strings.Repeat("x", 101)}} {
		h.expect(name, h.call("POST", "/v1/api-keys", body, "Authorization", "Bearer "+admin), 400, "common.invalid_input")
	}
}

func TestAPIKeys_RejectInvalidKeys(t *testing.T) {
	h := newHarness(t)
	token := h.adminToken()
	made, err := h.auth.CreateKey(context.Background(), "test", auth.KeyLimits{})
	if err != nil {
		t.Fatal(err)
	}
	h.expect("good", h.callWithKey(made.Key), 200, "")
	for name, key := range map[string]string{
		"none": "", "short": "kontor", "another secret": made.Key[:len(made.Key)-1] + "_", "longer": made.Key + "x",
		"upper case": strings.ToUpper(made.Key), "the id": made.ID, "with a space": made.Key[:20] + " " + made.Key[20:],
		"endless": strings.Repeat("x", 5000),
	} {
		h.expect(name, h.callWithKey(key), 401, "common.unauthorized")
	}
	both := []string{"X-API-Key", made.Key, "Authorization", "Bearer " + token}
	h.expect("both on a key route", h.call("GET", "/v1/public-endpoint", nil, both...), 400, "common.invalid_input")
	h.expect("both on a bearer route", h.call("GET", "/v1/api-keys", nil, both...), 400, "common.invalid_input")
	h.expect("a key on a bearer route", h.call("GET", "/v1/api-keys", nil, "X-API-Key", made.Key), 401, "common.unauthorized")
	h.expect("a token on a key route", h.call("GET", "/v1/public-endpoint", nil, "Authorization", "Bearer "+token), 401, "common.unauthorized")
}

func TestStoreKey_ChecksTheForm(t *testing.T) {
	h := newHarness(t)
	const chosen = "a-key_the.operator chose"
	ctx := context.Background()
	for _, bad := range []string{"", "fifteen-letters", chosen, strings.Repeat("x", 257), "sixteen-letters-ü"} {
		err := h.db.InTx(ctx, func(tx *store.Tx) error { return h.auth.StoreKey(ctx, tx, "first", bad) })
		if !errors.Is(err, auth.ErrKeyForm) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	const key = "sixteen-letters!"
	h.inTx(func(tx *store.Tx) error { return h.auth.StoreKey(ctx, tx, "first", key) })
	h.expect("chosen key", h.callWithKey(key), 200, "")
	var stored string
	if err := h.db.QueryRow(ctx, `SELECT key_hash FROM api_keys`).Scan(&stored); err != nil || strings.Contains(stored, "letters") || len(stored) != 64 {
		t.Errorf("stored %q, %v", stored, err)
	}
}

func TestAPIKeys_LastUse(t *testing.T) {
	h := newHarness(t)
	ctx := context.Background()
	made, err := h.auth.CreateKey(ctx, "test", auth.KeyLimits{})
	if err != nil {
		t.Fatal(err)
	}
	lastUse := func() (at *store.Time) {
		if err := h.db.QueryRow(ctx, `SELECT last_used_at FROM api_keys WHERE id = $1`, made.ID).Scan(&at); err != nil {
			t.Fatal(err)
		}
		return at
	}
	used := h.db.Now()
	h.callWithKey(made.Key)
	if at := lastUse(); at != nil {
		t.Errorf("a request wrote %v", *at)
	}
	h.clock.Advance(time.Minute)
	if err := h.auth.FlushKeyUse(ctx); err != nil {
		t.Fatal(err)
	}
	if at := lastUse(); at == nil || *at != used {
		t.Errorf("got %v, want %v", at, used)
	}
	h.clock.Advance(time.Minute)
	h.callWithKey(made.Key)
	want := h.db.Now()
	if _, err := h.auth.Keys(ctx, list.Params{}); err != nil { // listing the keys writes the time of their last use
		t.Fatal(err)
	}
	if at := lastUse(); at == nil || *at != want {
		t.Errorf("listed: got %v, want %v", at, want)
	}
	h.clock.Advance(time.Minute)
	h.callWithKey(made.Key)
	want = h.db.Now()
	h.restart() // stopping the service writes it, too
	if at := lastUse(); at == nil || *at != want {
		t.Errorf("got %v, want %v", at, want)
	}
}

// A key is never used before it was created, whatever the clock of the node shows that sees the use.
func TestAPIKeys_LastUseIsNotBeforeTheCreation(t *testing.T) {
	h := newHarness(t)
	ctx := context.Background()
	made, err := h.auth.CreateKey(ctx, "test", auth.KeyLimits{})
	if err != nil {
		t.Fatal(err)
	}
	lastUse := func(past time.Duration) (created, used store.Time) {
		h.clock.Advance(past)
		h.callWithKey(made.Key)
		if err := h.auth.FlushKeyUse(ctx); err != nil {
			t.Fatal(err)
		}
		if err := h.db.QueryRow(ctx, `SELECT created_at, last_used_at FROM api_keys WHERE id = $1`, made.ID).Scan(&created, &used); err != nil {
			t.Fatal(err)
		}
		return created, used
	}
	const year = 365 * 24 * time.Hour
	for _, past := range []time.Duration{-year, time.Hour} {
		if created, used := lastUse(past); used != created {
			t.Errorf("used at %v, want %v", used, created)
		}
	}
	if _, used := lastUse(year); used != h.db.Now() {
		t.Errorf("used at %v, want %v", used, h.db.Now())
	}
}

func TestRecords_OwnersOnly(t *testing.T) {
	h := newHarness(t)
	anna := h.user("anna@example.ch")
	h.mustSignIn("anna@example.ch")
	ctx := context.Background()
	var id string
	if err := h.db.QueryRow(ctx, `SELECT id FROM sessions`).Scan(&id); err != nil {
		t.Fatal(err)
	}
	sessions := h.auth.Records()[access.Sessions]
	for user, want := range map[string]access.Permission{anna: access.Read | access.Delete, store.NewID(): access.None} {
		got, err := sessions.Relations(ctx, user, []string{id, store.NewID()})
		if err != nil || len(got) != 1 || got[id] != want {
			t.Errorf("%s: got %v, %v", user, got, err)
		}
	}
}

func FuzzAPIKey(f *testing.F) {
	db := storetest.Open(f)
	service, err := auth.New(db, auth.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		f.Fatal(err)
	}
	ctx := context.Background()
	made, err := service.CreateKey(ctx, "test", auth.KeyLimits{})
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{"", "kontor__", "kontor_0_0", made.Key, made.Key + "\x00", strings.ToUpper(made.Key), strings.Repeat("_", 64)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, key string) {
		caller, err := service.APIKey(ctx, key)
		switch {
		case key == made.Key && (err != nil || caller.KeyID != made.ID):
			t.Errorf("the key: %v", err)
		case key != made.Key && (!isKind(err, apierr.Unauthorized) || caller != nil):
			t.Errorf("%q: got %v, %v", key, caller, err)
		}
	})
}
