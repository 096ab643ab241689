package factors_test

import (
	"strings"
	"testing"

	"kontor/server/servertest"
)

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
	anna.Do("DELETE", anna.path("/"+anna.totpID), proof).Expect(t, 200)
	if n := anna.count(""); n != 2 {
		t.Errorf("%d factors, want the passkey and the codes", n)
	}
	other.Do("GET", "/v1/users/me", nil).ExpectError(t, 401, "common.unauthorized") // perhaps on the lost device
	anna.Do("DELETE", anna.path("/"+anna.deviceID), proof).Expect(t, 200)
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
	first := client.Do("POST", anna.path(""), servertest.Body{"password": password, "type": "recovery_codes"}).Expect(t, 201)
	again := client.Do("POST", anna.path(""), servertest.Body{"password": password, "type": "recovery_codes"}).Expect(t, 201)
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
		anna.Do("POST", anna.path(""), servertest.Body{"password": password, "type": "recovery_codes"}).Expect(t, 201)
		anna.Do("DELETE", anna.path("/"+anna.deviceID), proof).Expect(t, 200)
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
