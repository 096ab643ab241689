// Package directory keeps the people who use Kontor: their accounts, the credentials by which they are known, the one-time
// codes that prove a credential is theirs, and the roles they hold.
//
// Passwords, sessions and tokens belong to sign-in, the meaning of a role to access control; this package asks the one
// through [Auth] and writes only the assignment of roles to users. What is sent goes through [Outbox], in the
// transaction of the change.
//
// A value that nobody has validated is a claim. It keeps others from registering the same value for as long as the first
// code is valid, counted from the claim and not from later codes; after that the next who asks for the value takes it
// over, and the account that consisted of nothing else is disabled. So nobody can hold a stranger's address by claiming
// it, and whoever validated a value keeps it.
package directory

import (
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"
	"time"

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
	// VerifyPassword returns apierr.InvalidCredentials for a wrong password and apierr.CoolingOff after too many.
	VerifyPassword(ctx context.Context, userID, password string) error
	// RequireFresh returns apierr.StaleSession when the caller's password was shown too long ago.
	RequireFresh(ctx context.Context, q store.Querier) error
	// TrustNetwork remembers the network of the request as one from which the user signs in.
	TrustNetwork(ctx context.Context, tx *store.Tx, userID string) error
	// SetPassword stores a hash in place of the one before.
	SetPassword(ctx context.Context, tx *store.Tx, userID, hash string) error
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
	OTPLife     time.Duration // how long a code is valid: 10 minutes
	OTPAttempts int           // how many tries a code has: 5
	Log         *slog.Logger  // nil: nothing is logged
	PerHour     int           // codes of a network in an hour; registrations are half as many again; 0: not limited
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
	return &Service{Options: o, db: db, auth: auth, outbox: outbox, texts: texts}
}
