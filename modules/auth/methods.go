package auth

import (
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"

	"kontor/server/access"
)

// The authentication methods of a session, named as in RFC 8176. Its registry has no name for a provider's sign-in: fed is ours.
const (
	amrPassword  = "pwd"
	amrFederated = "fed" // by the operator's provider
	amrOTP       = "otp" // a one-time code of an app, or a recovery code
	amrHardware  = "hwk"
	amrSoftware  = "swk"
	amrUser      = "user" // the passkey has verified the person
	amrMultiple  = "mfa"
)

// amrOrder is the order in which methods are stored.
var amrOrder = []string{amrPassword, amrFederated, amrOTP, amrHardware, amrSoftware, amrUser, amrMultiple}

// Methods are the authentication methods of a session.
type Methods []string

// with returns the methods together with more, each once. Two kinds of factors add mfa: something known and something held, or a
// passkey that has verified the person. The same factor shown twice adds nothing.
func (m Methods) with(more ...string) Methods {
	has := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(m, name) || slices.Contains(more, name) })
	}
	key := has(amrHardware, amrSoftware)
	multiple := has(amrMultiple) || has(amrPassword, amrFederated) && (key || has(amrOTP)) || key && has(amrUser)
	var all Methods
	for _, name := range amrOrder {
		if has(name) || name == amrMultiple && multiple {
			all = append(all, name)
		}
	}
	return all
}

// acr returns the assurance level of the methods.
func (m Methods) acr() string {
	if slices.Contains(m, amrMultiple) {
		return access.TwoFactors
	}
	return access.OneFactor
}

// provesFactor reports whether the methods contain more than a password or a sign-in elsewhere.
func (m Methods) provesFactor() bool {
	return slices.ContainsFunc(m, func(name string) bool {
		return name == amrOTP || name == amrHardware || name == amrSoftware || name == amrMultiple
	})
}

// Value returns the stored form.
func (m Methods) Value() (driver.Value, error) { return strings.Join(m, " "), nil }

// Scan reads the stored form.
func (m *Methods) Scan(src any) error {
	switch text := src.(type) {
	case string:
		*m = strings.Fields(text)
	case []byte:
		*m = strings.Fields(string(text))
	default:
		return fmt.Errorf("methods of a session: %T", src)
	}
	return nil
}
