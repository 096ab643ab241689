// Package factor declares what sign-in and the module of second factors exchange.
package factor

import (
	"context"

	"github.com/go-json-experiment/json/jsontext"

	"kontor/store"
)

// The methods that can complete a sign-in.
const (
	Passkey      = "passkey"
	TOTP         = "totp"
	RecoveryCode = "recovery_code"
)

// The authentication methods of a session, named as in RFC 8176. Its registry has no name for a provider's sign-in: fed is ours.
const (
	AMRPassword  = "pwd"
	AMRFederated = "fed" // by the operator's provider
	AMROTP       = "otp" // a one-time code of an app, or a recovery code
	AMRHardware  = "hwk"
	AMRSoftware  = "swk"
	AMRUser      = "user" // the passkey has verified the person
	AMRMultiple  = "mfa"
)

// Answer is what a person presents as a second factor. Exactly one member is set.
type Answer struct {
	Code         string
	RecoveryCode string
	Passkey      jsontext.Value // the assertion of a passkey, as navigator.credentials.get returns it
}

// Given returns the number of members that are set.
func (a Answer) Given() (n int) {
	for _, given := range []bool{a.Code != "", a.RecoveryCode != "", len(a.Passkey) > 0} {
		if given {
			n++
		}
	}
	return n
}

// Field returns the member of a request that carries the answer, for errors.
func (a Answer) Field() string {
	switch {
	case len(a.Passkey) > 0:
		return "passkey"
	case a.RecoveryCode != "":
		return "recovery_code"
	default:
		return "code"
	}
}

// Accepted is a right answer. It counts when Use has succeeded.
type Accepted struct {
	UserID string   // whose factor it is
	AMR    []string // AMROTP, or AMRHardware or AMRSoftware with AMRUser
	Method string   // one of the constants
	// OnTrial reports that the factor was added a short time ago (see the package signin), and is trusted later.
	OnTrial     bool
	TrustedFrom store.Time
	// Use marks the factor as used in the transaction that accepts the answer. It returns apierr.InvalidFactor for an answer
	// that was used before.
	Use func(ctx context.Context, tx *store.Tx) error
}
