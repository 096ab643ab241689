package seed_test

import (
	"net/http"
	"strings"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
)

const oneStep = "- request: GET /v1/users/me"

func TestSeed_IsForAdministratorsOfASandbox(t *testing.T) {
	plain := servertest.Start(t)
	for _, path := range []string{seedPath, triggerPath} {
		plain.Admin().With("Content-Type", "application/json").Do(http.MethodPost, path, `[]`).ExpectError(t, http.StatusNotFound, "common.not_found")
	}
	plain.Admin().Do(http.MethodGet, scenariosPath, nil).ExpectError(t, http.StatusNotFound, "common.not_found")

	s := servertest.StartSandbox(t, false)
	for _, role := range []string{access.Customer, access.Advisor} {
		user := s.User(role)
		play(s, user, oneStep).ExpectError(t, http.StatusForbidden, "common.rbac_no_rec_access")
		user.Do(http.MethodPost, triggerPath, map[string]any{"scenario": "roles.created"}).ExpectError(t, http.StatusForbidden, "common.rbac_no_rec_access")
		user.Do(http.MethodGet, scenariosPath, nil).ExpectError(t, http.StatusForbidden, "common.rbac_no_rec_access")
	}
	play(s, s.Anonymous(), oneStep).ExpectError(t, http.StatusUnauthorized, "common.unauthorized")
	play(s, s.Keyed(), oneStep).ExpectError(t, http.StatusUnauthorized, "common.unauthorized")
	s.Admin().With("Content-Type", "text/plain").Do(http.MethodPost, seedPath, oneStep).ExpectError(t, http.StatusUnsupportedMediaType, "common.unsupported_media_type")
	play(s, s.Admin(), oneStep+"\n# "+strings.Repeat("x", 1<<20)).ExpectError(t, http.StatusRequestEntityTooLarge, "common.payload_too_large")
	if answer := play(s, s.Admin(), "- request: GET /v1/users/${anna.id}"); answer.Status != http.StatusBadRequest || !strings.Contains(answer.Body, "Line 1: ${anna.id}") {
		t.Error(answer.Body)
	}
}

// Steps have the rights of their users, and cannot leave the API of the bank. A failure names its step, and the steps before it stay done.
func TestSeed_StepsObeyTheRules(t *testing.T) {
	s := servertest.StartSandbox(t, false)
	s.User(access.Advisor)
	customer := s.User(access.Customer)
	const role = "- {id: role, request: POST /v1/rbac/roles, body: {name: sandbox}}\n"
	for name, c := range map[string]struct{ file, reason, want string }{
		"rights":            {"- {as: Customer, request: GET /v1/audit}", "status", "common.rbac_no_rec_access"},
		"nobody":            {"- {as: anonymous, request: GET /v1/users/me}", "status", "common.unauthorized"},
		"a stranger":        {"- {as: nobody@example.ch, request: GET /v1/users/me}", "user", "nobody@example.ch"},
		"an unknown id":     {"- {as: 01a20bdb-a82b-73ff-891b-2f5daf5ab29a, request: GET /v1/users/me}", "user", "01a20bdb"},
		"the nil id":        {"- {as: 00000000-0000-0000-0000-000000000000, request: GET /v1/users/me}", "user", "0000"},
		"a record as user":  {role + "- {as: role, request: GET /v1/users/me}", "user", "role"},
		"no such member":    {"- {id: me, request: GET /v1/users/me}\n- {request: 'GET /v1/users/${me.wife.id}'}", "reference", "${me.wife.id}"},
		"an object in path": {"- {id: me, request: GET /v1/users/me}\n- {request: 'GET /v1/users/${me.roles}'}", "value", "${me.roles}"},
		"a slash in path":   {"values: {x: '../sandbox/clock'}\nsteps: [{request: 'GET /v1/${x}'}]", "value", "${x}"},
		"dots in path":      {"values: {x: '..'}\nsteps: [{request: 'GET /v1/${x}/users'}]", "value", "${x}"},
		"the sandbox":       {"values: {x: box}\nsteps: [{request: 'GET /v1/sand${x}/clock'}]", "value", "/v1/sand${x}/clock"},
		"the sandbox, too":  {"values: {x: sandbox}\nsteps: [{request: 'POST /v1/${x}/seed', body: []}]", "value", "/v1/${x}/seed"},
		"a header":          {"values: {x: \"a\\r\\nX-Evil: 1\"}\nsteps: [{request: GET /v1/users/me, headers: {Idempotency-Key: '${x}'}}]", "value", "headers"},
		"a stream":          {"- {request: GET /v1/notifications/unread-count, expect: 404}", "status", ""},
		"another body":      {"- {request: GET /v1/users/me, expect: {body: {status: disabled}}}", "body", "body.status"},
		"a missing member":  {"- {request: GET /v1/users/me, expect: {body: {wife: x}}}", "body", "body.wife"},
		"no match":          {"- {id: me, request: GET /v1/users/me, match: {code: 'x{9}'}}\n- {request: 'GET /v1/users/${me.code}'}", "reference", "code"},
	} {
		answer := play(s, s.Admin(), c.file)
		if answer.Status != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d %s", name, answer.Status, answer.Body)
			continue
		}
		if details := answer.JSON(t)["details"].(map[string]any); details["reason"] != c.reason || !strings.Contains(answer.Body, c.want) || details["line"] == nil {
			t.Errorf("%s: %s", name, answer.Body)
		}
	}
	if found := s.Admin().Do(http.MethodGet, "/v1/rbac/roles?search.name=sandbox", nil).JSON(t); found["total"] != 1.0 {
		t.Errorf("what was done before the failure is gone: %v", found)
	}
	s.Admin().Do(http.MethodPatch, "/v1/users/"+customer.UserID, map[string]any{"status": "disabled"}).Expect(t, http.StatusOK)
	if answer := play(s, s.Admin(), "- {as: "+customer.UserID+", request: GET /v1/users/me}"); !strings.Contains(answer.Body, `"reason":"user"`) {
		t.Errorf("a disabled user: %s", answer.Body)
	}
}

// Secrets of earlier answers are in no answer of a seed, whatever happens to them.
func TestSeed_ShowsNoSecrets(t *testing.T) {
	s := servertest.StartSandbox(t, false)
	const signIn = "- {id: in, as: anonymous, request: POST /authenticate, body: {user_id: " + servertest.AdminEmail + ", password: " + servertest.AdminPassword + "}}\n" +
		"- {id: key, request: POST /v1/api-keys, body: {name: Website}}\n"
	for name, last := range map[string]string{
		"success":   "- {request: GET /v1/users/me}",
		"a field":   "- {request: POST /v1/rbac/grants, body: {role_id: '${in.access_token}', rec_type: '${key.key}', permissions: ['${key.key}']}}",
		"a path":    "- {request: 'GET /v1/users/${in.access_token}'}",
		"a user":    "- {as: '${in.access_token}', request: GET /v1/users/me}",
		"expecting": "- {request: GET /v1/users/me, expect: {body: {id: '${in.access_token}'}}}",
	} {
		answer := play(s, s.Admin(), signIn+last)
		if strings.Contains(answer.Body, "eyJ") || strings.Contains(answer.Body, servertest.AdminPassword) {
			t.Errorf("%s: %s", name, answer.Body)
		}
		if name == "success" != (answer.Status == http.StatusOK) {
			t.Errorf("%s: %d %s", name, answer.Status, answer.Body)
		}
	}
}

func TestSeed_StartsAheadOfItsClock(t *testing.T) {
	s := servertest.StartSandbox(t, false)
	play(s, s.Admin(), "start: 2020-01-01T00:00:00Z\nsteps: [{request: GET /v1/users/me}]").ExpectError(t, http.StatusConflict, "sandbox.clock_back")
	play(s, s.Admin(), "start: 2026-02-01T00:00:00Z\nsteps: [{request: GET /v1/users/me}, {request: GET /v1/users/me}]").Expect(t, http.StatusOK)
	if now, err := s.DB.Ahead(t.Context()); err != nil || s.DB.Now().String() != "2026-02-01T00:01:01.000Z" || now <= 0 {
		t.Errorf("it is %s, ahead by %s, error %v", s.DB.Now(), now, err)
	}
}
