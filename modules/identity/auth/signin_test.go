package auth_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"kontor/modules/identity/auth"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

func TestSignIn(t *testing.T) {
	h := newHarness(t)
	anna := h.user("anna@example.ch")
	h.userWithStatus("disabled", "dora@example.ch")
	h.inTx(func(tx *store.Tx) error { return h.addCredential(tx, anna, "claimed@example.ch", false) })
	for _, test := range []struct {
		name, value, password string
		status                int
		code                  string
	}{
		{"e-mail", "anna@example.ch", password, 200, ""},
		{"e-mail in another case, with spaces", " Anna@Example.CH ", password, 200, ""},
		{"user id", anna, password, 200, ""},
		{"user id in upper case", strings.ToUpper(anna), password, 200, ""},
		{"wrong password", "anna@example.ch", password + "!", 401, "auth_m.invalid_credentials"},
		{"password in another case", "anna@example.ch", strings.ToUpper(password), 401, "auth_m.invalid_credentials"},
		{"password with a space behind it", "anna@example.ch", password + " ", 401, "auth_m.invalid_credentials"},
		{"nobody", "nobody@example.ch", password, 401, "auth_m.invalid_credentials"},
		{"unknown id", store.NewID(), password, 401, "auth_m.invalid_credentials"},
		{"a value that is not validated", "claimed@example.ch", password, 401, "auth_m.invalid_credentials"},
		{"a disabled user", "dora@example.ch", password, 401, "auth_m.invalid_credentials"},
		{"no user", "", password, 400, "common.invalid_input"},
		{"no password", "anna@example.ch", "", 400, "common.invalid_input"},
		{"an endless value", strings.Repeat("a", 321), password, 400, "common.invalid_input"},
	} {
		h.expect(test.name, h.signIn(test.value, test.password), test.status, test.code)
	}
}

func TestSignIn_AnswersWithTokens(t *testing.T) {
	h := newHarness(t)
	anna := h.user("anna@example.ch")
	a := h.mustSignIn("anna@example.ch")
	if a.text("token_type") != "Bearer" || a.json["expires_in"] != 3600.0 || a.text("user_id") != anna ||
		len(a.text("refresh_token")) != 43 || strings.Count(a.text("access_token"), ".") != 2 || len(a.json) != 6 {
		t.Errorf("got %s", a.body)
	}
	if got := a.header.Get("Cache-Control"); got != "no-store" {
		t.Errorf("Cache-Control %q: tokens must not be stored", got)
	}
	var login store.Time
	if err := h.db.QueryRow(context.Background(), `SELECT last_login_at FROM users WHERE id = $1`, anna).Scan(&login); err != nil || login != h.db.Now() {
		t.Errorf("last_login_at %v, %v", login, err)
	}
}

// Neither the response nor its time reveals whether a user exists: every failure costs one hash.
func TestSignIn_RevealsNothingAboutUsers(t *testing.T) {
	h := newHarness(t)
	anna := h.user("anna@example.ch")
	h.userWithStatus("disabled", "dora@example.ch")
	h.inTx(func(tx *store.Tx) error {
		id := store.NewID()
		if _, err := tx.Exec(context.Background(), `
			INSERT INTO users (id, status, language, created_at, created_by, modified_at, modified_by)
			VALUES ($1, 'active', 'en', 0, $1, 0, $1)`, id); err != nil {
			return err
		}
		return h.addCredential(tx, id, "without-password@example.ch", true)
	})
	var first answer
	for i, value := range []string{"anna@example.ch", anna, "dora@example.ch", "nobody@example.ch", store.NewID(), "without-password@example.ch"} {
		before := h.auth.Hashes()
		a := h.signIn(value, "wrong", "X-Request-ID", "same")
		if made := h.auth.Hashes() - before; made != 1 {
			t.Errorf("%s: %d hashes", value, made)
		}
		a.header.Del("Date")
		if i == 0 {
			first = a
		}
		if a.body != first.body || !maps.EqualFunc(a.header, first.header, slices.Equal) {
			t.Errorf("%s: got %v %s, want %v %s", value, a.header, a.body, first.header, first.body)
		}
	}
	before := h.auth.Hashes()
	h.failSignIns(3, "anna@example.ch") // the address and the id are one user, with two failures from above
	h.retryAfter(h.signIn("anna@example.ch", password))
	if made := h.auth.Hashes() - before; made != 3 {
		t.Errorf("%d hashes: the password was compared during the lockout", made)
	}
}

func TestSignIn_UsesTheLanguageOfTheRequest(t *testing.T) {
	h := newHarness(t)
	for language, want := range map[string]string{
		"en": "The user or password is incorrect. Check both and try again.",
		"de": "Benutzer oder Passwort ist falsch. Prüfen Sie beide Angaben und versuchen Sie es erneut.",
		"fr": "L’utilisateur ou le mot de passe est incorrect. Vérifiez les deux et réessayez.",
		"it": "L’utente o la password non è corretta. Verifichi entrambi e riprovi.",
	} {
		if got := h.signIn("x@"+language+".ch", "wrong", "Accept-Language", language); got.text("message") != want {
			t.Errorf("%s: %s", language, got.body)
		}
	}
}

// A pending user has the rights of a registrant, independent of their roles.
func TestSignIn_PendingUserIsARegistrant(t *testing.T) {
	h := newHarness(t)
	id := h.userWithStatus("pending", "petra@example.ch", access.Customer, access.Administrator)
	token := h.mustSignIn("petra@example.ch").text("access_token")
	h.expect("own sessions", h.getSessions(id, token), 403, "common.rbac_no_rec_access")
	h.expect("logout", h.call("POST", "/v1/logout", nil, "Authorization", "Bearer "+token), 200, "")
}

func TestSignIn_UpgradesTheHash(t *testing.T) {
	h := newHarness(t)
	id := h.user("anna@example.ch")
	h.stop()
	h.start(func(o *auth.Options) { o.Hash = auth.HashCost{MemoryKiB: 128, Passes: 2, Threads: 1} })
	stored := func() (hash string) {
		if err := h.db.QueryRow(context.Background(), `SELECT hash FROM passwords WHERE user_id = $1`, id).Scan(&hash); err != nil {
			t.Fatal(err)
		}
		return hash
	}
	if hash := stored(); !strings.HasPrefix(hash, "$argon2id$v=19$m=64,t=1,p=1$") {
		t.Fatalf("before: %s", hash)
	}
	h.signIn("anna@example.ch", "wrong")
	if hash := stored(); !strings.HasPrefix(hash, "$argon2id$v=19$m=64,t=1,p=1$") {
		t.Fatalf("a failure changed the hash: %s", hash)
	}
	h.mustSignIn("anna@example.ch")
	if hash := stored(); !strings.HasPrefix(hash, "$argon2id$v=19$m=128,t=2,p=1$") {
		t.Fatalf("after: %s", hash)
	}
	h.mustSignIn("anna@example.ch")
}

func TestSignIn_ReportsNewDevices(t *testing.T) {
	h := newHarness(t)
	h.user("anna@example.ch")
	for _, device := range []string{"laptop", "laptop", "phone", "", "phone"} {
		h.mustSignIn("anna@example.ch", "X-Device-ID", device)
	}
	if want := []string{"laptop", "laptop", "phone (new)", " (new)", "phone"}; !slices.Equal(h.events.devices, want) {
		t.Errorf("got %q, want %q", h.events.devices, want)
	}
	for _, device := range []string{strings.Repeat("x", 129), "a\u00adb", "tab\there"} {
		h.expect(device, h.signIn("anna@example.ch", password, "X-Device-ID", device), 400, "common.invalid_input")
	}
	h.mustSignIn("anna@example.ch", "X-Device-ID", strings.Repeat("ü", 128))
}

// A sign-in rejected because the queue is full gets Retry-After and does not consume an attempt.
func TestSignIn_RejectsWhenTheQueueIsFull(t *testing.T) {
	h := newHarness(t, func(o *auth.Options) { o.HashSlots = 1 })
	h.user("anna@example.ch")
	release := h.auth.FillQueue()
	for range 20 {
		a := h.signIn("anna@example.ch", "wrong")
		h.expect("in the flood", a, 503, "common.unavailable")
		if a.header.Get("Retry-After") != "1" || a.text("class") != "temporary" || a.json["retryable"] != true {
			t.Fatalf("503 without Retry-After, or not marked as temporary: %s", a.body)
		}
	}
	if _, err := h.auth.HashPassword(context.Background(), password); !isKind(err, apierr.Unavailable) {
		t.Errorf("hash a new password while the queue is full: %v", err)
	}
	release()
	h.failSignIns(5, "anna@example.ch")
	release = h.auth.FillQueue()
	h.retryAfter(h.signIn("anna@example.ch", password)) // a locked-out caller gets 429 even then
	release()
}
