// Package signin declares the rule for new ways to sign in, which the modules that own one share: credentials, second factors,
// recovery codes, and accounts at the operator's provider.
//
// Users who add a method, or remove a factor or an account at the provider, prove it with an older one: the request presents the
// password or an older factor ([Proof]). A removed credential is restored by the link in the message about it. A new or restored
// method may be used at once. For the time of [Trial] it can neither replace nor remove an older method, and it is
// not enough for what needs a recent authentication. All older addresses get a message with a link that removes the new method. A
// recovery of the account removes all methods on trial. The module auth enforces the rule; the others implement [Methods] and call it.
package signin

import (
	"context"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/kit/factor"
	"kontor/server/apierr"
	"kontor/store"
)

// Trial is the time for which a method is on trial. It is long enough for the user to read a message at an older address.
const Trial = 24 * time.Hour

// MaxBody is the maximum size of a request with a proof, in bytes: it may be a passkey.
const MaxBody = 32 << 10

// NewUser is a user whom a first sign-in with the provider creates: active at once, without a password.
type NewUser struct {
	Email       string   // validated by the provider
	DisplayName string   // left out if it is not well-formed
	Language    string   // a language tag such as de-CH; unknown ones count as English
	Roles       []string // ids
}

// Kind is a kind of methods.
type Kind string

// The kinds.
const (
	Credential Kind = "credential"
	Factor     Kind = "factor" // an authenticator app, a passkey or recovery codes
	Identity   Kind = "identity"
)

// Method is a way to sign in that is on trial or not confirmed yet.
type Method struct {
	Kind        Kind
	ID          string
	UserID      string
	TrustedFrom store.Time // end of the trial; 0 for a method that is not confirmed
	// Harmless methods do not keep older ones from being removed: they cannot take over an account.
	Harmless bool
}

// Methods is what a module with sign-in methods implements.
type Methods interface {
	// OnTrial returns the methods of a user that are on trial or not confirmed.
	OnTrial(ctx context.Context, q store.Querier, userID string) ([]Method, error)
	// Drop removes a method with what depends on it. It does nothing for an unknown one. The caller ends the sessions. With
	// announce, it notifies the user.
	Drop(ctx context.Context, tx *store.Tx, m Method, announce bool) error
}

// Restorer is implemented by the module with credentials.
type Restorer interface {
	// Restore adds a removed credential again, on trial, from the state that [Rule.NewRestore] took. It returns apierr.UndoInvalid if that
	// is not possible any more.
	Restore(ctx context.Context, tx *store.Tx, state string) error
}

// Rule is what a module with sign-in methods needs from the module auth.
type Rule interface {
	// Prove verifies the older method that the caller presents. It returns apierr.ProofRequired without one, and
	// apierr.InvalidInput, apierr.MethodOnTrial, apierr.LockedOut and apierr.Unavailable. Callers must not be in a transaction.
	Prove(ctx context.Context, p Proof) error
	// NewUndo returns the path of the link that removes a new method, for the messages about it. The transaction that adds the
	// method calls keep.
	NewUndo(kind Kind, userID, id string) (path string, keep func(ctx context.Context, tx *store.Tx) error)
	// NewRestore returns the path of the link that restores a removed credential, as NewUndo does.
	NewRestore(userID, id, state string) (path string, keep func(ctx context.Context, tx *store.Tx) error)
	// CheckRemoval returns apierr.OlderMethodKept if a method must stay because a newer one of its user is on trial.
	CheckRemoval(ctx context.Context, q store.Querier, userID string, trustedFrom store.Time) error
	// DropOnTrial removes all methods of a user that are on trial or not confirmed. The caller ends the sessions.
	DropOnTrial(ctx context.Context, tx *store.Tx, userID string) error
}

// Proof is what a request presents of an older method. Its members are those of the reauthentication.
type Proof struct {
	Password     string         `json:"password" format:"password" required:"false" doc:"The proof that users need to change their own ways to sign in, of an older one: the password, code, recovery_code or passkey. Without it, the error auth_m.proof_required lists what the user has."`
	Code         string         `json:"code" required:"false" maxLength:"64" example:"-" doc:"Instead of the password: of an authenticator app."`
	RecoveryCode string         `json:"recovery_code" required:"false" maxLength:"64" example:"-" doc:"Instead of the password."`
	Passkey      jsontext.Value `json:"passkey" required:"false" type:"object" example:"-" doc:"Instead of the password: what navigator.credentials.get returned for the options of POST /v1/users/{id}/reauthenticate/options."`
	Token        string         `json:"token" required:"false" maxLength:"128" example:"-" doc:"Only with a passkey: the token of its options."`
	OIDCCode     string         `json:"oidc_proof" required:"false" maxLength:"128" example:"-" doc:"Instead of the password: the one-time code of another sign-in with the provider (GET /authenticate/oidc?again=true)."`
}

// Answer returns the answer of a second factor.
func (p Proof) Answer() factor.Answer {
	return factor.Answer{Code: p.Code, RecoveryCode: p.RecoveryCode, Passkey: p.Passkey}
}

// Given returns the number of methods that are presented.
func (p Proof) Given() int {
	n := p.Answer().Given()
	if p.Password != "" {
		n++
	}
	if p.OIDCCode != "" {
		n++
	}
	return n
}

const (
	maxPasskey = 16 << 10
	maxCode    = 64
	maxToken   = 128
)

// Check checks the form of a proof. A missing one is no problem of the form: the error for it lists what the user has.
func (p *Proof) Check(v *apierr.Fields) {
	bounded := func(name, text string, limit int) {
		if utf8.RuneCountInString(text) > limit {
			v.Add(name, "invalid.max_length", apierr.Args{"Max": limit})
		}
	}
	bounded("code", p.Code, maxCode)
	bounded("recovery_code", p.RecoveryCode, maxCode)
	bounded("token", p.Token, maxToken)
	bounded("oidc_proof", p.OIDCCode, maxToken)
	switch p.Passkey.Kind() {
	case 'n', 0:
		p.Passkey = nil
	case '{':
		if len(p.Passkey) > maxPasskey {
			v.Add("passkey", "invalid.max_length", apierr.Args{"Max": maxPasskey})
		}
	default:
		v.Add("passkey", "invalid.type")
	}
	if p.Given() > 1 {
		v.Add("password", "invalid.one_authentication")
	} else if len(p.Passkey) > 0 && p.Token == "" {
		v.Add("token", "invalid.required")
	}
}
