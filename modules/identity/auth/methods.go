package auth

import (
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"

	"kontor/modules/kit/factor"
	"kontor/server/access"
)

// amrOrder is the order in which methods are stored.
var amrOrder = []string{factor.AMRPassword, factor.AMRFederated, factor.AMROTP, factor.AMRHardware, factor.AMRSoftware, factor.AMRUser, factor.AMRMultiple}

// Methods are the authentication methods of a session.
type Methods []string

// with returns the methods together with more, each once. Two kinds of factors add mfa: something known and something held, or a
// passkey that has verified the person. The same factor shown twice adds nothing.
func (m Methods) with(more ...string) Methods {
	has := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(m, name) || slices.Contains(more, name) })
	}
	key := has(factor.AMRHardware, factor.AMRSoftware)
	multiple := has(factor.AMRMultiple) || has(factor.AMRPassword, factor.AMRFederated) && (key || has(factor.AMROTP)) || key && has(factor.AMRUser)
	var all Methods
	for _, name := range amrOrder {
		if has(name) || name == factor.AMRMultiple && multiple {
			all = append(all, name)
		}
	}
	return all
}

// The kinds of the methods of RFC 8176. The others, such as geo, rba and user, state something else than a factor.
var methodKinds = map[string]string{
	"pwd": "knowledge", "pin": "knowledge", "kba": "knowledge",
	"otp": "possession", "hwk": "possession", "swk": "possession", "sms": "possession", "tel": "possession", "sc": "possession",
	"face": "inherence", "fpt": "inherence", "iris": "inherence", "retina": "inherence", "vbm": "inherence",
}

// federated returns the methods of a sign-in with a provider, from those that the provider states. The sign-in is one factor,
// whatever it was, unless the provider states mfa, or methods of two kinds.
func federated(stated []string) Methods {
	kinds := map[string]bool{}
	for _, name := range stated {
		if kind := methodKinds[name]; kind != "" {
			kinds[kind] = true
		}
	}
	m := Methods{factor.AMRFederated}
	if slices.Contains(stated, factor.AMRPassword) {
		m = m.with(factor.AMRPassword)
	}
	if !slices.Contains(stated, factor.AMRMultiple) && len(kinds) < 2 {
		return m
	}
	return m.with(append(slices.Clone(stated), factor.AMRMultiple)...)
}

// acr returns the assurance level of the methods.
func (m Methods) acr() string {
	if slices.Contains(m, factor.AMRMultiple) {
		return access.TwoFactors
	}
	return access.OneFactor
}

// provesFactor reports whether the methods contain more than a password or a sign-in elsewhere.
func (m Methods) provesFactor() bool {
	return slices.ContainsFunc(m, func(name string) bool {
		return name == factor.AMROTP || name == factor.AMRHardware || name == factor.AMRSoftware || name == factor.AMRMultiple
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
