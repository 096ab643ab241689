// Package directory owns the people who use Kontor: users, their credentials, the one-time codes that validate credentials,
// the roles that users hold, and the names under which others see them.
//
// Passwords, sessions and tokens belong to the module auth, the meaning of roles to rbac. This package calls auth through
// [Auth] and sends messages through [Outbox], in the transaction of the change.
//
// An unvalidated credential is a claim. It reserves the value while its first code is valid, counted from the claim and not
// from later codes. After that the next user who asks for the value takes it over. A pending user without any other credential
// is disabled then. So nobody can block a value that belongs to somebody else, and a validated value stays with its user.
//
// # Published views
//
// Other modules may name these views in their statements, but none of the tables:
//
//   - people: users by id, with display_name, status and language.
//   - held_roles: one row for each role of a user.
//   - user_credentials: credentials with their type, value, value_key (see [LoginKey]), and whether and since when they are
//     validated and trusted.
//
// What a statement cannot join, they ask the functions of lookup.go.
package directory

import (
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"
	"time"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// The states of a user.
const (
	Pending  = "pending"  // registered, no credential validated yet
	Active   = "active"   // may do what his roles allow
	Disabled = "disabled" // may not sign in
)

// User is an account.
type User struct {
	ID          string      `json:"id"`
	DisplayName string      `json:"display_name" maxLength:"100" example:"Anna Keller" doc:"The name that the user or an administrator chose; empty for none."`
	Status      string      `json:"status" enum:"pending,active,disabled"`
	Language    string      `json:"language" enum:"en,de,fr,it"`
	Roles       []string    `json:"roles" example:"Customer" doc:"Names, in alphabetical order."` // names, in alphabetical order
	CreatedAt   store.Time  `json:"created_at"`
	ModifiedAt  store.Time  `json:"modified_at"`
	LastLoginAt *store.Time `json:"last_login_at"`

	version int64
}

// ETag names the state of the record. The names of roles and the last sign-in are part of it, though they change without
// a new version.
func (u User) ETag() string {
	h := fnv.New32a()
	for _, role := range u.Roles {
		fmt.Fprintf(h, "%q", role)
	}
	if u.LastLoginAt != nil {
		fmt.Fprintf(h, "%d", int64(*u.LastLoginAt))
	}
	return fmt.Sprintf("%d-%08x", u.version, h.Sum32())
}

// Auth is what users needs from sign-in.
type Auth interface {
	// CheckPassword notes under the field what is wrong with a new password. personal are values that it must not be.
	CheckPassword(problems *apierr.Fields, field, password string, personal ...string)
	// HashPassword hashes a password for SetPassword. It takes long and waits in a bounded queue.
	HashPassword(ctx context.Context, password string) (hash string, err error)
	// VerifyPassword returns apierr.InvalidCredentials for a wrong password and apierr.LockedOut after too many.
	VerifyPassword(ctx context.Context, userID, password string) error
	// RequireFresh returns apierr.StaleSession when the caller's password was shown too long ago.
	RequireFresh(ctx context.Context, q store.Querier) error
	// TrustNetwork remembers the network of the request as one from which the user signs in.
	TrustNetwork(ctx context.Context, tx *store.Tx, userID string) error
	// SetPassword stores a hash in place of the one before.
	SetPassword(ctx context.Context, tx *store.Tx, userID, hash string) error
	// PasswordPrinted reports whether the password of a user is still the one that the first start printed.
	PasswordPrinted(ctx context.Context, q store.Querier, userID string) (bool, error)
	// OpenSession starts a session that ends with its access token, which is valid for that many seconds.
	OpenSession(ctx context.Context, tx *store.Tx, userID string) (token string, expiresIn int, err error)
	// EndSessions ends all sessions of the user but one, which may be empty.
	EndSessions(ctx context.Context, tx *store.Tx, userID, exceptSessionID string) error
	// Changed tells that status or roles of the user change with the transaction: his sessions see it on their next request.
	Changed(tx *store.Tx, userID string)
}

// Outbox is what users needs from notifications.
type Outbox interface {
	// PrepareOTP words a message and gives the function that leaves it in the outbox.
	PrepareOTP(m OTPMessage) func(ctx context.Context, tx *store.Tx) error
	// PasswordChanged tells a user that his password was replaced.
	PasswordChanged(ctx context.Context, tx *store.Tx, userID string) error
	// CredentialAdded notifies a user at all validated addresses that a credential was added. value hints at it.
	CredentialAdded(ctx context.Context, tx *store.Tx, userID, value string) error
	// CredentialRemoved notifies a user at all validated addresses that one of them is deleted.
	CredentialRemoved(ctx context.Context, tx *store.Tx, userID, value string) error
}

// OTPMessage is a one-time code on its way to its user.
type OTPMessage struct {
	UserID    string
	Channel   string // email or sms
	Recipient string
	Language  string
	Purpose   string // validation, recovery, or taken for a message without a code
	Code      string
	Minutes   int // that the code is valid
}

// Options are the settings of users. The zero value of each means its default.
type Options struct {
	OTPLife     time.Duration   // how long a code is valid: 10 minutes
	OTPAttempts int             // how many tries a code has: 5
	Log         *slog.Logger    // nil: nothing is logged
	PerHour     int             // codes of a network in an hour; registrations are half as many again; 0: not limited
	Policy      *access.Current // decides who is staff; nil: only administrators are
}

const (
	defaultOTPLife     = 10 * time.Minute
	defaultOTPAttempts = 5
)

// Service keeps users and credentials.
type Service struct {
	Options
	db     *store.DB
	auth   Auth
	outbox Outbox
	texts  endpoint.Texts
	people *peopleCache
}

// New makes the service.
func New(db *store.DB, auth Auth, outbox Outbox, texts endpoint.Texts, o Options) *Service {
	if o.OTPLife <= 0 {
		o.OTPLife = defaultOTPLife
	}
	if o.OTPAttempts <= 0 {
		o.OTPAttempts = defaultOTPAttempts
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Policy == nil {
		o.Policy = &access.Current{}
	}
	return &Service{Options: o, db: db, auth: auth, outbox: outbox, texts: texts, people: newPeopleCache()}
}
