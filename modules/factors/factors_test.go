package factors_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"kontor/modules/kit/factor"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/servertest"
	"kontor/server/settings"
	"kontor/store"
)

// session is a session as the API shows it.
type session struct {
	ID  string
	ACR string
	AMR []string
}

func (p *person) sessions() []session {
	p.bank.t.Helper()
	var page struct{ Data []session }
	p.Do("GET", "/v1/users/"+p.UserID+"/sessions", nil).Expect(p.bank.t, 200).Into(p.bank.t, &page)
	return page.Data
}

func TestEnrol_AppIsPendingUntilItsCodeIsRight(t *testing.T) {
	b := startBank(t)
	anna := b.person()
	second := b.SignIn(anna.UserID, password)
	e := anna.begin("totp")
	if e.Status != "pending" || e.Name != "Authenticator app" || len(e.TOTP.Secret) != 32 || e.Codes != nil ||
		!strings.HasPrefix(e.TOTP.URI, "otpauth://totp/Kontor:user") || !strings.HasPrefix(e.TOTP.QRSVG, "<svg ") {
		t.Fatalf("enrolled: %+v", e)
	}
	b.SignIn(anna.UserID, password) // a pending factor asks for nothing
	anna.Do("POST", anna.path("/"+e.ID+"/confirm"), servertest.Body{"code": "000000"}).ExpectError(t, 400, "common.invalid_input")

	anna.secret = e.TOTP.Secret
	var done enrolled
	answer := anna.Do("POST", anna.path("/"+e.ID+"/confirm"), servertest.Body{"code": anna.code(0)}).Expect(t, 200)
	answer.Into(t, &done)
	if done.Status != "active" || len(done.Codes) != 10 || strings.Contains(answer.Body, anna.secret) {
		t.Errorf("confirmed: %s", answer.Body)
	}
	second.Do("GET", "/v1/users/me", nil).ExpectError(t, 401, "common.unauthorized") // opened with a password alone
	if open := anna.sessions(); len(open) != 1 || open[0].ACR != "aal2" || !slices.Equal(open[0].AMR, []string{"pwd", "otp", "mfa"}) {
		t.Errorf("the session is %+v, want one of two factors", open)
	}
	listed := anna.Do("GET", anna.path(""), nil).Expect(t, 200).Body
	for _, secret := range append(done.Codes, anna.secret, strings.ReplaceAll(done.Codes[0], "-", "")) {
		if strings.Contains(listed, secret) {
			t.Errorf("the list shows the secret %s", secret)
		}
	}
	if !strings.Contains(listed, `"remaining":10`) || strings.Count(listed, `"remaining"`) != 1 {
		t.Errorf("the list is %s, want 10 remaining codes", listed)
	}
}

func TestEnrol_SecretsAreNotStoredInTheClear(t *testing.T) {
	b := startBank(t)
	anna := b.person().enrolTOTP()
	var sealed, hashes string
	if err := b.DB.QueryRow(t.Context(), `SELECT secret_sealed FROM factors WHERE id = $1`, anna.totpID).Scan(&sealed); err != nil {
		t.Fatal(err)
	}
	if err := b.DB.QueryRow(t.Context(), `SELECT string_agg(code_hash, ' ') FROM recovery_codes`).Scan(&hashes); err != nil {
		t.Fatal(err)
	}
	if sealed == "" || strings.Contains(sealed, anna.secret) || len(strings.Fields(hashes)) != 10 {
		t.Errorf("stored: %q, %q", sealed, hashes)
	}
	for _, code := range anna.codes {
		if strings.Contains(hashes, strings.ReplaceAll(code, "-", "")) {
			t.Errorf("the recovery code %s is stored", code)
		}
	}
}

// An independent program computes the codes of an enrolment.
func TestEnrol_OathtoolConfirms(t *testing.T) {
	if _, err := exec.LookPath("oathtool"); err != nil {
		t.Skip("oathtool is not installed: apt-get install oathtool")
	}
	b := startBank(t)
	anna := b.person()
	e := anna.begin("totp")
	now := "@" + strconv.FormatInt(b.Clock.Now().Unix(), 10)
	code, err := exec.CommandContext(t.Context(), "oathtool", "--totp", "--base32", "--now", now, e.TOTP.Secret).Output()
	if err != nil {
		t.Fatal(err)
	}
	anna.confirmed(e.ID, servertest.Body{"code": strings.TrimSpace(string(code))})
}

func TestSignIn_EachMethod(t *testing.T) {
	b := startBank(t)
	anna := b.person().enrolTOTP().enrolPasskey()
	first := anna.first()
	if !slices.Equal(first.Methods, []string{"passkey", "totp", "recovery_code"}) {
		t.Errorf("methods are %v", first.Methods)
	}
	for _, c := range []struct {
		name   string
		begin  func() step
		answer func(s step) servertest.Body
		amr    []string
	}{
		{"app", anna.first, func(step) servertest.Body { return servertest.Body{"code": anna.code(0)} }, []string{"pwd", "otp", "mfa"}},
		{"passkey", anna.first, func(s step) servertest.Body {
			return servertest.Body{"passkey": anna.device.get(s.Passkey.Options, nil)}
		}, []string{"pwd", "hwk", "user", "mfa"}},
		{"recovery code in lower case without hyphens", anna.first, func(step) servertest.Body {
			return servertest.Body{"recovery_code": strings.ToLower(strings.ReplaceAll(anna.codes[3], "-", ""))}
		}, []string{"pwd", "otp", "mfa"}},
		{"passkey without a password", b.withoutPassword, func(s step) servertest.Body {
			return servertest.Body{"passkey": anna.device.get(s.Options, nil)}
		}, []string{"hwk", "user", "mfa"}},
	} {
		s := c.begin()
		p := anna.signedIn(b.second(s.Token, c.answer(s)))
		open := p.sessions()
		var current session
		for _, s := range open {
			if slices.Equal(s.AMR, c.amr) {
				current = s
			}
		}
		if current.ACR != "aal2" || p.UserID != anna.UserID {
			t.Errorf("%s: the sessions are %+v, want one with %v", c.name, open, c.amr)
		}
	}
}

func TestSignIn_SynchronisedPasskeyIsAKeyInSoftware(t *testing.T) {
	b := startBank(t)
	anna := b.person()
	e := anna.begin("passkey")
	anna.device = newDevice(t, e.Passkey.Options)
	anna.device.auth.Options.BackupEligible, anna.device.auth.Options.BackupState = true, true
	anna.confirmed(e.ID, servertest.Body{"token": e.Passkey.Token, "passkey": anna.device.create(e.Passkey.Options)})
	alone := b.withoutPassword()
	// Such passkeys have no counter.
	answer := anna.device.get(alone.Options, func(a *assertion) { a.flags |= backupEligible; a.counter = 0 })
	p := anna.signedIn(b.second(alone.Token, servertest.Body{"passkey": answer}))
	if open := p.sessions(); !slices.ContainsFunc(open, func(s session) bool { return slices.Equal(s.AMR, []string{"swk", "user", "mfa"}) }) {
		t.Errorf("the sessions are %+v, want one with swk", open)
	}
	var backedUp bool
	if err := b.DB.QueryRow(t.Context(), `SELECT backed_up FROM factors WHERE id = $1`, e.ID).Scan(&backedUp); err != nil || backedUp {
		t.Errorf("the passkey is backed up: %t, %v; its last answer says it is not", backedUp, err)
	}
}

// Of many equal answers at the same time, one is accepted.
func TestVerify_AnswersCountOnce(t *testing.T) {
	b := startBank(t)
	anna := b.person().enrolTOTP().enrolPasskey()
	const parallel = 20
	for name, answer := range map[string]func() servertest.Body{
		"code":          func() servertest.Body { return servertest.Body{"code": anna.code(0)} },
		"recovery code": func() servertest.Body { return servertest.Body{"recovery_code": anna.codes[5]} },
	} {
		steps := make([]step, parallel)
		for i := range steps {
			steps[i] = anna.first()
		}
		same := answer()
		accepted := make([]int, parallel)
		var group sync.WaitGroup
		for i := range steps {
			group.Go(func() {
				r, err := b.Anonymous().Try("POST", "/authenticate/factor", same.With("token", steps[i].Token))
				if err == nil {
					accepted[i] = r.Status
				}
			})
		}
		group.Wait()
		n := 0
		for _, status := range accepted {
			switch status {
			case 200:
				n++
			case 401, 429, 503:
			default:
				t.Errorf("%s: status %d", name, status)
			}
		}
		if n != 1 {
			t.Errorf("%s: accepted %d times, want once: %v", name, n, accepted)
		}
		b.Clock.Advance(time.Hour)
	}
}

func TestConfirm_HasFiveAttemptsAndTenMinutes(t *testing.T) {
	b := startBank(t)
	anna := b.person()
	e := anna.begin("totp")
	anna.secret = e.TOTP.Secret
	for range 5 {
		anna.Do("POST", anna.path("/"+e.ID+"/confirm"), servertest.Body{"code": "abcdef"}).ExpectError(t, 400, "common.invalid_input")
	}
	anna.Do("POST", anna.path("/"+e.ID+"/confirm"), servertest.Body{"code": anna.code(0)}).ExpectError(t, 409, "factors.enrolment_over")

	e = anna.begin("totp") // replaces the first one
	anna.secret = e.TOTP.Secret
	b.Clock.Advance(9 * time.Minute)
	anna.Do("POST", "/v1/users/"+anna.UserID+"/reauthenticate", servertest.Body{"password": password}).Expect(t, 200)
	if n := anna.count(""); n != 1 {
		t.Errorf("%d factors, want the pending one", n)
	}
	b.Clock.Advance(2 * time.Minute)
	anna.Do("POST", anna.path("/"+e.ID+"/confirm"), servertest.Body{"code": anna.code(0)}).ExpectError(t, 409, "factors.enrolment_over")
	if n := anna.count(""); n != 0 {
		t.Errorf("%d factors, want none: the enrolment has expired", n)
	}
	if err := b.Factors.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	anna.Do("POST", anna.path("/"+e.ID+"/confirm"), servertest.Body{"code": anna.code(0)}).ExpectError(t, 404, "factors.factor_not_found")
}

// Of many attempts at the same time, five are evaluated.
func TestConfirm_ParallelAttemptsAreCounted(t *testing.T) {
	b := startBank(t)
	anna := b.person()
	e := anna.begin("totp")
	const parallel = 30
	statuses := make([]int, parallel)
	var group sync.WaitGroup
	for i := range statuses {
		group.Go(func() {
			r, err := anna.Try("POST", anna.path("/"+e.ID+"/confirm"), servertest.Body{"code": "abcdef"})
			if err == nil {
				statuses[i] = r.Status
			}
		})
	}
	group.Wait()
	slices.Sort(statuses)
	if evaluated := slices.Index(statuses, 409); evaluated != 5 || statuses[parallel-1] != 409 {
		t.Errorf("%d attempts were evaluated, want 5: %v", evaluated, statuses)
	}
}

func (p *person) count(search string) int {
	p.bank.t.Helper()
	var page struct{ Total int }
	p.Do("GET", p.path(search), nil).Expect(p.bank.t, 200).Into(p.bank.t, &page)
	return page.Total
}

func TestEnrol_NumberIsLimited(t *testing.T) {
	b := startBank(t)
	anna := b.person().enrolTOTP()
	anna.Do("POST", anna.path(""), servertest.Body{"type": "totp"}).ExpectError(t, 409, "factors.too_many")
	for range 10 {
		anna.enrolPasskey()
	}
	anna.Do("POST", anna.path(""), servertest.Body{"type": "passkey"}).ExpectError(t, 409, "factors.too_many")
	var page struct{ Data []struct{ Name string } }
	anna.Do("GET", anna.path("?search.type=passkey&sort=created_at&limit=20"), nil).Expect(t, 200).Into(t, &page)
	if len(page.Data) != 10 || page.Data[0].Name != "Passkey" || page.Data[9].Name != "Passkey 10" {
		t.Errorf("names are %+v", page.Data)
	}
	var options struct {
		ExcludeCredentials []struct{ ID string }
		Attestation        string
		RP                 struct{ ID, Name string }
		User               struct{ ID, Name, DisplayName string }
		Selection          struct{ ResidentKey, UserVerification string } `json:"authenticatorSelection"`
	}
	anna.Do("DELETE", anna.path("/"+anna.deviceID), nil).Expect(t, 200)
	if err := json.Unmarshal(anna.begin("passkey").Passkey.Options, &options); err != nil {
		t.Fatal(err)
	}
	if len(options.ExcludeCredentials) != 9 || options.Attestation != "none" || options.RP.ID != host || options.Selection.ResidentKey != "required" ||
		options.Selection.UserVerification != "required" || !strings.Contains(options.User.Name, "@") || strings.Contains(options.User.ID, anna.UserID) {
		t.Errorf("options are %+v", options)
	}
}

func TestRename(t *testing.T) {
	b := startBank(t)
	anna := b.person().enrolPasskey()
	path := anna.path("/" + anna.deviceID)
	renamed := anna.Do("PATCH", path, servertest.Body{"name": "Blue key"}).Expect(t, 200)
	if !strings.Contains(renamed.Body, `"Blue key"`) {
		t.Error(renamed.Body)
	}
	again := anna.Do("PATCH", path, servertest.Body{"name": "Blue key"}).Expect(t, 200)
	if again.Header.Get("ETag") != renamed.Header.Get("ETag") {
		t.Errorf("the same name made a new version: %s, %s", renamed.Header.Get("ETag"), again.Header.Get("ETag"))
	}
	anna.With("If-Match", `"v1"`).Do("PATCH", path, servertest.Body{"name": "Red key"}).ExpectError(t, 412, "common.precondition_failed")
	anna.With("If-Match", `"v1"`).Do("DELETE", path, nil).ExpectError(t, 412, "common.precondition_failed")
	anna.Do("PATCH", path, servertest.Body{"name": "recovery CODES"}).ExpectError(t, 409, "factors.name_exists")
}

func TestRemove_LastFactorEndsRecoveryCodes(t *testing.T) {
	b := startBank(t)
	anna := b.person().enrolPasskey().enrolTOTP()
	other := anna.signedIn(b.second(anna.first().Token, servertest.Body{"code": anna.code(0)}))
	anna.Do("DELETE", anna.path("/"+anna.totpID), nil).Expect(t, 200)
	if n := anna.count(""); n != 2 {
		t.Errorf("%d factors, want the passkey and the codes", n)
	}
	other.Do("GET", "/v1/users/me", nil).ExpectError(t, 401, "common.unauthorized") // perhaps on the lost device
	anna.Do("DELETE", anna.path("/"+anna.deviceID), nil).Expect(t, 200)
	if n := anna.count(""); n != 0 {
		t.Errorf("%d factors, want none", n)
	}
	b.SignIn(anna.UserID, password) // no further step
}

func TestRemove_ByAnAdministratorEndsAllSessions(t *testing.T) {
	b := startBank(t)
	anna := b.person().enrolPasskey()
	admin := b.Admin()
	admin.Do("DELETE", anna.path("/"+anna.deviceID), nil).Expect(t, 200)
	anna.Do("GET", "/v1/users/me", nil).ExpectError(t, 401, "common.unauthorized")
	admin.Do("DELETE", anna.path("/"+anna.deviceID), nil).ExpectError(t, 404, "factors.factor_not_found")
}

func TestRecoveryCodes_AreReplaced(t *testing.T) {
	b := startBank(t)
	anna := b.person().enrolTOTP()
	old := anna.codes
	client := anna.With("Idempotency-Key", "codes")
	first := client.Do("POST", anna.path(""), servertest.Body{"type": "recovery_codes"}).Expect(t, 201)
	again := client.Do("POST", anna.path(""), servertest.Body{"type": "recovery_codes"}).Expect(t, 201)
	var e enrolled
	if first.Into(t, &e); len(e.Codes) != 10 || *e.Remaining != 10 || again.Body != first.Body {
		t.Errorf("got %s and %s", first.Body, again.Body)
	}
	b.second(anna.first().Token, servertest.Body{"recovery_code": old[0]}).ExpectError(t, 401, "auth_m.invalid_factor")
	b.second(anna.first().Token, servertest.Body{"recovery_code": e.Codes[0]}).Expect(t, 200)
	if n := anna.count("?search.type=recovery_codes"); n != 1 {
		t.Errorf("%d sets of recovery codes, want 1", n)
	}
}

func TestNotifications_NameTheChange(t *testing.T) {
	for lang, want := range map[string]string{"en": "A passkey was added to your account", "de": "Ihrem Benutzerkonto wurde ein Passkey hinzugefügt",
		"fr": "Une clé d’accès a été ajoutée à votre compte utilisateur", "it": "Al Suo conto utente è stata aggiunta una passkey"} {
		b := startBank(t)
		anna := b.person()
		anna.Do("PATCH", "/v1/users/"+anna.UserID, servertest.Body{"language": lang}).Expect(t, 200)
		anna.enrolPasskey()
		anna.Do("PATCH", anna.path("/"+anna.deviceID), servertest.Body{"name": "phishing.example"}).Expect(t, 200)
		b.second(anna.first().Token, servertest.Body{"recovery_code": anna.codes[0]}).Expect(t, 200)
		anna.Do("POST", anna.path(""), servertest.Body{"type": "recovery_codes"}).Expect(t, 201)
		anna.Do("DELETE", anna.path("/"+anna.deviceID), nil).Expect(t, 200)
		inbox := b.Admin().Do("GET", "/v1/notifications?search.event=factor_changed&search.user_id="+anna.UserID, nil).Expect(t, 200).Body
		if n := strings.Count(inbox, `"event":"factor_changed"`); n != 4 {
			t.Errorf("%s: %d notifications, want 4 (added, code used, codes replaced, removed): %s", lang, n, inbox)
		}
		mails := b.Admin().Do("GET", "/v1/notifications/deliveries?search.channel=email&search.user_id="+anna.UserID, nil).Expect(t, 200).Body
		if n := strings.Count(mails, want); n < 1 {
			t.Errorf("%s: the e-mails lack %q: %s", lang, want, mails)
		}
		if strings.Contains(mails+inbox, "phishing") {
			t.Errorf("%s: a message carries a name that a user chose", lang)
		}
	}
}

func TestReset_ByTheOperator(t *testing.T) {
	b := startBank(t)
	anna, beat := b.person().enrolPasskey().enrolTOTP(), b.person().enrolTOTP()
	if n, err := b.Factors.Reset(t.Context(), anna.UserID); n != 3 || err != nil {
		t.Fatalf("removed %d, %v", n, err)
	}
	if n, err := b.Factors.Reset(t.Context(), anna.UserID); n != 0 || err != nil {
		t.Errorf("removed %d again, %v", n, err)
	}
	anna.Do("GET", "/v1/users/me", nil).ExpectError(t, 401, "common.unauthorized")
	b.SignIn(anna.UserID, password)
	beat.Do("GET", "/v1/users/me", nil).Expect(t, 200)
	inbox := b.Admin().Do("GET", "/v1/notifications?search.event=factor_changed&search.user_id="+anna.UserID, nil).Expect(t, 200).Body
	if !strings.Contains(inbox, "The bank removed all second factors") {
		t.Errorf("the user was not notified: %s", inbox)
	}
}

// Where browsers offer no passkeys, Kontor does not either, and a passkey from before is no reason to be content with a
// password.
func TestPasskeys_NeedAHostNameAndTLS(t *testing.T) {
	for base, works := range map[string]bool{
		"https://bank.example": true, "https://bank.example:8443/kontor": true, "http://localhost:8080": true, "http://kontor.localhost": true,
		"": false, "http://bank.example": false, "https://192.0.2.1": false, "https://[2001:db8::1]:8443": false, "http://127.0.0.1:8080": false,
	} {
		b := startBank(t, func(s *settings.Settings) { s.Server.BaseURL = base })
		var methods struct{ Passkey bool }
		b.Anonymous().Do("GET", "/authenticate/methods", nil).Expect(t, 200).Into(t, &methods)
		anna := b.person()
		answer := anna.Do("POST", anna.path(""), servertest.Body{"type": "passkey"})
		if works && answer.Status != http.StatusCreated || !works && !strings.Contains(answer.Body, "factors.passkeys_unavailable") || methods.Passkey != works {
			t.Errorf("%q: %d %s, methods %+v", base, answer.Status, answer.Body, methods)
		}
		if works {
			continue
		}
		servertest.Exec(t, b.DB, `INSERT INTO factors (id, user_id, type, name, name_key, status, created_at, created_by)
			VALUES ('01a1fba6-a539-7476-8ef2-2ae6188b879c', $1, 'passkey', 'p', 'p', 'active', 0, $1)`, anna.UserID)
		b.SkipRecordCheck()
		if first := anna.first(); slices.Contains(first.Methods, "passkey") || len(first.Methods) == 0 {
			t.Errorf("%q: methods of a user with a passkey are %v", base, first.Methods)
		}
	}
}

func TestInUse(t *testing.T) {
	b := startBank(t)
	staff := []string{access.Administrator, access.Advisor}
	inUse := func(roles []string) bool {
		t.Helper()
		used, err := b.Factors.InUse(t.Context(), b.DB, roles)
		if err != nil {
			t.Fatal(err)
		}
		return used
	}
	b.person(access.Customer).enrolTOTP()
	b.person(access.Advisor).begin("totp")
	if inUse(staff) || inUse(nil) || !inUse([]string{access.Customer}) {
		t.Error("only a customer has an active factor")
	}
	b.person(access.Advisor).enrolTOTP()
	if !inUse(staff) || !inUse([]string{access.Advisor}) || inUse([]string{access.Administrator}) {
		t.Error("an advisor has an active factor, too")
	}
}

// A user who is disabled between the two steps is not signed in: neither the token nor the factors work.
func TestVerify_DisabledBetweenTheSteps(t *testing.T) {
	b := startBank(t)
	anna := b.person().enrolTOTP()
	first := anna.first()
	accepted, err := b.Factors.Verify(t.Context(), anna.UserID, nil, factor.Answer{Code: anna.code(0)})
	if err != nil {
		t.Fatal(err)
	}
	b.Admin().Do("PATCH", "/v1/users/"+anna.UserID, servertest.Body{"status": "disabled"}).Expect(t, 200)
	if r := b.second(first.Token, servertest.Body{"code": anna.code(0)}); r.Status != 401 {
		t.Errorf("got %d %s, want 401", r.Status, r.Body)
	}
	if err := b.DB.InTx(t.Context(), func(tx *store.Tx) error { return accepted.Use(t.Context(), tx) }); !errors.Is(err, apierr.InvalidFactor) {
		t.Errorf("a verified answer of a disabled user: %v, want InvalidFactor", err)
	}
}

func TestCounter_GoingBackIsReported(t *testing.T) {
	b := startBank(t)
	anna := b.person().enrolPasskey()
	alone := b.withoutPassword()
	b.second(alone.Token, servertest.Body{"passkey": anna.device.get(alone.Options, func(a *assertion) { a.counter = 0 })}).Expect(t, 200)
	for i, counter := range []uint32{5, 5, 4} {
		alone := b.withoutPassword()
		answer := b.second(alone.Token, servertest.Body{"passkey": anna.device.get(alone.Options, func(a *assertion) { a.counter = counter })})
		if want := map[bool]int{true: 200, false: 401}[i == 0]; answer.Status != want {
			t.Errorf("counter %d: got %d, want %d", counter, answer.Status, want)
		}
	}
	if err := b.Audit.WriteEvents(t.Context()); err != nil {
		t.Fatal(err)
	}
	events := b.Admin().Do("GET", "/v1/audit?search.action=factors.counter_went_back", nil).Expect(t, 200).Body
	if !strings.Contains(events, anna.deviceID) || !strings.Contains(events, `"count":2`) {
		t.Errorf("want two events about the passkey: %s", events)
	}
}
