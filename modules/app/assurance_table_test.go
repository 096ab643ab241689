package app_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/servertest"
	"kontor/server/settings"
	"kontor/store"
)

// creations are valid bodies of rows with an assurance whose path names no record.
var creations = map[string]string{
	"POST /v1/api-keys":          `{"name": "Form"}`,
	"POST /v1/invitations":       `{"email": "new.advisor@example.ch", "roles": ["Advisor"]}`,
	"POST /v1/service-accounts":  `{"name": "Back office"}`,
	"POST /v1/rbac/roles":        `{"name": "Auditor"}`,
	"POST /v1/rbac/grants":       `{"role_id": "` + access.Advisor + `", "endpoint": "GET /v1/audit"}`,
	"PUT /v1/rate-limits":        `{"endpoint": "GET /v1/users/me", "per_minute": 5000}`,
	"POST /v1/rbac/record-types": `{"name": "invoice", "permissions": ["approve"]}`,
	"POST /v1/rbac/reviews":      `{"role_id": "` + access.Advisor + `", "decision": "keep"}`,
	"POST /v1/webhooks":          `{"url": "https://receiver.example/hook", "types": ["customers.*"]}`,
	"POST /v1/webhooks/test":     `{"url": "https://receiver.example/hook"}`,
}

// recordsOfAdmin creates records that an administrator may change, and returns their ids by path.
func recordsOfAdmin(t *testing.T, s *servertest.Server) map[string]string {
	t.Helper()
	admin := s.Admin()
	known := map[string]string{"/v1/users/{id}": admin.UserID}
	for path, create := range map[string]string{
		"/v1/api-keys/{id}": "/v1/api-keys", "/v1/invitations/{id}": "/v1/invitations", "/v1/service-accounts/{id}": "/v1/service-accounts",
		"/v1/rbac/roles/{id}": "/v1/rbac/roles", "/v1/rbac/grants/{id}": "/v1/rbac/grants", "/v1/rbac/record-types/{id}": "/v1/rbac/record-types",
		"/v1/webhooks/{id}": "/v1/webhooks",
	} {
		known[path] = admin.Create(create, creations["POST "+create])
	}
	known["/v1/customers/{id}"] = admin.Create("/v1/customers", customerBody("Anna"))
	known["/v1/personas/{persona_id}"] = admin.Create("/v1/personas", validBodies["PUT /v1/personas/{persona_id}"])
	var page struct{ Data []struct{ ID string } }
	admin.Do("GET", "/v1/users/"+admin.UserID+"/credentials", nil).Into(t, &page)
	known["/v1/users/credentials/{cred_id}"] = page.Data[0].ID
	return known
}

// pathOf returns the path of a row with known ids, and whether all of them are known.
func pathOf(e endpoint.Endpoint, known map[string]string) (path string, all bool) {
	for prefix, id := range known {
		if below, ok := strings.CutPrefix(e.Path, prefix); ok && !strings.Contains(below, "{") {
			return strings.Replace(prefix, lastName(prefix), id, 1) + below, true
		}
	}
	return withUnknownIDs(e.Path), !strings.Contains(e.Path, "{")
}

// Every row with an assurance rejects sessions that were authenticated too long ago, when nothing else is wrong: malformed input and a
// missing record are reported first. Every other row takes such sessions.
func TestTable_RejectsStaleSessions(t *testing.T) {
	s := servertest.Start(t)
	known := recordsOfAdmin(t, s)
	admin := s.SignIn(servertest.AdminEmail, servertest.AdminPassword)
	for _, e := range s.Table() {
		if !e.Assurance.Always() {
			continue
		}
		if a := admin.Do(e.Method, withUnknownIDs(e.Path), nil); codeOf(a.Body) == apierr.StaleSession.Code {
			t.Errorf("%s: %d right after signing in", e.Key(), a.Status)
		}
	}
	s.Clock.Advance(endpoint.FreshFor)
	rows, conditional, missing := 0, 0, 0
	for _, e := range s.Table() {
		if e.Assurance.Condition() != "" {
			conditional++ // these have a test of their own
			continue
		}
		if !e.Access.TakesBearer() || e.Name == "auth.logout" || strings.HasPrefix(e.Name, "notifications.stream") {
			continue
		}
		if !e.Assurance.Always() || e.Assurance.Level() == endpoint.Decision.Level() {
			if a := admin.Do(e.Method, withUnknownIDs(e.Path), nil); codeOf(a.Body) == apierr.StaleSession.Code {
				t.Errorf("%s (%s): got %d %s", e.Key(), e.Assurance, a.Status, a.Body)
			}
			continue
		}
		body := validBody(e)
		if text := creations[e.Key()]; text != "" {
			body = text
		}
		if strings.Contains(e.Path, "{") {
			missing++
			a := admin.Do(e.Method, withUnknownIDs(e.Path), body)
			if code := codeOf(a.Body); a.Status != http.StatusNotFound || !declares(e, code) {
				t.Errorf("%s of a missing record: got %d %s", e.Key(), a.Status, a.Body)
			}
		}
		path, all := pathOf(e, known)
		if !all || e.Name == "screening.load" { // it has a test of its own
			continue
		}
		rows++
		a := admin.Do(e.Method, path, body)
		if a.Status != http.StatusUnauthorized || codeOf(a.Body) != apierr.StaleSession.Code {
			t.Errorf("%s (%s): got %d %s", e.Key(), e.Assurance, a.Status, a.Body)
		}
		if !strings.Contains(a.Header.Get("WWW-Authenticate"), `error="insufficient_user_authentication", max_age="600"`) {
			t.Errorf("%s: WWW-Authenticate: %s", e.Key(), a.Header.Get("WWW-Authenticate"))
		}
	}
	if rows < 35 || missing < 35 || conditional < 5 {
		t.Errorf("%d rows, %d with a missing record and %d with a condition", rows, missing, conditional)
	}
	admin.Do("POST", "/v1/api-keys", `{"name": ""}`).ExpectError(t, 400, "common.invalid_input")
	unknown := store.NewID()
	admin.Do("POST", "/v1/rbac/grants", `{"role_id": "`+unknown+`", "endpoint": "GET /v1/audit"}`).ExpectError(t, 404, "rbac.role_not_found")
	admin.Do("POST", "/v1/rbac/grants", `{"user_id": "`+unknown+`", "endpoint": "GET /v1/audit"}`).ExpectError(t, 404, "users.user_not_found")
	admin.Do("POST", "/v1/rbac/reviews", `{"role_id": "`+unknown+`", "decision": "keep"}`).ExpectError(t, 404, "rbac.role_not_found")
	admin.Do("PUT", "/v1/rate-limits", `{"endpoint": "GET /nowhere", "per_minute": 5}`).ExpectError(t, 404, "rbac.endpoint_not_found")
	admin.Do("DELETE", "/v1/api-keys/x", nil).ExpectError(t, 400, "common.invalid_input")
}

// A missing right to the record is reported before the recent authentication is asked for.
func TestTable_ReportsMissingRightsBeforeStaleSessions(t *testing.T) {
	s := servertest.Start(t)
	owner, other := s.User(access.Customer), s.User(access.Customer)
	customer := owner.Create("/v1/customers", customerBody("Anna"))
	var page struct{ Data []struct{ ID string } }
	owner.Do("GET", "/v1/users/"+owner.UserID+"/credentials", nil).Into(t, &page)
	s.Admin().Do("POST", "/v1/rbac/grants", map[string]any{"role_id": access.Customer, "endpoint": "PATCH /v1/customers/{id}/kyc/status"}).Expect(t, 201)
	s.Clock.Advance(endpoint.FreshFor)
	for _, c := range []struct {
		method, path string
		body         any
	}{
		{"DELETE", "/v1/users/credentials/" + page.Data[0].ID, nil},
		{"POST", "/v1/users/" + owner.UserID + "/factors", `{"type": "totp"}`},
		{"GET", "/v1/users/" + owner.UserID + "/export", nil},
		{"GET", "/v1/customers/" + customer + "/export", nil},
	} {
		if a := other.Do(c.method, c.path, c.body); a.Status != http.StatusForbidden {
			t.Errorf("%s %s: got %d %s", c.method, c.path, a.Status, a.Body)
		}
	}
	// The creator of the record may update it, but decides nothing.
	owner.Do("PATCH", "/v1/customers/"+customer+"/kyc/status", `{"kyc_status": "pending"}`).ExpectError(t, 403, "common.rbac_no_rec_access")
}

// Decisions about customers take an authentication of the last twelve hours. A refresh does not make it recent.
func TestDecisions_TakeAnAuthenticationOfTheWorkingDay(t *testing.T) {
	for hours, setting := range map[int]time.Duration{12: 0, 3: 3 * time.Hour} {
		s := servertest.Start(t, func(o *settings.Settings) {
			if setting > 0 {
				o.Auth.Decision = setting
			}
		})
		advisor := s.User(access.Advisor)
		body := customerBody("Anna")
		body["nationality"] = "XXA"
		customer := advisor.Create("/v1/customers", body)
		path := "/v1/customers/" + customer + "/kyc"
		refresh := func() {
			t.Helper()
			var next struct {
				Access  string `json:"access_token"`
				Refresh string `json:"refresh_token"`
			}
			s.Anonymous().Do("POST", "/v1/token/refresh", map[string]any{"refresh_token": advisor.Refresh}).Expect(t, 200).Into(t, &next)
			advisor.Token, advisor.Refresh = next.Access, next.Refresh
		}
		for range hours {
			s.Clock.Advance(time.Hour - time.Second)
			refresh()
		}
		advisor.Do("PATCH", path+"/status", `{"kyc_status": "pending"}`).Expect(t, 200)
		advisor.Do("POST", "/v1/kyc/cases/take", map[string]any{"customer_ids": []string{customer}}).Expect(t, 200)
		advisor.Do("POST", "/v1/users/"+advisor.UserID+"/factors", `{"type": "totp"}`).ExpectError(t, 401, apierr.StaleSession.Code)

		s.Clock.Advance(time.Duration(hours) * time.Second)
		refresh()
		for _, c := range []struct{ method, path, body string }{
			{"PATCH", path + "/status", `{"kyc_status": "verified"}`},
			{"PUT", path, `{"verified_at": "2026-01-31T08:00:00Z", "documents": [{"type": "passport", "number": "1", "expiry_date": "2035-01-01"}]}`},
			{"POST", "/v1/kyc/cases/take", `{"customer_ids": ["` + customer + `"]}`},
			{"PUT", "/v1/customers/" + customer + "/relationship", `{"ended_at": null}`},
		} {
			a := advisor.Do(c.method, c.path, c.body)
			a.ExpectError(t, 401, apierr.StaleSession.Code)
			if want := fmt.Sprintf(`max_age="%d"`, hours*3600); !strings.Contains(a.Header.Get("WWW-Authenticate"), want) {
				t.Errorf("WWW-Authenticate: %s, want %s", a.Header.Get("WWW-Authenticate"), want)
			}
		}
		advisor.Do("PATCH", "/v1/customers/"+store.NewID()+"/kyc/status", `{"kyc_status": "verified"}`).ExpectError(t, 404, "customers.customer_not_found")
		advisor.Do("PATCH", path+"/status", `{"kyc_status": "perfect"}`).ExpectError(t, 400, "common.invalid_input")
		advisor.Do("PUT", path, `{"documents": [{"type": "passport", "number": "1", "expiry_date": "2035-01-01"}]}`).Expect(t, 200)
		advisor.Do("POST", "/v1/users/"+advisor.UserID+"/reauthenticate", map[string]any{"password": servertest.Password}).Expect(t, 200)
		advisor.Do("PATCH", path+"/status", `{"kyc_status": "verified"}`).Expect(t, 200)
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
	admin.Do("PUT", "/v1/users/"+store.NewID()+"/password", map[string]any{"password": "another long phrase 17"}).ExpectError(t, 404, "users.user_not_found")
	admin.Do("PATCH", "/v1/users/"+other.UserID, map[string]any{"language": "fr"}).Expect(t, 200)
	other.Do("PUT", "/v1/users/"+other.UserID+"/password", map[string]any{"old_password": "a long enough password 42", "password": "another long phrase 17"}).Expect(t, 200)
	other.Do("DELETE", "/v1/users/"+other.UserID+"/sessions/"+session, nil).Expect(t, 200)
}

func codeOf(body string) string {
	_, rest, _ := strings.Cut(body, `"code":"`)
	code, _, _ := strings.Cut(rest, `"`)
	return code
}
