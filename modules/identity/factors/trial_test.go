package factors_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"kontor/modules/kit/signin"
	"kontor/server/servertest"
)

const (
	proofRequired = "auth_m.proof_required"
	onTrial       = "auth_m.method_on_trial"
	olderKept     = "auth_m.older_method_kept"
	stale         = "auth_m.insufficient_user_authentication"
)

// adding are the requests that add a method of each kind.
func (p *person) adding() map[string]struct {
	path string
	body servertest.Body
} {
	own := "/v1/users/" + p.UserID
	return map[string]struct {
		path string
		body servertest.Body
	}{
		"authenticator app": {own + "/factors", servertest.Body{"type": "totp"}},
		"passkey":           {own + "/factors", servertest.Body{"type": "passkey"}},
		"e-mail address":    {own + "/credentials", servertest.Body{"credential_type": "email", "credential_value": "new." + p.UserID[24:] + "@bank.example"}},
		"user name":         {own + "/credentials", servertest.Body{"credential_type": "username", "credential_value": "new." + p.UserID[24:]}},
	}
}

// With a stolen token alone, no method can be added, not even within ten minutes of the sign-in, and not to the last administrator.
func TestNewMethod_IsProvenByAnOldOne(t *testing.T) {
	b := startBank(t)
	root := &person{Client: b.Admin(), bank: b}
	for name, p := range map[string]*person{"a customer": b.person(), "the last administrator": root} {
		right := password
		if p == root {
			right = servertest.AdminPassword
		}
		for kind, c := range p.adding() {
			what := name + ", " + kind
			refused := p.Do("POST", c.path, c.body)
			refused.ExpectError(t, 403, proofRequired)
			if !strings.Contains(refused.Body, `"methods":["password"]`) {
				t.Errorf("%s: the error does not say what to send: %s", what, refused.Body)
			}
			wrongs := map[string]string{"password": "a wrong password", "oidc_proof": "x"}
			if kind == "passkey" { // five wrong codes lock out
				wrongs["code"], wrongs["recovery_code"] = "123456", "7K2M-9QPT-4XWD"
			}
			for member, wrong := range wrongs {
				if a := p.Do("POST", c.path, c.body.With(member, wrong)); a.Status != 400 || !strings.Contains(a.Body, `"`+member+`"`) {
					t.Errorf("%s with a wrong %s: %d %s", what, member, a.Status, a.Body)
				}
			}
			if a := p.Do("POST", c.path, c.body.With("password", right)); a.Status != 201 {
				t.Errorf("%s with the password: %d %s", what, a.Status, a.Body)
			}
		}
	}
}

// The session that began an enrolment confirms it. Another one proves itself.
func TestNewMethod_IsConfirmedByItsSession(t *testing.T) {
	b := startBank(t)
	anna := b.person()
	other := b.SignIn(anna.UserID, password)
	e := anna.begin("totp")
	confirm := servertest.Body{"code": codeOf(t, e.TOTP.Secret, b.Clock.Now())}
	other.Do("POST", anna.path("/"+e.ID+"/confirm"), confirm).ExpectError(t, 409, "factors.enrolment_over")
	c := anna.adding()["e-mail address"]
	var made struct{ ID, Value string }
	anna.Do("POST", c.path, c.body.With("password", password)).Expect(t, 201).Into(t, &made)
	otp := servertest.Body{"otp": b.sent(t, anna.UserID, made.Value, `\b\d{6}\b`)}
	validate := c.path + "/" + made.ID + "/validate"
	other.Do("PUT", validate, otp).ExpectError(t, 403, proofRequired)
	other.Do("PUT", validate, otp.With("password", "a wrong password")).Expect(t, 400)
	other.Do("PUT", validate, otp.With("password", password)).Expect(t, 200)
	anna.Do("POST", anna.path("/"+e.ID+"/confirm"), confirm).Expect(t, 200)
}

// sent returns the newest text of a pattern in the messages to an address of a user.
func (b *bank) sent(t *testing.T, userID, to, pattern string) string {
	t.Helper()
	var text string
	for _, body := range b.Messages(userID, to) {
		if found := regexp.MustCompile(pattern).FindString(body); found != "" {
			text = found
		}
	}
	if text == "" {
		t.Fatalf("no message to %s has %s", to, pattern)
	}
	return text
}

// address returns the first address of a user.
func (p *person) address(t *testing.T) (value string) {
	t.Helper()
	err := p.bank.DB.QueryRow(t.Context(), `SELECT value FROM credentials WHERE user_id = $1 AND type = 'email' ORDER BY created_at, id LIMIT 1`, p.UserID).Scan(&value)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// established is a user whose authenticator app is not on trial, with a new session of password and code.
func (b *bank) established(t *testing.T) *person {
	t.Helper()
	anna := b.person().enrolTOTP()
	b.Clock.Advance(signin.Trial)
	return anna.again(t)
}

func (p *person) again(t *testing.T) *person {
	t.Helper()
	p.bank.Clock.Advance(time.Minute)
	return p.signedIn(p.bank.second(p.first().Token, servertest.Body{"code": p.code(0)}))
}

func (p *person) alone() *person {
	s := p.bank.withoutPassword()
	return p.signedIn(p.bank.second(s.Token, servertest.Body{"passkey": p.device.get(s.Options, nil)}))
}

// Even with the password, a thief removes nothing with a passkey of their own, on the day of its enrolment.
func TestNewMethod_IsOnTrial(t *testing.T) {
	b := startBank(t)
	anna := b.established(t).enrolPasskey() // with the password
	again := "/v1/users/" + anna.UserID + "/reauthenticate"
	thief := anna.alone() // it may be used at once
	thief.Do("DELETE", anna.path("/"+anna.totpID), proof).ExpectError(t, 401, stale)
	var ways struct{ Methods []string }
	thief.Do("POST", again+"/options", nil).Expect(t, 200).Into(t, &ways)
	if strings.Join(ways.Methods, " ") != "password totp" && strings.Join(ways.Methods, " ") != "password totp recovery_code" {
		t.Errorf("the session may confirm by %v", ways.Methods)
	}
	thief.Do("POST", again, servertest.Body{"password": password}).Expect(t, 200)
	thief.Do("DELETE", anna.path("/"+anna.totpID), proof).ExpectError(t, 401, stale) // the older factor is missing
	thief.Do("POST", anna.path(""), servertest.Body{"type": "passkey", "password": password}).ExpectError(t, 401, stale)

	// The owner has the older factor, and waits.
	owner := anna.again(t)
	owner.Do("DELETE", anna.path("/"+anna.totpID), proof).ExpectError(t, 409, olderKept)
	owner.Do("POST", anna.path(""), servertest.Body{"type": "recovery_codes", "password": password}).ExpectError(t, 409, olderKept)
	if body := owner.Do("GET", anna.path(""), nil).Expect(t, 200).Body; !strings.Contains(body, `"trusted_from":"`) {
		t.Errorf("the list does not show the trial: %s", body)
	}
	b.Clock.Advance(signin.Trial)
	full := anna.alone()
	full.Do("DELETE", anna.path("/"+anna.totpID), nil).ExpectError(t, 403, proofRequired)
	full.Do("DELETE", anna.path("/"+anna.totpID), proof).Expect(t, 200)
}

// The first factor adds to a password at once. Alone it confirms nothing.
func TestNewMethod_FirstFactorAddsToThePassword(t *testing.T) {
	b := startBank(t)
	anna := b.person().enrolTOTP()
	again := "/v1/users/" + anna.UserID + "/reauthenticate"
	p := anna.again(t)
	b.Clock.Advance(11 * time.Minute)
	p.Do("POST", anna.path(""), servertest.Body{"type": "passkey", "password": password}).ExpectError(t, 401, stale)
	refused := p.Do("POST", again, servertest.Body{"code": anna.code(0)})
	refused.ExpectError(t, 403, onTrial)
	if !strings.Contains(refused.Body, `"until"`) {
		t.Errorf("the error does not say until when: %s", refused.Body)
	}
	p.Do("POST", again, servertest.Body{"password": password}).Expect(t, 200)
	b.Clock.Advance(time.Minute)
	p.Do("POST", again, servertest.Body{"code": anna.code(0)}).Expect(t, 200)
	b.Clock.Advance(time.Minute)
	p.Do("POST", anna.path(""), servertest.Body{"type": "passkey", "code": anna.code(0)}).ExpectError(t, 403, onTrial)
	p.Do("POST", anna.path(""), servertest.Body{"type": "passkey", "password": password}).Expect(t, 201)
}

const undoLink = `/undo#[A-Za-z0-9_-]{22}`

// The link in the message to the older address removes the method and ends all sessions, once and for a day.
func TestNewMethod_IsUndone(t *testing.T) {
	b := startBank(t)
	undo := func(token string) servertest.Response {
		return b.Anonymous().Do("POST", "/authenticate/undo", servertest.Body{"token": token})
	}
	anna := b.established(t).enrolPasskey()
	thief := anna.alone()
	token := strings.TrimPrefix(b.sent(t, anna.UserID, anna.address(t), undoLink), "/undo#")
	for _, body := range []string{anna.Do("GET", "/v1/notifications", nil).Expect(t, 200).Body} {
		if strings.Contains(body, token) {
			t.Error("the inbox shows the link")
		}
	}
	wrong := "A" + token[1:]
	if wrong == token {
		wrong = "B" + token[1:]
	}
	for _, bad := range []string{wrong, token + "A", token[:21], "x", strings.Repeat("A", 22)} {
		undo(bad).ExpectError(t, 404, "auth_m.undo_invalid")
	}
	undo("").ExpectError(t, 400, "common.invalid_input")
	thief.Do("GET", "/v1/users/me", nil).Expect(t, 200)
	undo(token).Expect(t, 200)
	thief.Do("GET", "/v1/users/me", nil).ExpectError(t, 401, "common.unauthorized")
	anna.Do("GET", "/v1/users/me", nil).ExpectError(t, 401, "common.unauthorized")
	undo(token).ExpectError(t, 404, "auth_m.undo_invalid")
	owner := anna.again(t)
	if body := owner.Do("GET", anna.path(""), nil).Expect(t, 200).Body; strings.Contains(body, anna.deviceID) || !strings.Contains(body, anna.totpID) {
		t.Errorf("factors after the undo: %s", body)
	}
	// A credential, too. And a link of yesterday is void.
	c := owner.adding()["user name"]
	added := owner.Do("POST", c.path, c.body.With("password", password)).Expect(t, 201)
	undo(strings.TrimPrefix(b.sent(t, anna.UserID, anna.address(t), undoLink), "/undo#")).Expect(t, 200)
	owner = anna.again(t)
	if list := owner.Do("GET", c.path, nil).Expect(t, 200).Body; strings.Contains(list, added.JSON(t)["id"].(string)) {
		t.Errorf("the credential is still there: %s", list)
	}
	owner.Do("POST", c.path, c.body.With("password", password)).Expect(t, 201)
	late := strings.TrimPrefix(b.sent(t, anna.UserID, anna.address(t), undoLink), "/undo#")
	b.Clock.Advance(signin.Trial)
	undo(late).ExpectError(t, 404, "auth_m.undo_invalid")
}

// A recovery removes what is on trial by default, a change of the password on request. Older methods stay.
func TestNewMethod_IsRemovedWithThePassword(t *testing.T) {
	b := startBank(t)
	left := func(p *person) (n int) {
		err := b.DB.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM factors WHERE user_id = $1 AND type <> 'recovery_codes')
			+ (SELECT count(*) FROM credentials WHERE user_id = $1)`, p.UserID).Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	const next = "another long password 43"
	recovery := func(p *person, more servertest.Body) {
		address := p.address(t)
		b.Anonymous().Do("POST", "/v1/users/initiate-recovery", servertest.Body{"credential_value": address}).Expect(t, 200)
		body := servertest.Body{"credential_value": address, "otp": b.sent(t, p.UserID, address, `\b\d{6}\b`), "password": next}
		for name, value := range more {
			body[name] = value
		}
		b.Anonymous().Do("POST", "/v1/users/complete-recovery", body).Expect(t, 200)
	}
	change := func(p *person, more servertest.Body) {
		body := servertest.Body{"old_password": password, "password": next}
		for name, value := range more {
			body[name] = value
		}
		p.Do("PUT", "/v1/users/"+p.UserID+"/password", body).Expect(t, 200)
	}
	set := func(p *person, more servertest.Body) {
		admin := b.SignIn(servertest.AdminEmail, servertest.AdminPassword)
		admin.Do("PUT", "/v1/users/"+p.UserID+"/password", servertest.Body{"password": next}).Expect(t, 200)
	}
	for name, c := range map[string]struct {
		do   func(p *person, more servertest.Body)
		more servertest.Body
		left int // of the app, the first address, the passkey and the user name
	}{
		"recovery":                     {recovery, nil, 2},
		"recovery that keeps them":     {recovery, servertest.Body{"remove_new": false}, 4},
		"set by an administrator":      {set, nil, 2},
		"new password":                 {change, nil, 4},
		"new password that drops them": {change, servertest.Body{"remove_new": true}, 2},
	} {
		anna := b.established(t)
		add := anna.adding()["user name"]
		anna.Do("POST", add.path, add.body.With("password", password)).Expect(t, 201)
		anna.enrolPasskey()
		c.do(anna, c.more)
		if n := left(anna); n != c.left {
			t.Errorf("%s: %d methods are left, want %d", name, n, c.left)
		}
	}
}

// An older passkey proves a change once, by an answer for this session.
func TestNewMethod_IsProvenByAPasskey(t *testing.T) {
	b := startBank(t)
	anna := b.person().enrolPasskey()
	b.Clock.Advance(signin.Trial)
	first, other := anna.alone(), anna.alone()
	ways := func(p *person) (s step) {
		p.Do("POST", "/v1/users/"+p.UserID+"/reauthenticate/options", nil).Expect(t, 200).Into(t, &s)
		return s
	}
	s := ways(first)
	body := servertest.Body{"type": "totp", "passkey": anna.device.get(s.Options, nil), "token": s.Token}
	other.Do("POST", anna.path(""), body).ExpectError(t, 400, "common.invalid_input")
	s = ways(first)
	body = servertest.Body{"type": "totp", "passkey": anna.device.get(s.Options, nil), "token": s.Token}
	first.Do("POST", anna.path(""), body).Expect(t, 201)
	first.Do("POST", anna.path(""), body).ExpectError(t, 400, "common.invalid_input")
}
