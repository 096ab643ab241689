package app_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"kontor/modules/identity/oidc/oidctest"
	"kontor/modules/kit/signin"
	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/server/settings"
)

// methodBank is a server with a provider, at an address that allows passkeys.
type methodBank struct {
	*servertest.Server
	provider *oidctest.Provider
}

func startMethodBank(t *testing.T) *methodBank {
	t.Helper()
	b := &methodBank{}
	var provider servertest.Option
	clock := func() time.Time { return b.Clock.Now() }
	b.provider, provider = withProvider(t, &clock)
	b.Server = servertest.Start(t, provider, func(o *settings.Settings) { o.Server.BaseURL = "https://bank.example" })
	return b
}

// linkCode signs a person in at the provider whose account is not linked yet, and returns the code for linking it, with the client
// of this browser.
func (b *methodBank) linkCode(t *testing.T, user *servertest.Client, subject string) (code string, browser *servertest.Client) {
	t.Helper()
	var email string
	if err := b.DB.QueryRow(t.Context(), `SELECT value FROM credentials WHERE user_id = $1 AND type = 'email'`, user.UserID).Scan(&email); err != nil {
		t.Fatal(err)
	}
	begun := b.Anonymous().Do("GET", "/authenticate/oidc", nil).Expect(t, http.StatusSeeOther)
	answer := b.provider.SignIn(begun.Header.Get("Location"), oidctest.Claims{"sub": subject, "email": email, "email_verified": true})
	returned := b.Anonymous().With("Cookie", cookieOf(begun)).Do("GET", "/authenticate/oidc/callback?"+answer.Encode(), nil).Expect(t, http.StatusSeeOther)
	_, fragment, _ := strings.Cut(returned.Header.Get("Location"), "#oidc_link=")
	if code, _, _ = strings.Cut(fragment, "&"); code == "" {
		t.Fatalf("no code for linking: %s", returned.Header.Get("Location"))
	}
	return code, user.With("Cookie", cookieOf(returned))
}

// methodChange is a request that adds or removes a way to sign in of its caller.
type methodChange struct {
	client       *servertest.Client
	method, path string
	body         servertest.Body
	code         string // the name of the member for a code of an app
	status       int
}

// established is a user with one trusted way to sign in of each kind, and a session of minutes ago with password and code.
func (b *methodBank) established(t *testing.T, user *servertest.Client) (*phone, map[string]methodChange) {
	t.Helper()
	own := "/v1/users/" + user.UserID
	named := servertest.Body{"credential_type": "username", "credential_value": "n" + user.UserID[24:], "password": passwordOf(b.Server, user)}
	user.Do("POST", own+"/credentials", named).Expect(t, http.StatusCreated)
	identity := b.Admin().Do("POST", own+"/identities", map[string]any{"subject": "old-" + user.UserID, "password": servertest.AdminPassword}).
		Expect(t, http.StatusCreated).JSON(t)["id"].(string)
	p := enrol(t, b.Server, user)
	b.Clock.Advance(signin.Trial)
	code, browser := b.linkCode(t, user, "new-"+user.UserID)
	session := p.signIn(user.UserID, passwordOf(b.Server, user))
	browser.Token = session.Token
	return p, map[string]methodChange{
		"add a passkey":      {session, "POST", own + "/factors", servertest.Body{"type": "passkey"}, "code", 201},
		"add recovery codes": {session, "POST", own + "/factors", servertest.Body{"type": "recovery_codes"}, "code", 201},
		"add an address":     {session, "POST", own + "/credentials", servertest.Body{"credential_type": "email", "credential_value": "new." + user.UserID[24:] + "@evil.example"}, "code", 201},
		"add a user name":    {session, "POST", own + "/credentials", servertest.Body{"credential_type": "username", "credential_value": "m" + user.UserID[24:]}, "code", 201},
		"link an account":    {browser, "POST", own + "/identities", servertest.Body{"code": code}, "factor_code", 201},
		"remove the app":     {session, "DELETE", own + "/factors/" + p.factor, servertest.Body{}, "code", 409}, // at last, when newer ones keep it
		"unlink the account": {session, "DELETE", own + "/identities/" + identity, servertest.Body{}, "code", 200},
	}
}

// methodsOf returns the ids of the ways to sign in of a user.
func (b *methodBank) methodsOf(t *testing.T, userID string) (text string) {
	t.Helper()
	rows, err := b.DB.Query(t.Context(), `SELECT id FROM factors WHERE user_id = $1 UNION SELECT id FROM credentials WHERE user_id = $1
		UNION SELECT id FROM identities WHERE user_id = $1 ORDER BY 1`, userID)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		text += id + "\n"
	}
	return text
}

// A token that was stolen minutes after its sign-in with password and code adds and removes no way to sign in, neither of a member
// of staff nor of the last administrator. The owner does, with the password or the app in the request.
func TestSignInMethods_AreChangedWithAnOlderOne(t *testing.T) {
	for who, pick := range map[string]func(b *methodBank) *servertest.Client{
		"an advisor":             func(b *methodBank) *servertest.Client { return b.User(access.Advisor) },
		"the last administrator": func(b *methodBank) *servertest.Client { return b.Admin() },
	} {
		b := startMethodBank(t)
		user := pick(b)
		app, changes := b.established(t, user)
		password := passwordOf(b.Server, user)
		before := b.methodsOf(t, user.UserID)
		used := app.code()
		changes["remove the app"].client.Do("POST", "/v1/users/"+user.UserID+"/reauthenticate", map[string]any{"code": used}).Expect(t, http.StatusOK)
		for name, c := range changes {
			t.Run(who+" "+name+" is refused", func(t *testing.T) {
				refused := c.client.Do(c.method, c.path, c.body)
				refused.ExpectError(t, http.StatusForbidden, "auth_m.proof_required")
				if !strings.Contains(refused.Body, `"methods":["password","totp","recovery_code","oidc"]`) {
					t.Errorf("the error does not say what the user has: %s", refused.Body)
				}
				for member, wrong := range map[string]any{"oidc_proof": "unknown", "passkey": map[string]any{"id": "x"}} {
					c.client.Do(c.method, c.path, c.body.With(member, wrong)).ExpectError(t, http.StatusBadRequest, "common.invalid_input")
				}
				c.client.Do(c.method, c.path, c.body.With("password", password, "recovery_code", "x")).ExpectError(t, http.StatusBadRequest, "common.invalid_input")
			})
		}
		for _, name := range []string{"add a passkey", "remove the app"} { // more would lock out
			c := changes[name]
			for member, wrong := range map[string]string{"password": "a wrong password 1", c.code: used} {
				answer := c.client.Do(c.method, c.path, c.body.With(member, wrong))
				if answer.Status != http.StatusBadRequest || !strings.Contains(answer.Body, `"`+member+`":`) {
					t.Errorf("%s, %s with a wrong %s: %d %s", who, name, member, answer.Status, answer.Body)
				}
			}
		}
		if after := b.methodsOf(t, user.UserID); after != before {
			t.Errorf("%s: the ways to sign in were\n%sand are\n%s", who, before, after)
		}

		// The owner removes first: newer ones keep the older ones.
		order := slices.SortedFunc(maps.Keys(changes), func(x, y string) int { return strings.Compare(rank(x), rank(y)) })
		for i, name := range order {
			c := changes[name]
			with := c.body.With("password", password)
			if i%2 == 0 {
				with = c.body.With(c.code, app.code())
			}
			if name == "link an account" { // the removal of the other one has ended the code
				with["code"], c.client = b.linkCode(t, c.client, "new-"+user.UserID)
			}
			if answer := c.client.Do(c.method, c.path, with); answer.Status != c.status {
				t.Errorf("the owner, %s, %s: %d %s", who, name, answer.Status, answer.Body)
			}
		}
	}
}

// rank orders changes so that each is possible after those before it.
func rank(change string) string {
	switch change {
	case "unlink the account":
		return "0" + change
	case "remove the app":
		return "2"
	}
	return "1" + change
}
