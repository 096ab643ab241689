// Package factors keeps the second factors of users: passkeys, authenticator apps and recovery codes.
//
// A factor is enrolled in two requests. The first one returns what the authenticator needs, and leaves a pending factor. The
// second one proves that the authenticator works, and activates it. A pending factor expires after ten minutes or five
// attempts, and belongs to the session that began it. With the first factor, a user gets ten recovery codes.
//
// Sign-in and reauthentication belong to the module auth. It counts attempts, and calls [Service.Methods],
// [Service.PasskeyOptions] and [Service.Verify]. An answer is verified before the transaction that accepts it. The transaction
// marks the factor as used, which rejects every repeated answer.
//
// Limits: authenticators are not attested, so that any passkey of any vendor is accepted. A passkey whose vendor synchronises
// it is as safe as the account with that vendor.
//
// The module owns the tables factors and recovery_codes. It publishes no views.
package factors

import (
	"context"
	"log/slog"
	"time"

	"kontor/modules/kit/event"
	"kontor/modules/kit/factor"
	"kontor/modules/kit/records"
	"kontor/modules/kit/signin"
	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/store"
)

// RecoveryCodes is the type of the factor that holds all recovery codes of a user. The other types have the names of their
// methods: [factor.Passkey] and [factor.TOTP].
const RecoveryCodes = "recovery_codes"

// The states of a factor.
const (
	pending = "pending" // enrolled, not confirmed
	active  = "active"
)

const (
	maxName = 100

	enrolmentLife     = 10 * time.Minute
	enrolmentAttempts = 5
)

// most is the number of factors of each type that a user may have.
var most = map[string]int{factor.Passkey: 10, factor.TOTP: 1}

// Factor is a factor as the API shows it.
type Factor struct {
	ID          string      `json:"id"`
	UserID      string      `json:"user_id"`
	Type        string      `json:"type" enum:"passkey,totp,recovery_codes" example:"totp"`
	Name        string      `json:"name" example:"Phone"`
	Status      string      `json:"status" enum:"pending,active" doc:"A pending factor is not confirmed yet and expires after ten minutes."`
	CreatedAt   store.Time  `json:"created_at"`
	LastUsedAt  *store.Time `json:"last_used_at"`
	TrustedFrom *store.Time `json:"trusted_from" doc:"Until then the factor can neither replace an older method of sign-in nor be the only proof for a sensitive change; null for one that is not confirmed or existed before this rule."`
	Remaining   *int        `json:"remaining,omitzero" example:"-" doc:"How many recovery codes are unused. Only for recovery codes."`

	version int64
}

// ETag returns the validator of the record.
func (f Factor) ETag() string { return endpoint.VersionTag(f.version) }

// EachUser names the owner of the factor.
func (f Factor) EachUser(add func(id string)) { add(f.UserID) }

// Auth is what the module needs from sign-in.
type Auth interface {
	signin.Rule
	// NewChallenge returns a token for data of the caller's session. The transaction that calls keep stores them.
	NewChallenge(ctx context.Context, userID string, data []byte) (token string, keep func(ctx context.Context, tx *store.Tx) error, err error)
	// TakeChallenge returns the data once. It returns apierr.InvalidInput for a token that is unknown, used or expired, or
	// belongs to another session.
	TakeChallenge(ctx context.Context, userID, token string) (data []byte, err error)
	// FactorVerified records in the caller's session that their first second factor was verified.
	FactorVerified(ctx context.Context, tx *store.Tx, amr []string) error
	// Changed invalidates what is cached about the sessions of a user.
	Changed(tx *store.Tx, userID string)
	// EndSessions ends all sessions of a user except one, or all when exceptID is empty.
	EndSessions(ctx context.Context, tx *store.Tx, userID, exceptID string) error
}

// Notifier is what the module needs from notifications.
type Notifier interface {
	// Prerender renders the messages of an event before its transaction.
	Prerender(ctx context.Context, e event.Event) event.Event
	// Notify stores the notifications and messages of an event.
	Notify(ctx context.Context, tx *store.Tx, e event.Event) error
}

// Options are the settings of the module.
type Options struct {
	BaseURL string // of the console; it decides whether passkeys can be used
	Issuer  string // name of the bank in authenticators
	Log     *slog.Logger
}

// Service is the module. Create one with [New].
type Service struct {
	access.Records // answers permission checks from the relations of the table

	db      *store.DB
	auth    Auth
	notify  Notifier
	texts   endpoint.Texts
	party   *relyingParty // nil: passkeys cannot be used
	options Options
}

// New returns the module on a database.
func New(db *store.DB, auth Auth, notify Notifier, texts endpoint.Texts, o Options) *Service {
	if o.Issuer == "" {
		o.Issuer = "Kontor"
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	db.RegisterSealed(store.SealedColumn{Table: factorsTable, Column: secretColumn, Select: selectOldSecrets, Update: updateSecret})
	return &Service{Records: records.Of(db, table), db: db, auth: auth, notify: notify, texts: texts, options: o,
		party: newRelyingParty(o.BaseURL, o.Issuer)}
}

// onTrial reports whether a factor is active and on trial.
func (f Factor) onTrial(now store.Time) bool { return f.TrustedFrom != nil && now < *f.TrustedFrom }

// changed is the event of a change to the factors of a user, rendered before its transaction. The change is a term of the
// locale files. Names of factors are no part of it: an attacker may have chosen them.
func (s *Service) changed(ctx context.Context, userID, change string) event.Event {
	return s.notify.Prerender(ctx, event.Event{Kind: event.FactorChanged, Type: access.Users, RecordID: userID,
		Recipients: []string{userID}, Args: map[string]any{"Change": change}})
}
