// Package oidc signs staff in with the operator's OpenID Connect provider, and owns the identities that link users to
// accounts there.
//
// A sign-in is a chain of four requests. The browser is redirected to the provider (begin.go), returns with an authorization
// code (begin.go), and gets a one-time code, which the console exchanges for tokens (exchange.go). A sealed cookie binds the
// first two, a random one the last two. Nothing is stored before the provider has answered.
//
// The package trusts the provider for the identity and the roles of users who are linked, and for nothing else. It never
// links a user because of an equal e-mail address: see [ADR 15].
//
// [ADR 15]: docs/adr/0015-linking-is-confirmed.md
package oidc

import (
	"cmp"
	"context"
	"encoding/base64"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/kit/records"
	"kontor/modules/kit/signin"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
	"kontor/store"
)

// MappedRole states that users with a value of the roles claim hold a role.
type MappedRole struct {
	Claim string // value of the claim
	Role  string // name of the role
}

// Options are the settings of the module. Without Issuer the sign-in is off.
type Options struct {
	Issuer       string
	ClientID     string
	ClientSecret string // empty: a public client
	Name         string // of the provider, for people; empty: the host of the issuer
	Scopes       []string
	RolesClaim   string
	RoleMap      []MappedRole
	CreateUsers  bool

	BaseURL string        // address of this installation
	Timeout time.Duration // of each request to the provider; 0: 8 seconds
	Policy  *access.Current
	Texts   endpoint.Texts
	Log     *slog.Logger
	// SignedIn are the successful answers of a sign-in, for the API document.
	SignedIn []endpoint.Answer
}

const defaultTimeout = 8 * time.Second

// Sessions is what the module needs from sign-in.
type Sessions interface {
	signin.Rule
	// NextStep returns the answer to a user who must show a further factor first, or nil. It must not be called from within a
	// transaction. methods are the authentication methods that the provider states (RFC 8176), at is the time of the authentication
	// there; 0: unknown, or by an account on trial.
	NextStep(ctx context.Context, userID string, methods []string, at store.Time) (step any, err error)
	// OpenFederatedSession opens a session, records the sign-in and returns its tokens. at is as for NextStep.
	OpenFederatedSession(ctx context.Context, tx *store.Tx, userID string, methods []string, at store.Time) (tokens any, err error)
	// EndSessions ends all sessions of the user except one, or all when exceptSessionID is empty.
	EndSessions(ctx context.Context, tx *store.Tx, userID, exceptSessionID string) error
}

// Users is what the module needs from the directory.
type Users interface {
	// LoginKey returns the value_key of a credential.
	LoginKey(value string) string
	// CreateFederated creates an active user without a password. It returns apierr.CredentialExists.
	CreateFederated(ctx context.Context, tx *store.Tx, n signin.NewUser) (userID string, err error)
	// SyncRoles gives a user those of the managed roles that are wanted, and takes the others. keptAdministrator reports that
	// the last administrator keeps that role although it is not wanted.
	SyncRoles(ctx context.Context, tx *store.Tx, userID string, managed, wanted []string) (keptAdministrator bool, err error)
}

// Outbox is what the module needs from notifications.
type Outbox interface {
	// CredentialAdded notifies a user that they can sign in in another way. value names it, undo is the path of the link that
	// removes it.
	CredentialAdded(ctx context.Context, tx *store.Tx, userID, value, undo string) error
	// CredentialRemoved notifies a user that they can no longer sign in that way. undo is empty: no link restores it.
	CredentialRemoved(ctx context.Context, tx *store.Tx, userID, value, undo string) error
}

// Service is the module.
type Service struct {
	options  Options
	db       *store.DB
	sessions Sessions
	users    Users
	outbox   Outbox
	provider *provider // nil: off
	running  chan struct{}
}

// maxRunning is the number of sign-ins that may wait for the provider at the same time.
const maxRunning = 16

// New returns the module on a database. It makes no request to the provider.
func New(db *store.DB, sessions Sessions, users Users, outbox Outbox, o Options) *Service {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.Policy = cmp.Or(o.Policy, &access.Current{})
	o.Timeout = cmp.Or(o.Timeout, defaultTimeout)
	o.BaseURL = strings.TrimRight(o.BaseURL, "/")
	s := &Service{options: o, db: db, sessions: sessions, users: users, outbox: outbox, running: make(chan struct{}, maxRunning)}
	if o.Issuer != "" {
		s.provider = newProvider(o, db.Now)
	}
	return s
}

// Name returns the name of the provider for the sign-in screen, or an empty text when the sign-in is off.
func (s *Service) Name() string {
	if s.provider == nil || s.options.Name != "" {
		return s.options.Name
	}
	if u, err := url.Parse(s.options.Issuer); err == nil {
		return u.Host
	}
	return s.options.Issuer
}

// Start logs the roles of the setting that do not exist. They are ignored until someone creates them.
func (s *Service) Start(ctx context.Context) error {
	for _, m := range s.options.RoleMap {
		id, err := selectRoleID(ctx, s.db, m.Role)
		if err != nil {
			return err
		}
		if id == "" {
			s.options.Log.Warn("auth.oidc.role_map names a role that does not exist", "role", m.Role)
		}
	}
	return nil
}

// Discover reads the configuration of the provider if that is due. It runs regularly, so that readiness shows a failure
// before a user meets it.
func (s *Service) Discover(ctx context.Context) error {
	if s.provider != nil {
		_, _ = s.provider.get(ctx) // it logs a failure, and ready reports it
	}
	return nil
}

// Ready returns an error while the provider cannot be used. It makes no request.
func (s *Service) Ready(context.Context) error {
	if s.provider == nil {
		return nil
	}
	return s.provider.ready()
}

// Records returns the relations of users to identities.
func (s *Service) Records() map[access.RecordType]access.Records {
	return map[access.RecordType]access.Records{access.Identities: records.Of(s.db, &identityTable)}
}

// encode returns bytes in the form of states, codes and cookies.
func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// Endpoints returns the rows of the module. They exist also when the sign-in is off, and then answer 404, so that grants and
// the API document do not depend on a setting.
func (s *Service) Endpoints() []endpoint.Endpoint {
	staff := []string{access.Advisor}
	toProvider := endpoint.Answer{Status: http.StatusSeeOther, Says: "A redirect to the provider, or to the console with an error."}
	toConsole := endpoint.Answer{Status: http.StatusSeeOther, Says: "A redirect to the console with a one-time code or an error in the fragment."}
	return endpoint.Group("Authentication", ratelimit.Private, []endpoint.Endpoint{
		// Callers of these three have no access token yet. Browsers open the first two as pages.
		{Name: "oidc.begin", Method: http.MethodGet, Path: beginPath, Access: access.Public, Limit: ratelimit.Public,
			Summary: "Redirect to the sign-in provider.", Faults: []apierr.Kind{apierr.NotFound, apierr.Unavailable, apierr.OutcomeUnknown},
			Doc: endpoint.Doc{Answers: []endpoint.Answer{toProvider}, Description: "Without an answer of the provider, the fragment of the console's address has `error=" + apierr.OIDCUnavailable.Code + "`."}, Handle: endpoint.JSON(http.StatusSeeOther, s.begin)},
		{Name: "oidc.callback", Method: http.MethodGet, Path: callbackPath, Access: access.Public, Limit: ratelimit.Public,
			Summary: "Return from the sign-in provider.", Faults: []apierr.Kind{apierr.NotFound, apierr.Unavailable, apierr.OutcomeUnknown},
			Doc: endpoint.Doc{Answers: []endpoint.Answer{toConsole}, Description: describeFragment()}, Handle: endpoint.JSON(http.StatusSeeOther, s.callback)},
		{Name: "oidc.exchange", Method: http.MethodPost, Path: beginPath, Access: access.Public, Limit: ratelimit.Public,
			Summary: "Complete a sign-in with the provider.",
			Faults:  []apierr.Kind{apierr.NotFound, apierr.OIDCInvalidCode, apierr.OIDCNoAccount},
			Doc:     endpoint.Doc{Answers: s.options.SignedIn, Headers: []string{endpoint.DeviceHeader, endpoint.TokenHeader}},
			Handle:  endpoint.JSON(http.StatusOK, s.exchange)},
		{Name: "oidc.identities", Method: http.MethodGet, Path: "/v1/users/{id}/identities", Access: access.On(access.Identities, access.Read), Roles: staff,
			Summary: "List the accounts at the provider with which a user may sign in.", Faults: []apierr.Kind{apierr.UserNotFound},
			Doc: endpoint.Doc{Search: identityList.Search()}, Handle: endpoint.JSON(http.StatusOK, s.identities)},
		// Users link an account of their own without a grant on the type, which a rule for creation would require.
		{Name: "oidc.link", Method: http.MethodPost, Path: "/v1/users/{id}/identities", Subject: access.UserIn("id"), Access: access.SignedIn, Roles: staff,
			Summary:   "Link an account at the provider to a user.",
			Assurance: endpoint.SecondFactor, Find: s.findLinkable, MaxBody: signin.MaxBody,
			Faults: []apierr.Kind{apierr.NotFound, apierr.UserNotFound, apierr.OIDCInvalidCode, apierr.NotStaff, apierr.IdentityExists,
				apierr.TooManyIdentities, apierr.ProofRequired, apierr.MethodOnTrial, apierr.LockedOut},
			Handle: endpoint.JSON(http.StatusCreated, s.link)},
		{Name: "oidc.unlink", Method: http.MethodDelete, Path: "/v1/users/{id}/identities/{identity_id}", Subject: access.UserIn("id"), Access: access.On(access.Identities, access.Delete), Roles: staff,
			Summary:   "Unlink an account at the provider from a user.",
			Assurance: endpoint.SecondFactor, Find: s.findDeletable, MaxBody: signin.MaxBody,
			Faults: []apierr.Kind{apierr.UserNotFound, apierr.IdentityNotFound, apierr.OlderMethodKept,
				apierr.ProofRequired, apierr.MethodOnTrial, apierr.LockedOut},
			Handle: endpoint.JSON(http.StatusOK, s.unlink)},
	})
}

type beginInput struct {
	ReturnTo string `query:"return_to" maxLength:"512" example:"/customers" doc:"A path of the console to open after the sign-in."`
	Again    bool   `query:"again" doc:"Whether the person must authenticate at the provider again, to prove themself for a change: the console then gets oidc_proof, and nobody is signed in."`
}

// Validate accepts paths of the console only: an address of another site would make this one an open redirect.
func (in *beginInput) Validate(v *apierr.Fields) {
	if in.ReturnTo != "" && !isConsolePath(in.ReturnTo) {
		v.Add("return_to", "invalid.console_path")
	}
}

// callbackInput is not validated: browsers open the address as a page, and every error must return to the console.
type callbackInput struct {
	Code   string `query:"code" doc:"The authorization code."`
	State  string `query:"state" doc:"The state of the sign-in."`
	Issuer string `query:"iss" doc:"The issuer of the answer (RFC 9207)."`
	Error  string `query:"error" doc:"An error code of OAuth 2.0. Its description is ignored."`
}

type exchangeInput struct {
	Code string `json:"code" doc:"The one-time code from the fragment. It is valid for one minute, once, in the browser that has signed in."`
}

// Validate requires a code.
func (in *exchangeInput) Validate(v *apierr.Fields) {
	if in.Code == "" {
		v.Add("code", "invalid.required")
	}
}

type linkInput struct {
	UserID  string `path:"id"`
	Code    string `json:"code" required:"false" example:"-" doc:"The one-time code from the fragment. The caller links an account of their own, in the browser that has signed in there."`
	Subject string `json:"subject" required:"false" maxLength:"255" example:"248289761001" doc:"Id of the account at the issuer, for callers who may create identities."`

	// The members of signin.Proof. Its code has another name, because code was taken.
	Password     string         `json:"password" format:"password" required:"false" doc:"The proof that users need for an account of their own: the password, factor_code, recovery_code or passkey. Without it, the error auth_m.proof_required lists what the user has."`
	FactorCode   string         `json:"factor_code" required:"false" maxLength:"64" example:"-" doc:"Instead of the password: of an authenticator app."`
	RecoveryCode string         `json:"recovery_code" required:"false" maxLength:"64" example:"-" doc:"Instead of the password."`
	Passkey      jsontext.Value `json:"passkey" required:"false" type:"object" example:"-" doc:"Instead of the password: what navigator.credentials.get returned for the options of POST /v1/users/{id}/reauthenticate/options."`
	Token        string         `json:"token" required:"false" maxLength:"128" example:"-" doc:"Only with a passkey: the token of its options."`
	OIDCCode     string         `json:"oidc_proof" required:"false" maxLength:"128" example:"-" doc:"Instead of the password: the one-time code of another sign-in with an account that is linked already."`
}

// proof returns the proof of the caller.
func (in *linkInput) proof() signin.Proof {
	return signin.Proof{Password: in.Password, Code: in.FactorCode, RecoveryCode: in.RecoveryCode, Passkey: in.Passkey, Token: in.Token, OIDCCode: in.OIDCCode}
}

// Validate requires exactly one of the members.
func (in *linkInput) Validate(v *apierr.Fields) {
	switch {
	case in.Code == "" && in.Subject == "":
		v.Add("subject", "invalid.required")
	case in.Code != "" && in.Subject != "":
		v.Add("subject", "invalid.one_of_two", apierr.Args{"Other": "code"})
	case in.Subject != "" && !isSubject(in.Subject):
		v.Add("subject", "invalid.subject", apierr.Args{"Max": maxSubject})
	}
	p, problems := in.proof(), &apierr.Fields{}
	p.Check(problems)
	for field, text := range problems.All {
		if field == "code" {
			field = "factor_code"
		}
		v.Add(field, text.Key, text.Args)
	}
	in.Passkey = p.Passkey
}

type unlinkInput struct {
	UserID     string `path:"id"`
	IdentityID string `path:"identity_id"`
	signin.Proof
}

// Validate checks the form of the proof.
func (in *unlinkInput) Validate(v *apierr.Fields) { in.Proof.Check(v) }

// describeFragment describes the errors that reach the console in the fragment of its address.
func describeFragment() string {
	var codes []string
	for _, kind := range []apierr.Kind{apierr.OIDCUnavailable, apierr.OIDCExpired, apierr.OIDCCancelled, apierr.OIDCFailed, apierr.OIDCNoAccount} {
		codes = append(codes, "`"+kind.Code+"`")
	}
	return "A rejected sign-in redirects, too: the member `error` of the fragment is one of " + strings.Join(codes, ", ") + "."
}
