package app_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"kontor/modules/app"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/servertest"
	"kontor/server/settings"
	"kontor/store/storetest"
)

// An administrator who has not enrolled a factor in time cannot remove those of others, which would also end the rule.
func TestSecondFactor_IsNotRemovedByThoseWhoMustEnrol(t *testing.T) {
	s := servertest.Start(t)
	root, other, victim := s.Admin(), s.User(access.Administrator), s.User(access.Customer)
	telephone, of := enrol(t, s, root), enrol(t, s, victim)
	s.SignIn(other.UserID, userPassword)
	s.Clock.Advance(14 * 24 * time.Hour)
	late := s.SignIn(other.UserID, userPassword)
	for user, factor := range map[string]string{root.UserID: telephone.factor, victim.UserID: of.factor} {
		path := "/v1/users/" + user + "/factors"
		for _, c := range []struct {
			method, path string
			body         any
		}{
			{"GET", path, nil}, {"POST", path, map[string]any{"type": "totp", "password": userPassword}}, {"DELETE", path + "/" + factor, nil},
			{"PATCH", path + "/" + factor, map[string]any{"name": "Mine"}},
			{"POST", path + "/" + factor + "/confirm", map[string]any{"code": "123456"}},
			{"DELETE", path + "/" + root.UserID, nil},
		} {
			late.Do(c.method, c.path, c.body).ExpectError(t, http.StatusForbidden, apierr.FactorRequired.Code)
		}
	}
	telephone.signIn(root.UserID, servertest.AdminPassword).Do("GET", "/v1/users", nil).Expect(t, http.StatusOK)
	own := enrol(t, s, late)
	c := own.signIn(other.UserID, userPassword)
	c.Do("DELETE", "/v1/users/"+victim.UserID+"/factors/"+of.factor, nil).Expect(t, http.StatusOK)
}

// The rule holds for all sessions of a user from the sign-in that first finds it, also for those in memory.
func TestSecondFactor_IsRequiredInEverySession(t *testing.T) {
	s := servertest.Start(t, func(o *settings.Settings) { o.Auth.MFA.Grace = 0 })
	early := s.User(access.Administrator)
	early.Do("GET", "/v1/users", nil).Expect(t, http.StatusOK)
	telephone := enrol(t, s, s.Admin())
	early.Do("GET", "/v1/users", nil).Expect(t, http.StatusOK)
	late := s.SignIn(early.UserID, userPassword)
	for _, c := range []*servertest.Client{early, late} {
		c.Do("GET", "/v1/users", nil).ExpectError(t, http.StatusForbidden, apierr.FactorRequired.Code)
		c.Do("HEAD", "/v1/users", nil).Expect(t, http.StatusForbidden)
		c.Do("GET", "/v1/notifications/sse", nil).ExpectError(t, http.StatusForbidden, apierr.FactorRequired.Code)
		c.Do("POST", "/v1/notifications/sse", nil).ExpectError(t, http.StatusForbidden, apierr.FactorRequired.Code)
	}
	root := telephone.signIn(servertest.AdminEmail, servertest.AdminPassword)
	root.Do("DELETE", "/v1/users/"+root.UserID+"/factors/"+telephone.factor, map[string]any{"password": servertest.AdminPassword}).Expect(t, http.StatusOK)
	s.SignIn(early.UserID, userPassword)
	early.Do("GET", "/v1/users", nil).Expect(t, http.StatusOK)
}

// A misspelt role would require nothing, and neither does Everyone.
func TestSecondFactor_WarnsOfUnknownRoles(t *testing.T) {
	loaded, err := settings.Load(settings.Input{})
	if err != nil {
		t.Fatal(err)
	}
	loaded.Settings.Auth.MFA.RequiredRoles = []string{"administrator", strings.ToUpper(access.Advisor), "Adminstrators", "everyone"}
	var log bytes.Buffer
	m, err := app.New(storetest.Open(t), app.Options{Settings: loaded.Settings, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close(t.Context())
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	const warning = "a role that does not exist"
	if n := strings.Count(log.String(), warning); n != 2 || !strings.Contains(log.String(), "role=Adminstrators") || !strings.Contains(log.String(), "role=everyone") {
		t.Errorf("%d warnings:\n%s", n, log.String())
	}
}

// The examples of the document are requests that the rules of the input accept.
func TestSecondFactor_ExamplesOfTheDocumentAreValid(t *testing.T) {
	s := servertest.Start(t)
	user := s.User(access.Customer)
	paths := s.Anonymous().Do("GET", "/openapi.json", nil).Expect(t, http.StatusOK).JSON(t)["paths"].(map[string]any)
	for path, want := range map[string]string{
		"/authenticate": apierr.InvalidCredentials.Code, "/authenticate/factor": apierr.ChallengeExpired.Code,
		"/v1/users/{id}/reauthenticate": apierr.InvalidInput.Code, "/v1/users/{id}/factors": apierr.InvalidInput.Code, // a wrong password
	} {
		operation := paths[path].(map[string]any)["post"].(map[string]any)
		media := operation["requestBody"].(map[string]any)["content"].(map[string]any)["application/json"].(map[string]any)
		a := user.Do("POST", strings.ReplaceAll(path, "{id}", user.UserID), media["example"])
		if got := codeOf(a.Body); got != want || strings.Contains(a.Body, "exactly one") {
			t.Errorf("%s: got %d %s", path, a.Status, a.Body)
		}
	}
}
