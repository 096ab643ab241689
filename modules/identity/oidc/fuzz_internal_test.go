package oidc

import (
	"net/url"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"kontor/store"
)

// A path that is accepted leads to the same site, however a browser reads it.
func FuzzIsConsolePath(f *testing.F) {
	for _, seed := range []string{"/", "/customers?tab=kyc", "//evil.test", "/\\evil.test", "/%2F/evil.test", "/..//evil.test", "https://evil.test"} {
		f.Add(seed)
	}
	base, err := url.Parse("https://bank.test/signin")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !isConsolePath(text) {
			return
		}
		target, err := base.Parse(text)
		if err != nil || target.Host != "bank.test" || target.Scheme != "https" {
			t.Errorf("%q leads to %v (%v)", text, target, err)
		}
		if len(text) > maxReturnTo || strings.ContainsAny(text, "\\\r\n\t<>\"'") || strings.HasPrefix(text, "//") {
			t.Errorf("%q is accepted", text)
		}
	})
}

// Claims of any form are rejected or lead to a statement within the limits.
func FuzzClaims(f *testing.F) {
	for _, seed := range []string{
		`{"email":"a@bank.test","email_verified":true,"groups":["x"],"amr":["pwd","otp"],"exp":1,"iat":1}`,
		`{"email":"a@bank.test","email_verified":"true","realm_access":{"roles":["x"]},"exp":1e300}`,
		`{"groups":{"x":1},"amr":"pwd","auth_time":-1}`, `{"groups":"x","name":null}`, `[]`, `{"groups":[[[]]]}`,
	} {
		f.Add([]byte(seed))
	}
	s := &Service{options: Options{ClientID: "kontor", RolesClaim: "groups"}}
	f.Fuzz(func(t *testing.T, data []byte) {
		var claims members
		if json.Unmarshal(data, &claims) != nil {
			return
		}
		const now = store.Time(1_800_000_000_000)
		if at, err := checkTimes(claims, now); err == nil && (at < 0 || at > now) {
			t.Errorf("authenticated at %d", at)
		}
		var st statement
		if s.fill(&st, claims) != nil {
			return
		}
		if len(st.Methods) > maxMethods || len(st.Roles) > maxRoles {
			t.Errorf("%d methods and %d roles", len(st.Methods), len(st.Roles))
		}
		if string(claims["email_verified"]) != "true" && string(claims["email_verified"]) != `"true"` && st.Email != "" && !strings.Contains(string(claims["email_verified"]), `\u`) {
			t.Errorf("an unverified address is accepted: %s", data)
		}
	})
}
