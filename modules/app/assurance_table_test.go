package app_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/servertest"
)

// Every row with an assurance rejects sessions that were authenticated more than ten minutes ago, before it looks at path and
// body, and every other row does not.
func TestTable_RejectsStaleSessions(t *testing.T) {
	s := servertest.Start(t)
	admin := s.SignIn(servertest.AdminEmail, servertest.AdminPassword)
	refusal := func(e endpoint.Endpoint) (status int, code string, header http.Header) {
		a := admin.Do(e.Method, withUnknownIDs(e.Path), nil)
		return a.Status, codeOf(a.Body), a.Header
	}
	rows, conditional := 0, 0
	for _, e := range s.Table() {
		if e.Assurance.Condition() != "" {
			conditional++
		}
		if e.Assurance == endpoint.AnySession || e.Assurance.Condition() != "" {
			continue
		}
		rows++
		if status, code, _ := refusal(e); code == apierr.StaleSession.Code {
			t.Errorf("%s: %d %s right after signing in", e.Key(), status, code)
		}
	}
	if rows < 12 || conditional < 5 {
		t.Errorf("%d rows and %d with a condition", rows, conditional)
	}
	s.Clock.Advance(endpoint.FreshFor)
	for _, e := range s.Table() {
		// Conditions have a test of their own.
		if !e.Access.TakesBearer() || e.Assurance.Condition() != "" || e.Name == "auth.logout" || strings.HasPrefix(e.Name, "notifications.stream") {
			continue
		}
		wanted := e.Assurance != endpoint.AnySession && e.Assurance.Condition() == ""
		status, code, header := refusal(e)
		if wanted != (code == apierr.StaleSession.Code) {
			t.Errorf("%s (%s): got %d %s", e.Key(), e.Assurance, status, code)
		}
		if wanted && !strings.Contains(header.Get("WWW-Authenticate"), `error="insufficient_user_authentication", max_age="600"`) {
			t.Errorf("%s: WWW-Authenticate: %s", e.Key(), header.Get("WWW-Authenticate"))
		}
	}
}

// Rows that change rights or the way in must have an assurance.
func TestTable_RightsNeedAnAssurance(t *testing.T) {
	s := servertest.Start(t)
	sensitive := []access.RecordType{access.Roles, access.Grants, access.RateLimits, access.APIKeys, access.Credentials, access.Factors}
	for _, e := range s.Table() {
		recordType, permission, ok := e.Access.Record()
		if !ok || e.Method == http.MethodGet || permission == access.Read || e.Name == "users.credentials.send_otp" {
			continue
		}
		for _, s := range sensitive {
			if s == recordType && e.Assurance.Level() != endpoint.SecondFactor.Level() {
				t.Errorf("%s has the assurance %s", e.Key(), e.Assurance)
			}
		}
	}
}

// The conditional rows, with requests that meet the condition.
func TestTable_ConditionsOfAssurance(t *testing.T) {
	s := servertest.Start(t)
	admin := s.SignIn(servertest.AdminEmail, servertest.AdminPassword)
	other := s.User(access.Customer)
	session := other.Do("GET", "/v1/users/"+other.UserID+"/sessions", nil).JSON(t)["data"].([]any)[0].(map[string]any)["id"].(string)
	s.Clock.Advance(endpoint.FreshFor + time.Second)
	for _, c := range []struct {
		name, method, path string
		body               any
	}{
		{"disable a user", "PATCH", "/v1/users/" + other.UserID, map[string]any{"status": "disabled"}},
		{"end a session of another user", "DELETE", "/v1/users/" + other.UserID + "/sessions/" + session, nil},
		{"set a password of another user", "PUT", "/v1/users/" + other.UserID + "/password", map[string]any{"password": "another long phrase 17"}},
	} {
		if a := admin.Do(c.method, c.path, c.body); a.Status != 401 || codeOf(a.Body) != apierr.StaleSession.Code {
			t.Errorf("%s: got %d %s", c.name, a.Status, a.Body)
		}
	}
	admin.Do("PATCH", "/v1/users/"+other.UserID, map[string]any{"language": "fr"}).Expect(t, 200)
	other.Do("PUT", "/v1/users/"+other.UserID+"/password", map[string]any{"old_password": "a long enough password 42", "password": "another long phrase 17"}).Expect(t, 200)
	other.Do("DELETE", "/v1/users/"+other.UserID+"/sessions/"+session, nil).Expect(t, 200)
}

func codeOf(body string) string {
	_, rest, _ := strings.Cut(body, `"code":"`)
	code, _, _ := strings.Cut(rest, `"`)
	return code
}
