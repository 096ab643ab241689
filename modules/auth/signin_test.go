package auth_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"kontor/modules/auth"
	"kontor/server/access"
	"kontor/store"
)

func TestSignIn(t *testing.T) {
	w := newWorld(t)
	anna := w.user("anna@example.ch")
	w.userIn("disabled", "dora@example.ch")
	w.inTx(func(tx *store.Tx) error { return w.addCredential(tx, anna, "claimed@example.ch", false) })
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
		w.expect(test.name, w.signIn(test.value, test.password), test.status, test.code)
	}
}

func TestSignIn_AnswersWithTokens(t *testing.T) {
	w := newWorld(t)
	anna := w.user("anna@example.ch")
	a := w.tokens("anna@example.ch")
	if a.text("token_type") != "Bearer" || a.json["expires_in"] != 3600.0 || a.text("user_id") != anna ||
		len(a.text("refresh_token")) != 43 || strings.Count(a.text("access_token"), ".") != 2 || len(a.json) != 5 {
		t.Errorf("got %s", a.body)
	}
	if got := a.header.Get("Cache-Control"); got != "no-store" {
		t.Errorf("Cache-Control %q: tokens must not be stored", got)
	}
	var login store.Time
	if err := w.db.QueryRow(context.Background(), `SELECT last_login_at FROM users WHERE id = $1`, anna).Scan(&login); err != nil || login != w.db.Now() {
		t.Errorf("last_login_at %v, %v", login, err)
	}
}

// Whether a user exists shows neither in the answer nor in the time it takes.
func TestSignIn_TellsNothingAboutUsers(t *testing.T) {
	w := newWorld(t, func(o *auth.Options) { o.Hash = auth.HashCost{MemoryKiB: 16 << 10, Passes: 4, Threads: 1} })
	w.user("anna@example.ch")
	w.userIn("disabled", "dora@example.ch")
	fastest := map[string]time.Duration{}
	var bodies []string
	for range 4 {
		for _, value := range []string{"anna@example.ch", "dora@example.ch", "nobody@example.ch"} {
			began := time.Now()
			a := w.signIn(value, "wrong", "X-Request-ID", "same")
			took := time.Since(began)
			if best, ok := fastest[value]; !ok || took < best {
				fastest[value] = took
			}
			if !slices.Contains(bodies, a.body) {
				bodies = append(bodies, a.body)
			}
		}
	}
	if len(bodies) != 1 {
		t.Errorf("answers differ: %q", bodies)
	}
	for value, took := range fastest {
		// Without the hash it would be a tenth.
		if reference := fastest["anna@example.ch"]; took*3 < reference || took > reference*3 {
			t.Errorf("%s took %v, a real user %v", value, took, reference)
		}
	}
}

func TestSignIn_IsWordedInTheLanguageOfTheRequest(t *testing.T) {
	w := newWorld(t)
	for language, want := range map[string]string{
		"en": "The user or the password is not right.", "de": "Benutzer oder Passwort stimmt nicht.",
		"fr": "L’utilisateur ou le mot de passe n’est pas correct.", "it": "L’utente o la password non è corretta.",
	} {
		if got := w.signIn("x@"+language+".ch", "wrong", "Accept-Language", language); got.text("message") != want {
			t.Errorf("%s: %s", language, got.body)
		}
	}
}

// Who has not validated a credential yet acts as a registrant, whatever roles he was given.
func TestSignIn_PendingUserIsARegistrant(t *testing.T) {
	w := newWorld(t)
	id := w.userIn("pending", "petra@example.ch", access.Customer, access.Administrator)
	token := w.tokens("petra@example.ch").text("access_token")
	w.expect("own sessions", w.sessions(id, token), 403, "common.rbac_no_rec_access")
	w.expect("logout", w.call("POST", "/v1/logout", nil, "Authorization", "Bearer "+token), 200, "")
}

func TestSignIn_UpgradesTheHash(t *testing.T) {
	w := newWorld(t)
	id := w.user("anna@example.ch")
	w.stop()
	w.start(func(o *auth.Options) { o.Hash = auth.HashCost{MemoryKiB: 128, Passes: 2, Threads: 1} })
	stored := func() (hash string) {
		if err := w.db.QueryRow(context.Background(), `SELECT hash FROM passwords WHERE user_id = $1`, id).Scan(&hash); err != nil {
			t.Fatal(err)
		}
		return hash
	}
	if hash := stored(); !strings.HasPrefix(hash, "$argon2id$v=19$m=64,t=1,p=1$") {
		t.Fatalf("before: %s", hash)
	}
	w.signIn("anna@example.ch", "wrong")
	if hash := stored(); !strings.HasPrefix(hash, "$argon2id$v=19$m=64,t=1,p=1$") {
		t.Fatalf("a failure changed the hash: %s", hash)
	}
	w.tokens("anna@example.ch")
	if hash := stored(); !strings.HasPrefix(hash, "$argon2id$v=19$m=128,t=2,p=1$") {
		t.Fatalf("after: %s", hash)
	}
	w.tokens("anna@example.ch")
}

func TestSignIn_TellsOfNewDevices(t *testing.T) {
	w := newWorld(t)
	w.user("anna@example.ch")
	for _, device := range []string{"laptop", "laptop", "phone", "", "phone"} {
		w.tokens("anna@example.ch", "X-Device-ID", device)
	}
	if want := []string{"laptop", "laptop", "phone (new)", " (new)", "phone"}; !slices.Equal(w.events.devices, want) {
		t.Errorf("got %q, want %q", w.events.devices, want)
	}
	for _, device := range []string{strings.Repeat("x", 129), "a\u00adb", "tab\there"} {
		w.expect(device, w.signIn("anna@example.ch", password, "X-Device-ID", device), 400, "common.invalid_input")
	}
	w.tokens("anna@example.ch", "X-Device-ID", strings.Repeat("ü", 128))
}

// A flood is turned away, and who was turned away has not used up an attempt.
func TestSignIn_FloodIsTurnedAway(t *testing.T) {
	const callers = 60
	w := newWorld(t, func(o *auth.Options) {
		o.Hash = auth.HashCost{MemoryKiB: 16 << 10, Passes: 2, Threads: 1}
		o.HashSlots, o.FreeAttempts = 1, 1000
	})
	answers := make(chan answer, callers)
	for i := range callers {
		go func() {
			a, err := w.try("POST", "/authenticate", map[string]string{"user_id": fmt.Sprintf("u%d@example.ch", i), "password": "wrong"},
				from(fmt.Sprintf("192.0.2.%d", i))...)
			if err != nil {
				t.Error(err)
			}
			answers <- a
		}()
	}
	seen := map[int]int{}
	for range callers {
		a := <-answers
		seen[a.status]++
		if a.status == http.StatusServiceUnavailable && (a.header.Get("Retry-After") != "1" || a.text("class") != "temporary") {
			t.Errorf("503 without its marks: %s", a.body)
		}
	}
	if seen[503] == 0 || seen[401] == 0 || seen[401]+seen[503] != callers {
		t.Errorf("got %v", seen)
	}
	var counted int
	if err := w.db.QueryRow(context.Background(), `SELECT count(*) FROM sign_in_values`).Scan(&counted); err != nil || counted != seen[401] {
		t.Errorf("%d attempts counted for %d answers 401, %v", counted, seen[401], err)
	}
}
