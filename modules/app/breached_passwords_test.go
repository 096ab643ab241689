package app_test

import (
	"crypto/sha1"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kontor/modules/identity/directory"
	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/server/settings"
)

const (
	breachedPassword = "purple monkey dishwasher"
	goodPassword     = "nine quiet herons upriver"
)

// breachedFile writes a sorted file with the hashes of a thousand passwords and returns its path.
func breachedFile(t *testing.T, passwords ...string) string {
	t.Helper()
	var lines []string
	for i := range 1000 {
		lines = append(lines, fmt.Sprintf("%X:%d", sha1.Sum([]byte(fmt.Sprint(i))), i+1))
	}
	for _, p := range passwords {
		lines = append(lines, fmt.Sprintf("%X:3", sha1.Sum([]byte(p))))
	}
	slices.Sort(lines)
	name := filepath.Join(t.TempDir(), "breached.txt")
	if err := os.WriteFile(name, []byte(strings.Join(lines, "\r\n")+"\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func withBreached(name string) servertest.Option {
	return func(o *settings.Settings) { o.Auth.BreachedPasswords = name }
}

func registering(email, password string) map[string]any {
	return map[string]any{"credential_type": "email", "credential_value": email, "password": password,
		"terms_accepted": true, "privacy_policy_accepted": true}
}

// A breached password is rejected wherever a password is set, with a text in the language of the request.
func TestBreachedPasswords_AreRejectedEverywhere(t *testing.T) {
	s := servertest.Start(t, withBreached(breachedFile(t, breachedPassword)))
	user, other := s.User(access.Customer), s.User(access.Customer)
	own := "/v1/users/" + user.UserID + "/password"
	const userPassword = "a long enough password 42"
	for name, set := range map[string]func(password string, headers ...string) servertest.Response{
		"registration": func(password string, headers ...string) servertest.Response {
			return s.Keyed().With(headers...).Do("POST", "/v1/users/initiate-registration", registering("anna@example.ch", password))
		},
		"change": func(password string, headers ...string) servertest.Response {
			return user.With(headers...).Do("PUT", own, map[string]any{"old_password": userPassword, "password": password})
		},
		"recovery": func(password string, headers ...string) servertest.Response {
			return s.Keyed().With(headers...).Do("POST", "/v1/users/complete-recovery",
				map[string]any{"credential_value": "anna@example.ch", "otp": "123456", "password": password})
		},
		"set by an administrator": func(password string, headers ...string) servertest.Response {
			return s.Admin().With(headers...).Do("PUT", "/v1/users/"+other.UserID+"/password", map[string]any{"password": password})
		},
	} {
		for language, want := range map[string]string{
			"en": "This password appears in known data breaches. Choose another one.", "de": "in bekannten Datenlecks vor",
			"fr": "des fuites de données connues", "it": "in fughe di dati note",
		} {
			got := set(breachedPassword, "Accept-Language", language).Expect(t, 400)
			if !strings.Contains(got.Body, `"password"`) || !strings.Contains(got.Body, want) {
				t.Errorf("%s, %s: got %s", name, language, got.Body)
			}
		}
		if got := set(goodPassword); strings.Contains(got.Body, "breaches") {
			t.Errorf("%s: a good password was rejected: %s", name, got.Body)
		}
	}
	ctx := access.With(t.Context(), &access.Caller{UserID: user.UserID})
	if _, err := s.Users.SetPassword(ctx, user.UserID, breachedPassword); err == nil {
		t.Error("the command accepted a breached password")
	}
	if _, err := s.Users.Create(ctx, directory.NewUser{Value: "b@example.ch", Password: breachedPassword, Roles: []string{"Customer"}}); err == nil {
		t.Error("the command created a user with a breached password")
	}
	if _, err := s.Users.SetPassword(ctx, user.UserID, goodPassword); err != nil {
		t.Errorf("a good password: %v", err)
	}
}

// Passwords from before stay valid: sign-in does not consult the file.
func TestBreachedPasswords_SignInStays(t *testing.T) {
	s := servertest.Start(t)
	if _, err := s.Users.SetPassword(t.Context(), servertest.AdminEmail, breachedPassword); err != nil {
		t.Fatalf("without a file: %v", err)
	}
	s.SignIn(servertest.AdminEmail, breachedPassword)
}

// When the file vanishes or breaks, new passwords are accepted by the other rules.
func TestBreachedPasswords_FailOpen(t *testing.T) {
	name := breachedFile(t, breachedPassword)
	s := servertest.Start(t, withBreached(name))
	register := func(email, password string, status int) {
		t.Helper()
		s.Keyed().Do("POST", "/v1/users/initiate-registration", registering(email, password)).Expect(t, status)
	}
	register("a@example.ch", breachedPassword, 400)
	if err := os.WriteFile(name, []byte(strings.Repeat("\x00", 100_000)), 0o600); err != nil {
		t.Fatal(err)
	}
	register("a@example.ch", breachedPassword, 201)
	register("b@example.ch", "password1234", 400)
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	register("b@example.ch", breachedPassword, 201)
	register("c@example.ch", "password1234", 400)
	if err := os.Rename(breachedFile(t, breachedPassword), name); err != nil {
		t.Fatal(err)
	}
	register("c@example.ch", breachedPassword, 400)
}
