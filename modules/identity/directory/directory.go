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
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"
	"net/http"
	"time"

	"kontor/modules/kit/event"
	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/modules/kit/revocable"
	"kontor/modules/kit/signin"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
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
	PrepareOTP(m event.OTPMessage) func(ctx context.Context, tx *store.Tx) error
	// PasswordChanged notifies a user that their password was replaced.
	PasswordChanged(ctx context.Context, tx *store.Tx, userID string) error
	// CredentialAdded notifies a user at all older addresses that a credential was added. value is its masked value, undo the path of
	// the link that removes it.
	CredentialAdded(ctx context.Context, tx *store.Tx, userID, value, undo string) error
	// CredentialRemoved notifies a user at all validated addresses that a credential was deleted. undo is the path of the link that
	// restores it; empty: none.
	CredentialRemoved(ctx context.Context, tx *store.Tx, userID, value, undo string) error
}

// Options are the settings of the module. A zero value means the default.
type Options struct {
	OTPLife     time.Duration // validity of a code; default 10 minutes
	OTPAttempts int           // attempts per code; default 5
	// InvitationLife is the validity of the link of an invitation; default 7 days.
	InvitationLife time.Duration
	InviteAny      bool            // a user may invite any number of people, for the seed files of a sandbox
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
	db      *store.DB
	auth    Auth
	outbox  Outbox
	texts   endpoint.Texts
	people  *revocable.Cache[knownPerson] // by id
	changes *revocable.Generations        // of people, by id

	Peers Peers // set once, before the first request

	peopleTopic *store.Topic // users whose name, roles or sign-in names have changed
}

// Peers are what users need of modules that are built later, because they need users.
type Peers struct {
	Terms     terms     // nil: no role begins or ends by itself
	Notifier  notifier  // of the end of roles
	Customers customers // nil: addresses belong to no customer
}

// New returns the service.
func New(db *store.DB, auth Auth, outbox Outbox, texts endpoint.Texts, o Options) *Service {
	o.OTPLife = cmp.Or(o.OTPLife, defaultOTPLife)
	o.OTPAttempts = cmp.Or(o.OTPAttempts, defaultOTPAttempts)
	o.InvitationLife = cmp.Or(o.InvitationLife, defaultInvitationLife)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.Policy = cmp.Or(o.Policy, &access.Current{})
	s := &Service{Options: o, db: db, auth: auth, outbox: outbox, texts: texts,
		people: revocable.NewCache[knownPerson](maxPeople), changes: revocable.NewGenerations(db.Remembers)}
	db.RegisterMoments(
		store.Moment{Table: "otps", Of: "created_at", Moves: []string{"created_at", "expires_at"}},
		store.Moment{Table: "otp_sends", Of: "sent_at", Moves: []string{"sent_at"}},
		store.Moment{Table: "invitations", Of: "sent_at", Moves: []string{"sent_at", "expires_at"}})
	s.peopleTopic = db.Topic("directory.people", s.changes.End)
	return s
}

// Close ends the goroutines of the cache of people.
func (s *Service) Close() { s.people.Close() }

const tag = "Users"

// Endpoints returns the rows of the module.
func (s *Service) Endpoints() []endpoint.Endpoint {
	var (
		signedUp = []string{access.Advisor, access.Customer, access.Registrant}
		members  = []string{access.Advisor, access.Customer}
		advisors = []string{access.Advisor}
	)
	rows := []endpoint.Endpoint{
		{Name: "users.register", Method: http.MethodPost, Path: "/v1/users/initiate-registration",
			Access: access.APIKey, Summary: "Register a user.",
			Faults: []apierr.Kind{apierr.CredentialExists, apierr.DisplayNameReserved, apierr.OTPSendLimited},
			Doc:    endpoint.Doc{Headers: []string{endpoint.DeviceHeader}},
			Handle: endpoint.JSON(http.StatusCreated, s.register)},
		// Public: an applicant who has left the page or changed the device has no token. The service limits by address and network.
		{Name: "users.complete_registration", Method: http.MethodPost, Path: "/v1/users/complete-registration",
			Access: access.Public, Summary: "Complete a registration with the code and the password.",
			Faults: []apierr.Kind{apierr.InvalidOTP, apierr.OTPExpired, apierr.OTPAttemptsExceeded, apierr.CredentialExists, apierr.LockedOut},
			Handle: endpoint.JSON(http.StatusOK, s.completeRegistration)},
		{Name: "users.resend_registration", Method: http.MethodPost, Path: "/v1/users/resend-registration-code",
			Access: access.Public, Summary: "Send a new code for a registration.",
			Faults: []apierr.Kind{apierr.OTPSendLimited},
			Handle: endpoint.JSON(http.StatusOK, s.resendRegistration)},
		// Public: people who cannot sign in have no key of a program either. The service limits by address and network.
		{Name: "users.recover", Method: http.MethodPost, Path: "/v1/users/initiate-recovery",
			Access: access.Public, Summary: "Start the recovery of an account.",
			Faults: []apierr.Kind{apierr.OTPSendLimited}, Reports: endpoint.Event{Kind: endpoint.Recovery, Action: "users.recovery_started"},
			Handle: endpoint.JSON(http.StatusOK, s.initiateRecovery)},
		{Name: "users.complete_recovery", Method: http.MethodPost, Path: "/v1/users/complete-recovery",
			Access: access.Public, Summary: "Complete the recovery of an account.",
			Faults: []apierr.Kind{apierr.InvalidOTP}, Reports: endpoint.Event{Kind: endpoint.Recovery, Action: "users.recovery_completed"},
			Handle: endpoint.JSON(http.StatusOK, s.completeRecovery)},
		{Name: "users.list", Method: http.MethodGet, Path: "/v1/users",
			Access: access.On(access.Users, access.Read), Roles: advisors, Summary: "List users.",
			Doc:    endpoint.Doc{Search: userList.Search()},
			Handle: endpoint.JSON(http.StatusOK, s.list)},
		{Name: "users.me", Method: http.MethodGet, Path: "/v1/users/me",
			Access: access.SignedIn, Roles: []string{access.Everyone, access.Registrant}, Summary: "Get the caller's user.", WithoutFactor: true,
			Handle: endpoint.JSON(http.StatusOK, s.me)},
		{Name: "users.get", Method: http.MethodGet, Path: "/v1/users/{id}",
			Access: access.On(access.Users, access.Read), Roles: members, Summary: "Get a user.",
			Faults: []apierr.Kind{apierr.UserNotFound},
			Handle: endpoint.JSON(http.StatusOK, s.get)},
		{Name: "users.update", Method: http.MethodPatch, Path: "/v1/users/{id}", Subject: access.UserIn("id"),
			Access: access.On(access.Users, access.Update), Roles: members,
			Summary: "Update a user.", Assurance: endpoint.SecondFactor.When("the status changes"),
			WithoutFactor: true, // for the language of the user; update checks the rest
			Faults: []apierr.Kind{apierr.UserNotFound, apierr.DisplayNameReserved, apierr.LastAdministrator, apierr.PreconditionFailed,
				apierr.FactorRequired},
			Handle: endpoint.JSON(http.StatusOK, s.update)},
		{Name: "users.password", Method: http.MethodPut, Path: "/v1/users/{id}/password", Subject: access.UserIn("id"),
			Access: access.SignedIn, Roles: members, Summary: "Change a password.", PeopleOnly: true,
			Assurance: endpoint.SecondFactor.When("the password is that of another user, or the user has a second factor"),
			Faults:    []apierr.Kind{apierr.UserNotFound, apierr.LockedOut, apierr.PreconditionFailed, apierr.ServiceAccount},
			Handle:    endpoint.JSON(http.StatusOK, s.changePassword)},
		{Name: "users.roles", Method: http.MethodPut, Path: "/v1/users/{id}/roles", Subject: access.UserIn("id"),
			Access: access.On(access.Users, access.Update), Summary: "Replace the roles of a user.",
			Assurance: endpoint.SecondFactor, Find: records.Finder(s.db, &userTable, access.Update),
			Faults: []apierr.Kind{apierr.UserNotFound, apierr.GrantNotHeld, apierr.LastAdministrator, apierr.PreconditionFailed},
			Handle: endpoint.JSON(http.StatusOK, s.setRoles)},
		{Name: "users.invitations.create", Method: http.MethodPost, Path: "/v1/invitations", Subject: access.NoSubject("the roles of the invitation are compared with those of the caller"),
			Access: access.On(access.Users, access.Create), Summary: "Invite a person by e-mail.",
			Assurance: endpoint.SecondFactor,
			Faults:    []apierr.Kind{apierr.GrantNotHeld, apierr.CredentialExists, apierr.OTPSendLimited},
			Handle:    endpoint.JSON(http.StatusCreated, s.invite)},
		{Name: "users.invitations.list", Method: http.MethodGet, Path: "/v1/invitations",
			Access: access.On(access.Users, access.Create), Summary: "List open and expired invitations.",
			Doc:    endpoint.Doc{Search: invitationList.Search()},
			Handle: endpoint.JSON(http.StatusOK, s.invitations)},
		{Name: "users.invitations.resend", Method: http.MethodPost, Path: "/v1/invitations/{id}/resend", Subject: access.InvitationIn("id"),
			Access: access.On(access.Users, access.Create), Summary: "Send an invitation again, with a new link.",
			Assurance: endpoint.SecondFactor, Find: s.findInvitation,
			Faults: []apierr.Kind{apierr.InvitationNotFound, apierr.OTPSendLimited},
			Handle: endpoint.JSON(http.StatusOK, s.resendInvitation)},
		{Name: "users.invitations.withdraw", Method: http.MethodDelete, Path: "/v1/invitations/{id}", Subject: access.InvitationIn("id"),
			Access: access.On(access.Users, access.Create), Summary: "Withdraw an invitation.",
			Faults: []apierr.Kind{apierr.InvitationNotFound},
			Handle: endpoint.JSON(http.StatusOK, s.withdrawInvitation)},
		{Name: "users.invitations.view", Method: http.MethodPost, Path: "/v1/invitations/view",
			Access:  access.Public, // for people who have no account yet: the secret of the link authenticates them
			Summary: "Get the invitation of a link.",
			Faults:  []apierr.Kind{apierr.InvitationInvalid},
			Handle:  endpoint.JSON(http.StatusOK, s.viewInvitation)},
		{Name: "users.invitations.accept", Method: http.MethodPost, Path: "/v1/invitations/accept",
			Access:  access.Public, // as the row before
			Summary: "Accept an invitation and choose a password.",
			Faults:  []apierr.Kind{apierr.InvitationInvalid},
			Handle:  endpoint.JSON(http.StatusOK, s.accept)},
		{Name: "users.credentials.list", Method: http.MethodGet, Path: "/v1/users/{id}/credentials",
			Access: access.On(access.Credentials, access.Read), Roles: signedUp, Summary: "List the credentials of a user.",
			Faults: []apierr.Kind{apierr.UserNotFound},
			Doc:    endpoint.Doc{Search: credentialList.Search()},
			Handle: endpoint.JSON(http.StatusOK, s.listCredentials)},
		{Name: "users.credentials.create", Method: http.MethodPost, Path: "/v1/users/{id}/credentials", Subject: access.UserIn("id"),
			// Users add credentials of their own without a grant on the type, which a rule for creation would require.
			Access: access.SignedIn, Roles: members, Summary: "Add a credential to a user.",
			Assurance: endpoint.SecondFactor, Find: s.findForCredential,
			Faults: []apierr.Kind{apierr.UserNotFound, apierr.CredentialExists, apierr.TooManyCredentials, apierr.OTPSendLimited, apierr.ServiceAccount,
				apierr.ProofRequired, apierr.MethodOnTrial, apierr.LockedOut},
			Handle: endpoint.JSON(http.StatusCreated, s.addCredential)},
		{Name: "users.credentials.validate", Method: http.MethodPut, Path: "/v1/users/{id}/credentials/{credential_id}/validate", Subject: access.UserIn("id"),
			Access: access.On(access.Credentials, access.Update), Roles: signedUp, Summary: "Validate a credential.",
			Assurance: endpoint.SecondFactor.When("the user is not pending"),
			Faults: []apierr.Kind{apierr.UserNotFound, apierr.CredentialNotFound, apierr.CredentialValidated, apierr.InvalidOTP,
				apierr.OTPExpired, apierr.OTPAttemptsExceeded, apierr.CredentialExists, apierr.PreconditionFailed,
				apierr.ProofRequired, apierr.MethodOnTrial, apierr.LockedOut},
			Handle: endpoint.JSON(http.StatusOK, s.validate)},
		{Name: "users.credentials.send_otp", Method: http.MethodPost, Path: "/v1/users/{id}/credentials/{credential_id}/otp", Subject: access.UserIn("id"),
			Access: access.On(access.Credentials, access.Update), Roles: signedUp, Summary: "Send a one-time code for a credential.",
			Faults: []apierr.Kind{apierr.UserNotFound, apierr.CredentialNotFound, apierr.CredentialValidated, apierr.OTPSendLimited},
			Handle: endpoint.JSON(http.StatusOK, s.resend)},
		{Name: "users.credentials.delete", Method: http.MethodDelete, Path: "/v1/users/credentials/{cred_id}", Subject: access.CredentialIn("cred_id"),
			Access: access.On(access.Credentials, access.Delete), Roles: members, Summary: "Delete a credential.",
			Assurance: endpoint.SecondFactor, Find: records.Finder(s.db, &credentialTable, access.Delete),
			Faults: []apierr.Kind{apierr.UserNotFound, apierr.LastCredential, apierr.CredentialTooNew},
			Handle: endpoint.JSON(http.StatusOK, s.deleteCredential)},
	}
	for i := range rows {
		if rows[i].Name == "users.update" || rows[i].Name == "users.roles" || rows[i].Name == "users.credentials.create" {
			rows[i].Faults = append(rows[i].Faults, apierr.RecordErased)
		}
		rows[i].Tag, rows[i].Limit = tag, ratelimit.Private
		if rows[i].Access.IsPublic() {
			rows[i].Limit = ratelimit.Public
		}
	}
	return rows
}

const userColumns = "id, display_name, status, language, created_at, modified_at, last_login_at, version, erased_at, kind"

func scanUser(row records.Row) (User, error) {
	u := User{Roles: []string{}}
	err := row.Scan(&u.ID, &u.DisplayName, &u.Status, &u.Language, &u.CreatedAt, &u.ModifiedAt, &u.LastLoginAt, &u.version, &u.ErasedAt, &u.Kind)
	return u, err
}

// userTable holds the users as records. Users may read and update their own record; the service keeps them from changing what
// only administrators may change, such as the status.
var userTable = records.Table[User]{
	Type:      access.Users,
	From:      "users",
	Columns:   userColumns,
	Scan:      scanUser,
	Relations: []records.Relation{{Name: access.RelationSelf, Allows: access.Read | access.Update, SQL: "id = $1"}},
	Missing:   apierr.UserNotFound,
}

var userList = list.New(list.Source[User]{
	From:    "users",
	Columns: userColumns,
	ID:      "id",
	Created: "created_at",
	Tables:  []string{"users"},
	Fields: list.Fields{
		{Name: "id", Type: list.UUID, Column: "id"},
		{Name: "display_name", Type: list.Text, Column: "display_name", Key: "display_name_key", Order: "display_name_order", Fold: types.SearchKey, Index: list.ThenID},
		{Name: "kind", Type: list.Text, Column: "kind", Key: "kind", Index: list.ThenCreated},
		{Name: "status", Type: list.Text, Column: "status", Key: "status", Index: list.ThenCreated},
		{Name: "language", Type: list.Text, Column: "language", Key: "language", Index: list.ThenCreated},
		{Name: "created_at", Type: list.Time, Column: "created_at"},
		{Name: "modified_at", Type: list.Time, Column: "modified_at", Index: list.ThenID},
		{Name: "last_login_at", Type: list.Time, Column: "last_login_at", Null: true, Index: list.ThenID},
	},
	Scan: scanUser,
})

const (
	insertUser = `
		INSERT INTO users (
			id, status, language, created_at, created_by, modified_at, modified_by, display_name, display_name_key, display_name_skeleton, kind,
			display_name_order)
		VALUES ($1, $2, $3, $4, $5, $4, $5, $6, $7, $8, $9, $10)`

	updateUser = `
		UPDATE users SET
			status = $2, language = $3, modified_at = $4, modified_by = $5, version = version + 1,
			display_name = $7, display_name_key = $8, display_name_skeleton = $9, display_name_order = $10
		WHERE id = $1 AND version = $6`

	// Pending users whose only credential was taken over.
	disableEmptyUser = `
		UPDATE users SET status = 'disabled', modified_at = $2, modified_by = $3, version = version + 1
		WHERE id = $1 AND status = 'pending' AND NOT EXISTS (SELECT 1 FROM credentials WHERE user_id = $1)`

	touchUser = `UPDATE users SET modified_at = $2, modified_by = $3, version = version + 1 WHERE id = $1`

	selectRoleNames = `
		SELECT ur.user_id, r.name FROM held_roles ur JOIN role_names r ON r.id = ur.role_id
		WHERE ur.user_id IN (%s) ORDER BY r.name_key`

	selectRole = `SELECT id FROM role_names WHERE id = $1 OR name_key = $2`

	insertUserRole = `
		INSERT INTO user_roles (user_id, role_id, created_at, created_by) VALUES ($1, $2, $3, $4)
		ON CONFLICT (user_id, role_id) DO NOTHING`

	deleteUserRole = `DELETE FROM user_roles WHERE user_id = $1 AND role_id = $2`

	// Service accounts do not count: they cannot sign in, nor change roles. Nor do administrators whose role ends by itself.
	countOtherAdministrators = `
		SELECT count(*) FROM user_roles ur JOIN users u ON u.id = ur.user_id
		WHERE ur.role_id = $1 AND ur.in_force = TRUE AND ur.expires_at IS NULL AND u.status = 'active' AND u.kind = 'person' AND u.id <> $2`
)

// fillRoles adds to users the names of their roles, and those roles with a beginning or an end.
func fillRoles(ctx context.Context, q store.Querier, users []User) error {
	ids, at := make([]string, len(users)), make(map[string]int, len(users))
	for i, u := range users {
		ids[i], at[u.ID] = u.ID, i
	}
	err := store.EachOf(ctx, q, func(row store.Scanner) error {
		var userID, name string
		if err := row.Scan(&userID, &name); err != nil {
			return err
		}
		u := &users[at[userID]]
		u.Roles = append(u.Roles, name)
		return nil
	}, selectRoleNames, ids)
	if err == nil {
		err = store.EachOf(ctx, q, func(row store.Scanner) error {
			var userID string
			var t Term
			if err := row.Scan(&userID, &t.Role, &t.StartsAt, &t.ExpiresAt, &t.InForce); err != nil {
				return err
			}
			u := &users[at[userID]]
			u.Terms = append(u.Terms, t)
			return nil
		}, selectTerms, ids)
	}
	if err != nil {
		return fmt.Errorf("read roles of users: %w", err)
	}
	return nil
}

// withRoles adds the roles to a user that was read.
func withRoles(ctx context.Context, q store.Querier, u User, err error) (User, error) {
	if err != nil {
		return User{}, err
	}
	one := []User{u}
	err = fillRoles(ctx, q, one)
	return one[0], err
}
