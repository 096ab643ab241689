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
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"
	"github.com/google/uuid"

	"kontor/modules/kit/event"
	"kontor/modules/kit/factor"
	"kontor/modules/kit/records"
	"kontor/modules/kit/signin"
	"kontor/modules/kit/validate"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
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
	o.Issuer = cmp.Or(o.Issuer, "Kontor")
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	db.RegisterSealed(store.SealedColumn{Table: factorsTable, Column: secretColumn, Select: selectOldSecrets, Update: updateSecret})
	db.RegisterMoments(stepMoment)
	return &Service{Records: records.Of(db, table), db: db, auth: auth, notify: notify, texts: texts, options: o,
		party: newRelyingParty(o.BaseURL, o.Issuer)}
}

// onTrial reports whether a factor is active and on trial.
func (f Factor) onTrial(now store.Time) bool { return f.TrustedFrom != nil && now < *f.TrustedFrom }

// changed is the event of a change to the factors of a user, rendered before its transaction. The change is a term of the
// locale files. Names of factors are no part of it: an attacker may have chosen them.
func (s *Service) changed(ctx context.Context, userID, change string) event.Event {
	return s.added(ctx, userID, change, "")
}

// account is a user as the library sees them.
type account struct {
	handle      []byte
	name, label string
	passkeys    []passkey
}

// handleOf returns the user handle that authenticators keep: the bytes of the user's id. It has no personal data, and it
// stays the same when the keys of the database are rotated. A keyed hash would not, and would end all passkeys.
func handleOf(userID string) ([]byte, error) {
	id, err := uuid.Parse(userID)
	if err != nil {
		return nil, fmt.Errorf("user handle of %q: %w", userID, err)
	}
	return id[:], nil
}

// WebAuthnID returns the user handle.
func (a account) WebAuthnID() []byte { return a.handle }

// WebAuthnName returns the name by which the user signs in.
func (a account) WebAuthnName() string { return a.name }

// WebAuthnDisplayName returns the name that authenticators show.
func (a account) WebAuthnDisplayName() string { return a.label }

// WebAuthnCredentials returns the user's passkeys. One that is damaged is left out.
func (a account) WebAuthnCredentials() []webauthn.Credential {
	found := make([]webauthn.Credential, 0, len(a.passkeys))
	for _, p := range a.passkeys {
		if c, err := p.credential(); err == nil {
			found = append(found, c)
		}
	}
	return found
}

// credential returns a stored passkey in the form of the library.
func (p passkey) credential() (webauthn.Credential, error) {
	id, idErr := base64.RawURLEncoding.DecodeString(p.credentialID)
	key, keyErr := base64.RawURLEncoding.DecodeString(p.publicKey)
	aaguid, aaguidErr := uuid.Parse(p.aaguid)
	if err := errors.Join(idErr, keyErr, aaguidErr); err != nil {
		return webauthn.Credential{}, fmt.Errorf("passkey %s: %w", p.id, err)
	}
	c := webauthn.Credential{ID: id, PublicKey: key, AttestationFormat: "none",
		Flags:         webauthn.CredentialFlags{UserPresent: true, UserVerified: true, BackupEligible: p.backupEligible, BackupState: p.backedUp},
		Authenticator: webauthn.Authenticator{AAGUID: aaguid[:], SignCount: uint32(p.signCount)}} //nolint:gosec // it was stored from 32 bits
	for _, t := range p.transports {
		c.Transport = append(c.Transport, protocol.AuthenticatorTransport(t))
	}
	return c, nil
}

// disabled is the status of users who must not sign in (see the view people of the directory).
const disabled = "disabled"

// checkUser returns apierr.InvalidFactor for a user who does not exist or must not sign in.
func checkUser(ctx context.Context, q store.Querier, userID string) error {
	status, err := userStatus(ctx, q, userID)
	if errors.Is(err, apierr.UserNotFound) || err == nil && status == disabled {
		return apierr.InvalidFactor.Wrap(errors.New("the user is disabled or does not exist"))
	}
	return err
}

// account returns a user with their passkeys, as authenticators see them. It returns apierr.InvalidFactor for a user who must
// not sign in.
func (s *Service) account(ctx context.Context, q store.Querier, userID string) (account, error) {
	err := checkUser(ctx, q, userID)
	if err != nil {
		return account{}, err
	}
	a := account{}
	if a.handle, err = handleOf(userID); err != nil {
		return account{}, err
	}
	if err := q.QueryRow(ctx, selectPerson, userID).Scan(&a.label, &a.name); err != nil {
		return account{}, fmt.Errorf("name of user %s: %w", userID, err)
	}
	if a.name == "" {
		a.name = userID
	}
	if a.label == "" {
		a.label = a.name
	}
	a.passkeys, err = store.All(ctx, q, scanPasskey, selectPasskeys, userID)
	return a, err
}

// Endpoints returns the endpoints of the module. Users whose role requires a second factor may call all of them without one, for
// their own factors.
func (s *Service) Endpoints() []endpoint.Endpoint {
	rows := []endpoint.Endpoint{
		{Name: "factors.list", Method: http.MethodGet, Path: "/v1/users/{id}/factors",
			Access: access.On(access.Factors, access.Read), Summary: "List the second factors of a user.",
			Faults: []apierr.Kind{apierr.UserNotFound}, Doc: endpoint.Doc{Search: factorList.Search()},
			Handle: endpoint.JSON(http.StatusOK, s.list)},
		{Name: "factors.enrol", Method: http.MethodPost, Path: "/v1/users/{id}/factors", Subject: access.SelfIn("id"),
			// Users enrol factors of their own without a grant on the type, which a rule for creation would require.
			Access: access.SignedIn, Assurance: endpoint.SecondFactor, Find: s.findUser,
			Summary: "Enrol a second factor, or replace the recovery codes.",
			MaxBody: signin.MaxBody, Doc: endpoint.Doc{Headers: []string{endpoint.DeviceHeader}},
			Faults: []apierr.Kind{apierr.UserNotFound, apierr.FactorNameExists, apierr.TooManyFactors, apierr.PasskeysUnavailable, apierr.NoSecondFactor,
				apierr.ProofRequired, apierr.MethodOnTrial, apierr.OlderMethodKept, apierr.LockedOut},
			Handle: endpoint.JSON(http.StatusCreated, s.enrol)},
		{Name: "factors.confirm", Method: http.MethodPost, Path: "/v1/users/{id}/factors/{factor_id}/confirm", Subject: access.SelfIn("id"),
			Access: access.On(access.Factors, access.Update), Assurance: endpoint.SecondFactor, Find: s.findOwn,
			Summary: "Confirm the enrolment of a second factor.",
			MaxBody: signin.MaxBody, Doc: endpoint.Doc{Headers: []string{endpoint.DeviceHeader}},
			Faults: []apierr.Kind{apierr.UserNotFound, apierr.FactorNotFound, apierr.FactorActive, apierr.EnrolmentOver, apierr.PasskeyExists,
				apierr.PasskeysUnavailable},
			Handle: endpoint.JSON(http.StatusOK, s.confirm)},
		{Name: "factors.rename", Method: http.MethodPatch, Path: "/v1/users/{id}/factors/{factor_id}", Subject: access.SelfIn("id"),
			Access: access.On(access.Factors, access.Update), Assurance: endpoint.SecondFactor, Find: s.findOwn,
			Summary: "Rename a second factor.",
			Faults:  []apierr.Kind{apierr.UserNotFound, apierr.FactorNotFound, apierr.FactorNameExists, apierr.PreconditionFailed},
			Handle:  endpoint.JSON(http.StatusOK, s.rename)},
		{Name: "factors.remove", Method: http.MethodDelete, Path: "/v1/users/{id}/factors/{factor_id}", Subject: access.UserIn("id"),
			Access: access.On(access.Factors, access.Delete), Assurance: endpoint.SecondFactor, Find: s.findRemovable,
			Summary: "Remove a second factor.", MaxBody: signin.MaxBody,
			Faults: []apierr.Kind{apierr.UserNotFound, apierr.FactorNotFound, apierr.OlderMethodKept, apierr.PreconditionFailed,
				apierr.ProofRequired, apierr.MethodOnTrial, apierr.LockedOut},
			Handle: endpoint.JSON(http.StatusOK, s.remove)},
	}
	for i := range rows {
		rows[i].Tag, rows[i].Limit, rows[i].WithoutFactor = "Second factors", ratelimit.Private, true
		rows[i].Roles = []string{access.Advisor, access.Customer}
		rows[i].Faults = append(rows[i].Faults, apierr.FactorRequired) // for the factors of other users
	}
	return rows
}

type enrolInput struct {
	UserID string `path:"id"`
	Type   string `json:"type" enum:"passkey,totp,recovery_codes" example:"totp" required:"true"`
	Name   string `json:"name" maxLength:"100" example:"Phone" doc:"How the user recognises the factor; by default a name for the type."`
	signin.Proof
}

// Validate checks the type and the name.
func (in *enrolInput) Validate(v *apierr.Fields) {
	validate.OneOf(v, "type", in.Type, factor.Passkey, factor.TOTP, RecoveryCodes)
	in.Name = validate.Line(v, "name", in.Name, maxName)
	in.Proof.Check(v)
}

type removeInput struct {
	UserID   string `path:"id"`
	FactorID string `path:"factor_id"`
	signin.Proof
}

// Validate checks the form of the proof.
func (in *removeInput) Validate(v *apierr.Fields) { in.Proof.Check(v) }

type renameInput struct {
	UserID   string `path:"id"`
	FactorID string `path:"factor_id"`
	Name     string `json:"name" maxLength:"100" example:"Phone" required:"true"`
}

// Validate requires a name.
func (in *renameInput) Validate(v *apierr.Fields) {
	in.Name = validate.Required(v, "name", in.Name, maxName)
}

type confirmInput struct {
	UserID   string         `path:"id"`
	FactorID string         `path:"factor_id"`
	Code     string         `json:"code" maxLength:"16" example:"287082" doc:"The code that an authenticator app shows."`
	Passkey  jsontext.Value `json:"passkey" type:"object" required:"false" example:"-" doc:"The answer of navigator.credentials.create, as PublicKeyCredential.toJSON returns it."`
	Token    string         `json:"token" maxLength:"256" example:"-" doc:"The token of the options, with a passkey."`
}

const (
	maxConfirmCode  = 16
	maxConfirmToken = 256
)

// Validate rejects a passkey that is no object, and texts that are too long. Which members are required depends on the factor.
func (in *confirmInput) Validate(v *apierr.Fields) {
	if utf8.RuneCountInString(in.Code) > maxConfirmCode {
		v.Add("code", "invalid.max_length", apierr.Args{"Max": maxConfirmCode})
	}
	if utf8.RuneCountInString(in.Token) > maxConfirmToken {
		v.Add("token", "invalid.max_length", apierr.Args{"Max": maxConfirmToken})
	}
	if kind := in.Passkey.Kind(); kind != 0 && kind != 'n' && kind != '{' {
		v.Add("passkey", "invalid.type")
	}
}

// check requires the members of the type of the factor.
func (in confirmInput) check(kind string) error {
	var v apierr.Fields
	required := func(field string, given bool) {
		if !given {
			v.Add(field, "invalid.required")
		}
	}
	if kind == factor.TOTP {
		required("code", in.Code != "")
	} else {
		required("passkey", in.Passkey.Kind() == '{')
		required("token", in.Token != "")
	}
	return v.Err()
}
