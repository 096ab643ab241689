// Package oidc signs staff in with the operator's OpenID Connect provider, and owns the identities that link users to
// accounts there.
//
// A sign-in is a chain of four requests. The browser is redirected to the provider (begin.go), returns with an authorization
// code (callback.go), and gets a one-time code, which the console exchanges for tokens (exchange.go). A sealed cookie binds the
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
	"net/url"
	"strings"
	"time"

	"kontor/modules/kit/records"
	"kontor/modules/kit/signin"
	"kontor/server/access"
	"kontor/server/endpoint"
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

// NewUser is a user whom a first sign-in creates.
type NewUser struct {
	Email       string   // validated by the provider
	DisplayName string   // left out if it is not well-formed
	Language    string   // a language tag; unknown ones count as English
	Roles       []string // ids
}

// Users is what the module needs from the directory.
type Users interface {
	// LoginKey returns the value_key of a credential.
	LoginKey(value string) string
	// CreateFederated creates an active user without a password. It returns apierr.CredentialExists.
	CreateFederated(ctx context.Context, tx *store.Tx, n NewUser) (userID string, err error)
	// SyncRoles gives a user those of the managed roles that are wanted, and takes the others. keptAdministrator reports that
	// the last administrator keeps that role although it is not wanted.
	SyncRoles(ctx context.Context, tx *store.Tx, userID string, managed, wanted []string) (keptAdministrator bool, err error)
}

// Outbox is what the module needs from notifications.
type Outbox interface {
	// CredentialAdded notifies a user that they can sign in in another way. value names it, undo is the path of the link that
	// removes it.
	CredentialAdded(ctx context.Context, tx *store.Tx, userID, value, undo string) error
	// CredentialRemoved notifies a user that they can no longer sign in that way.
	CredentialRemoved(ctx context.Context, tx *store.Tx, userID, value string) error
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
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Policy == nil {
		o.Policy = &access.Current{}
	}
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
