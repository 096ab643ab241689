package factors_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"kontor/server/access"
	"kontor/server/servertest"
)

const (
	invalidFactor = "auth_m.invalid_factor"
	expired       = "auth_m.challenge_expired"
	invalidInput  = "common.invalid_input"
	over          = "factors.enrolment_over"
	noAccess      = "common.rbac_no_rec_access"
)

// Requests about factors that their caller must not make.
func TestHostile_Requests(t *testing.T) {
	b := startBank(t)
	anna, beat, advisor := b.person().enrolPasskey(), b.person(), b.person(access.Advisor)
	admin := b.Admin()
	e := beat.begin("passkey")
	d := newDevice(t, e.Passkey.Options)
	right := func() servertest.Body {
		return servertest.Body{"token": e.Passkey.Token, "passkey": d.create(e.Passkey.Options)}
	}
	other := b.SignIn(beat.UserID, password) // another session of the same user
	pendingApp := anna.begin("totp")
	foreign := anna.path("/" + anna.deviceID)
	before := b.state()
	servertest.Run(t, b.Server, []servertest.Scenario{
		{Name: "another user lists them", As: beat.Client, Method: "GET", Path: anna.path(""), Status: 403, Contains: []string{noAccess}},
		{Name: "an advisor lists them", As: advisor.Client, Method: "GET", Path: anna.path(""), Status: 403, Contains: []string{noAccess}},
		{Name: "another user enrols one", As: beat.Client, Method: "POST", Path: anna.path(""), Body: servertest.Body{"password": password, "type": "totp"}, Status: 403, Contains: []string{noAccess}},
		{Name: "an administrator enrols one", As: admin, Method: "POST", Path: anna.path(""), Body: servertest.Body{"password": password, "type": "totp"}, Status: 403, Contains: []string{noAccess}, Excludes: []string{"secret"}},
		{Name: "an administrator replaces the recovery codes", As: admin, Method: "POST", Path: anna.path(""), Body: servertest.Body{"password": password, "type": "recovery_codes"}, Status: 403, Contains: []string{noAccess}},
		{Name: "another user confirms one", As: anna.Client, Method: "POST", Path: beat.path("/" + e.ID + "/confirm"), Body: right(), Status: 403, Contains: []string{noAccess}},
		{Name: "an administrator confirms one", As: admin, Method: "POST", Path: beat.path("/" + e.ID + "/confirm"), Body: right(), Status: 403, Contains: []string{noAccess}},
		{Name: "another session confirms one", As: other, Method: "POST", Path: beat.path("/" + e.ID + "/confirm"), Body: right(), Status: 409, Contains: []string{over}},
		{Name: "another user confirms one below their own path", As: anna.Client, Method: "POST", Path: anna.path("/" + e.ID + "/confirm"), Body: right(), Status: 404, Contains: []string{"factors.factor_not_found"}},
		{Name: "another user renames one", As: beat.Client, Method: "PATCH", Path: foreign, Body: servertest.Body{"name": "mine"}, Status: 403, Contains: []string{noAccess}},
		{Name: "an administrator renames one", As: admin, Method: "PATCH", Path: foreign, Body: servertest.Body{"name": "mine"}, Status: 403, Contains: []string{noAccess}},
		{Name: "another user removes one", As: beat.Client, Method: "DELETE", Path: foreign, Status: 403, Contains: []string{noAccess}},
		{Name: "an advisor removes one", As: advisor.Client, Method: "DELETE", Path: foreign, Status: 403, Contains: []string{noAccess}},
		{Name: "an unknown type", As: anna.Client, Method: "POST", Path: anna.path(""), Body: servertest.Body{"password": password, "type": "sms"}, Status: 400, Contains: []string{`"type"`}},
		{Name: "no type", As: anna.Client, Method: "POST", Path: anna.path(""), Body: servertest.Body{}, Status: 400, Contains: []string{`"type"`}},
		{Name: "a name of two lines", As: anna.Client, Method: "POST", Path: anna.path(""), Body: servertest.Body{"password": password, "type": "totp", "name": "a\nb"}, Status: 400, Contains: []string{`"name"`}},
		{Name: "a name of 101 characters", As: anna.Client, Method: "POST", Path: anna.path(""), Body: servertest.Body{"password": password, "type": "totp", "name": strings.Repeat("ä", 101)}, Status: 400, Contains: []string{`"name"`}},
		{Name: "a name that is taken", As: anna.Client, Method: "POST", Path: anna.path(""), Body: servertest.Body{"password": password, "type": "passkey", "name": "PASSKEY"}, Status: 409, Contains: []string{"factors.name_exists"}},
		{Name: "an empty new name", As: anna.Client, Method: "PATCH", Path: foreign, Body: servertest.Body{"name": " "}, Status: 400, Contains: []string{`"name"`}},
		{Name: "recovery codes without a factor", As: beat.Client, Method: "POST", Path: beat.path(""), Body: servertest.Body{"password": password, "type": "recovery_codes"}, Status: 409, Contains: []string{"factors.no_second_factor"}, Excludes: []string{"recovery_codes\":["}},
		{Name: "an app is confirmed without a code", As: anna.Client, Method: "POST", Path: anna.path("/" + pendingApp.ID + "/confirm"), Body: servertest.Body{}, Status: 400, Contains: []string{`"code"`}},
		{Name: "an app is confirmed with a passkey", As: anna.Client, Method: "POST", Path: anna.path("/" + pendingApp.ID + "/confirm"), Body: right(), Status: 400, Contains: []string{`"code"`}},
		{Name: "a passkey is confirmed with a code", As: beat.Client, Method: "POST", Path: beat.path("/" + e.ID + "/confirm"), Body: servertest.Body{"code": "123456"}, Status: 400, Contains: []string{`"passkey"`, `"token"`}},
		{Name: "a passkey is confirmed with a text", As: beat.Client, Method: "POST", Path: beat.path("/" + e.ID + "/confirm"), Body: right().With("passkey", "x"), Status: 400, Contains: []string{`"passkey"`}},
		{Name: "an active factor is confirmed again", As: anna.Client, Method: "POST", Path: foreign + "/confirm", Body: right(), Status: 409, Contains: []string{"factors.already_active"}},
		{Name: "a foreign token", As: anna.Client, Method: "POST", Path: anna.path("/" + anna.begin("passkey").ID + "/confirm"), Body: right(), Status: 400, Contains: []string{`"token"`}},
		{Name: "the API key lists them", As: b.Keyed(), Method: "GET", Path: anna.path(""), Status: 401},
		{Name: "an anonymous client removes one", Method: "DELETE", Path: foreign, Status: 401},
	})
	if after := b.state(); after != before {
		t.Errorf("the state changed from\n%s\nto\n%s", before, after)
	}
}

// Every change needs a recent authentication; without a factor, any, and with one, by the factor.
func TestHostile_StaleSessions(t *testing.T) {
	b := startBank(t)
	anna := b.person().enrolPasskey()
	app := anna.begin("totp")
	b.Clock.Advance(10 * time.Minute)
	before := b.state()
	const stale = "auth_m.insufficient_user_authentication"
	attacks := []servertest.Scenario{
		{Name: "enrol", Method: "POST", Path: anna.path(""), Body: servertest.Body{"password": password, "type": "totp"}},
		{Name: "confirm", Method: "POST", Path: anna.path("/" + app.ID + "/confirm"), Body: servertest.Body{"code": codeOf(t, app.TOTP.Secret, b.Clock.Now())}},
		{Name: "replace the recovery codes", Method: "POST", Path: anna.path(""), Body: servertest.Body{"password": password, "type": "recovery_codes"}},
		{Name: "rename", Method: "PATCH", Path: anna.path("/" + anna.deviceID), Body: servertest.Body{"name": "mine"}},
		{Name: "remove", Method: "DELETE", Path: anna.path("/" + anna.deviceID), Body: proof},
	}
	for _, password := range []bool{false, true} {
		if password { // a password makes the session fresh, which is not enough for a user with a factor
			anna.Do("POST", "/v1/users/"+anna.UserID+"/reauthenticate", servertest.Body{"password": servertest.Password}).Expect(t, 200)
		}
		for i, attack := range attacks {
			attack.As, attack.Status, attack.Contains = anna.Client, 401, []string{stale, `"acr_values":["aal2"]`}
			attack.Name = fmt.Sprintf("%d %s, password %t", i, attack.Name, password)
			servertest.Run(t, b.Server, []servertest.Scenario{attack})
		}
	}
	if after := b.state(); after != before {
		t.Errorf("the state changed from\n%s\nto\n%s", before, after)
	}
}
