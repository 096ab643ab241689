package factors_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/server/settings"
)

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
		answer := anna.Do("POST", anna.path(""), servertest.Body{"password": password, "type": "passkey"})
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
