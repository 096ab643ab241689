// Package directory owns the people who use Kontor: users, their credentials, the one-time codes that validate credentials,
// the roles that users hold, and the names under which others see them.
//
// Passwords, sessions and tokens belong to the module auth, the meaning of roles to rbac. This package calls auth through
// [Auth] and sends messages through [Outbox], in the transaction of the change.
//
// An unvalidated credential is a claim. It reserves the value while its first code is valid, counted from the claim and not
// from later codes. After that the next user who claims the value gets it. A pending user without any other credential is then
// disabled. So a user cannot block a value that belongs to another user, and a validated value stays with its user.
//
// # Published views
//
// Other modules may name these views in their statements, but none of the tables:
//
//   - people: users by id, with display_name, status, language and kind.
//   - held_roles: one row for each role that a user holds now.
//   - assigned_roles: the same with roles that begin later, their terms, and who gave them.
//   - user_credentials: credentials with their type, value, value_key (see [LoginKey]), and whether and since when they are
//     validated and trusted.
//
// For data that a statement cannot join, they call the functions of lookup.go.
package directory

import (
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"
	"time"

	"kontor/modules/kit/signin"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// The kinds of users.
const (
	Person  = "person"  // signs in
	Machine = "service" // a service account: a program with tokens, see the module serviceaccounts
)

// The states of a user.
const (
	Pending  = "pending"  // registered, no credential validated yet
	Active   = "active"   // may do what their roles allow
	Disabled = "disabled" // may not sign in
)

// User is an account.
type User struct {
	ID          string      `json:"id"`
	DisplayName string      `json:"display_name" maxLength:"100" example:"Anna Keller" doc:"The name that the user or an administrator chose; empty for none."`
	Kind        string      `json:"kind" enum:"person,service" doc:"service for a service account: a program with tokens, which cannot sign in."`
	Status      string      `json:"status" enum:"pending,active,disabled"`
	Language    string      `json:"language" enum:"en,de,fr,it"`
	Roles       []string    `json:"roles" example:"Customer" doc:"Names, in alphabetical order."`
	Terms       []Term      `json:"role_terms,omitzero" form:"later" doc:"Roles that begin or end by themselves; missing from users without such roles."`
	CreatedAt   store.Time  `json:"created_at"`
	ModifiedAt  store.Time  `json:"modified_at"`
	LastLoginAt *store.Time `json:"last_login_at"`
	ErasedAt    *store.Time `json:"erased_at,omitzero" doc:"When the personal data was erased; missing from all other users."`

	version int64
}

// EachUser calls add with the user, so that administrators get the sign-in name and whether the user is staff.
func (u User) EachUser(add func(id string)) { add(u.ID) }

// Erased reports whether the personal data was erased. The record does not change any more.
func (u User) Erased() bool { return u.ErasedAt != nil }

// ETag returns the validator of the record. It covers the names of roles and the last sign-in, which change without a new
// version.
func (u User) ETag() string {
	h := fnv.New32a()
	for _, role := range u.Roles {
		fmt.Fprintf(h, "%q", role)
	}
	for _, t := range u.Terms {
		fmt.Fprintf(h, "%q %v %v %v", t.Role, t.StartsAt, t.ExpiresAt, t.InForce)
	}
	if u.LastLoginAt != nil {
		fmt.Fprintf(h, "%d", int64(*u.LastLoginAt))
	}
	return fmt.Sprintf("%d-%08x", u.version, h.Sum32())
}

// Auth is what the directory needs from sign-in.
type Auth interface {
	signin.Rule
	// CheckPassword adds what is wrong with a new password to problems. personal are values that it must not restate.
	CheckPassword(problems *apierr.Fields, field, password string, personal ...string)
	// HashPassword hashes a password for SetPassword. It is slow and must not be called from within a transaction.
	HashPassword(ctx context.Context, password string) (hash string, err error)
	// VerifyPassword returns apierr.InvalidCredentials for a wrong password and apierr.LockedOut after too many.
	VerifyPassword(ctx context.Context, userID, password string) error
	// TrustNetwork stores the network of the request as known to the user.
	TrustNetwork(ctx context.Context, tx *store.Tx, userID string) error
	// SetPassword stores a hash.
	SetPassword(ctx context.Context, tx *store.Tx, userID, hash string) error
	// PasswordPrinted reports whether the password of a user is still the one that the first start printed.
	PasswordPrinted(ctx context.Context, q store.Querier, userID string) (bool, error)
	// OpenSession starts a session that ends with its access token. expiresIn is the validity of the token in seconds.
	OpenSession(ctx context.Context, tx *store.Tx, userID string) (token string, expiresIn int, err error)
	// EndSessions ends all sessions of the user except one, or all when exceptSessionID is empty.
	EndSessions(ctx context.Context, tx *store.Tx, userID, exceptSessionID string) error
	// Changed reports that the transaction changes the status or roles of the user. It applies to the next request of each of
	// their sessions.
	Changed(tx *store.Tx, userID string)
}

// Outbox is what the directory needs from notifications.
type Outbox interface {
	// PrepareOTP renders a message and returns the function that stores it in the outbox.
	PrepareOTP(m OTPMessage) func(ctx context.Context, tx *store.Tx) error
	// PasswordChanged notifies a user that their password was replaced.
	PasswordChanged(ctx context.Context, tx *store.Tx, userID string) error
	// CredentialAdded notifies a user at all older addresses that a credential was added. value is its masked value, undo the path of
	// the link that removes it.
	CredentialAdded(ctx context.Context, tx *store.Tx, userID, value, undo string) error
	// CredentialRemoved notifies a user at all validated addresses that a credential was deleted.
	CredentialRemoved(ctx context.Context, tx *store.Tx, userID, value string) error
}

// OTPMessage is the message that carries a one-time code.
type OTPMessage struct {
	UserID    string
	Channel   string // email or sms
	Recipient string
	Language  string
	Purpose   string // validation, registration, recovery, invitation, or taken for a message without a code
	Code      string // of an invitation: the token of its link
	Minutes   int    // validity of the code
	Path      string // of the console's screen for the code; empty for none
}

// Options are the settings of the module. A zero value means the default.
type Options struct {
	OTPLife     time.Duration // validity of a code; default 10 minutes
	OTPAttempts int           // attempts per code; default 5
	// InvitationLife is the validity of the link of an invitation; default 7 days.
	InvitationLife time.Duration
	Log            *slog.Logger    // nil: no log
	PerHour        int             // codes per network and hour; registrations are limited to half as many more; 0: no limit
	Policy         *access.Current // decides who is staff; nil: only administrators are
}

const (
	defaultOTPLife     = 10 * time.Minute
	defaultOTPAttempts = 5
)

// Service is the module.
type Service struct {
	Options
	db     *store.DB
	auth   Auth
	outbox Outbox
	texts  endpoint.Texts
	people *peopleCache

	terms     terms     // nil before SetTerms
	notifier  notifier  // nil before SetTerms
	customers customers // nil before SetCustomers

	peopleTopic *store.Topic // users whose name, roles or sign-in names have changed
}

// New returns the service.
func New(db *store.DB, auth Auth, outbox Outbox, texts endpoint.Texts, o Options) *Service {
	if o.OTPLife <= 0 {
		o.OTPLife = defaultOTPLife
	}
	if o.OTPAttempts <= 0 {
		o.OTPAttempts = defaultOTPAttempts
	}
	if o.InvitationLife <= 0 {
		o.InvitationLife = defaultInvitationLife
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Policy == nil {
		o.Policy = &access.Current{}
	}
	s := &Service{Options: o, db: db, auth: auth, outbox: outbox, texts: texts, people: newPeopleCache()}
	s.peopleTopic = db.Topic("directory.people", s.people.drop)
	return s
}
