package commands_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"
)

func TestUserFactorsCommands(t *testing.T) {
	t.Parallel()
	in := newServedData(t)
	const login, password = "anna@kontor.example", annasPassword
	expectSuccess(t, run(nil, password+"\n", "user", "create", login, in), "status active")
	expectSuccess(t, run(nil, "", "user", "factors", login, in), login+" has no second factor\n")
	expectSuccess(t, run(nil, "", "user", "reset-factors", login, in), "nothing was changed\n")
	expectFailure(t, run(nil, "", "user", "factors", "nobody@kontor.example", in), "User not found")
	expectFailure(t, run(nil, "", "user", "reset-factors", "nobody@kontor.example", in), "User not found")
	expectFailure(t, run(nil, "", "user", "reset-factors", in), "<login>")

	p := start(t, nil, in)
	expectFailure(t, run(nil, "", "user", "reset-factors", login, in), "in use")
	token := p.signIn(t, login, password)
	id := enrolApp(t, p, token)
	if p.canSignIn(t, login, password) {
		t.Fatal("a password alone opens a session of a user with a second factor")
	}
	if code := p.stop(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	listed := run(nil, "", "user", "factors", login, in)
	expectSuccess(t, listed, id+"  totp            active   created ")
	expectSuccess(t, listed, "never used  \"Authenticator app\"\n")
	expectSuccess(t, listed, "\"Recovery codes\"  10 left\n")
	expectSuccess(t, run(nil, "", "user", "reset-factors", login, in), "no second factor any more; all their sessions were ended\n")
	expectSuccess(t, run(nil, "", "user", "factors", login, in), "has no second factor\n")
	expectSuccess(t, run(nil, "", "check", in), "")

	p = start(t, nil, in)
	if status, answer := p.call(t, http.MethodGet, "/v1/users/me", "", "Authorization", "Bearer "+token); status != http.StatusUnauthorized {
		t.Errorf("a session from before the reset: %d %s", status, answer)
	}
	if !p.canSignIn(t, login, password) {
		t.Error("the password is not enough after the reset")
	}
}

const annasPassword = "an unusual sentence 1"

// enrolApp enrols an authenticator app for the user of the token and returns its id.
func enrolApp(t *testing.T, p *process, token string) (id string) {
	t.Helper()
	headers := []string{"Authorization", "Bearer " + token}
	var me struct{ ID string }
	status, answer := p.call(t, http.MethodGet, "/v1/users/me", "", headers...)
	if err := json.Unmarshal([]byte(answer), &me); err != nil || status != http.StatusOK {
		t.Fatalf("%d %s", status, answer)
	}
	own := "/v1/users/" + me.ID + "/factors"
	var app struct {
		ID   string
		TOTP struct{ Secret string }
	}
	status, answer = p.call(t, http.MethodPost, own, `{"type": "totp", "password": "`+annasPassword+`"}`, headers...)
	if err := json.Unmarshal([]byte(answer), &app); err != nil || status != http.StatusCreated {
		t.Fatalf("%d %s", status, answer)
	}
	code, err := totp.GenerateCode(app.TOTP.Secret, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if status, answer := p.call(t, http.MethodPost, own+"/"+app.ID+"/confirm", `{"code": "`+code+`"}`, headers...); status != http.StatusOK {
		t.Fatalf("%d %s", status, answer)
	}
	if status, answer := p.call(t, http.MethodPatch, own+"/"+app.ID, `{"name": "my \u001b[2J phone"}`, headers...); status != http.StatusBadRequest {
		t.Fatalf("a name with a control character: %d %s", status, answer)
	}
	return app.ID
}
