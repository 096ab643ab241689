package factors_test

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"kontor/server/servertest"
	"kontor/store/testenv"
)

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
	testenv.Need(t, testenv.Full)
	oathtool := testenv.Tool(t, "oathtool")
	b := startBank(t)
	anna := b.person()
	e := anna.begin("totp")
	now := "@" + strconv.FormatInt(b.Clock.Now().Unix(), 10)
	code, err := exec.CommandContext(t.Context(), oathtool, "--totp", "--base32", "--now", now, e.TOTP.Secret).Output()
	if err != nil {
		t.Fatal(err)
	}
	anna.confirmed(e.ID, servertest.Body{"code": strings.TrimSpace(string(code))})
}

func TestEnrol_NumberIsLimited(t *testing.T) {
	b := startBank(t)
	anna := b.person().enrolTOTP()
	anna.Do("POST", anna.path(""), servertest.Body{"password": password, "type": "totp"}).ExpectError(t, 409, "factors.too_many")
	for range 10 {
		anna.enrolPasskey()
	}
	anna.Do("POST", anna.path(""), servertest.Body{"password": password, "type": "passkey"}).ExpectError(t, 409, "factors.too_many")
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
	anna.Do("DELETE", anna.path("/"+anna.deviceID), proof).Expect(t, 200)
	if err := json.Unmarshal(anna.begin("passkey").Passkey.Options, &options); err != nil {
		t.Fatal(err)
	}
	if len(options.ExcludeCredentials) != 9 || options.Attestation != "none" || options.RP.ID != host || options.Selection.ResidentKey != "required" ||
		options.Selection.UserVerification != "required" || !strings.Contains(options.User.Name, "@") || strings.Contains(options.User.ID, anna.UserID) {
		t.Errorf("options are %+v", options)
	}
}
