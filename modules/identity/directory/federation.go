package directory

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"kontor/modules/kit/records"
	"kontor/modules/kit/signin"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

// never is the time from which the address of a federated user may recover the account. Otherwise people whose account at the
// provider was closed could set a password. An administrator can set one.
const never = store.Time(253402300799000) // the end of the year 9999

// CreateFederated stores a user without a password. It returns apierr.CredentialExists.
func (s *Service) CreateFederated(ctx context.Context, tx *store.Tx, n signin.NewUser) (userID string, err error) {
	id, err := parseIdentifier(Email, n.Email)
	if err != nil {
		return "", err
	}
	u := User{ID: store.NewID(), Status: Active, Language: types.English.String()}
	if name, err := types.ParseDisplayName(n.DisplayName); err == nil && n.DisplayName != "" {
		u.DisplayName = name
	}
	if len(n.Language) >= 2 {
		if language, err := types.ParseLanguage(n.Language[:2]); err == nil {
			u.Language = language.String()
		}
	}
	c := newCredential(u.ID, id)
	c.Validated, c.trustedFrom = true, never
	return u.ID, s.add(ctx, tx, &u, &c, "", n.Roles, records.Actor(ctx))
}

// SyncRoles gives a user those of the managed roles that are wanted, and takes the others; all are ids. The last administrator
// keeps that role: keptAdministrator reports it.
func (s *Service) SyncRoles(ctx context.Context, tx *store.Tx, userID string, managed, wanted []string) (keptAdministrator bool, err error) {
	u, err := userTable.GetUnchecked(ctx, tx, userID)
	if err != nil {
		return false, err
	}
	now, err := assignedTo(ctx, tx, userID)
	if err != nil {
		return false, err
	}
	target := slices.Clone(wanted)
	for _, a := range now {
		if a.inForce && !slices.Contains(managed, a.roleID) && !slices.Contains(target, a.roleID) {
			target = append(target, a.roleID)
		}
	}
	if !slices.Contains(target, access.Administrator) {
		err := s.keepAdministrator(ctx, tx, u)
		if errors.Is(err, apierr.LastAdministrator) {
			keptAdministrator, err = true, nil
			target = append(target, access.Administrator)
		}
		if err != nil {
			return false, err
		}
	}
	_, err = s.assign(ctx, tx, u, wantedRoles(now, target, nil), func(string) bool { return true })
	return keptAdministrator, err
}

// The module serviceaccounts calls the functions of this file: it owns what makes a user a service account.

// CreateMachine stores the active user of a service account and returns its id. roles are names or ids. The caller must be an
// administrator, an operator without a session, or hold the roles. It returns apierr.InvalidInput for unknown roles and
// apierr.GrantNotHeld.
func (s *Service) CreateMachine(ctx context.Context, tx *store.Tx, name string, roles []string) (id string, err error) {
	wanted, err := resolveRoles(ctx, tx, roles)
	if err != nil {
		return "", err
	}
	if err := s.CheckHeld(ctx, tx, wanted); err != nil {
		return "", err
	}
	u := User{ID: store.NewID(), Kind: Machine, DisplayName: name, Status: Active, Language: types.English.String(), Roles: []string{},
		CreatedAt: tx.Now(), ModifiedAt: tx.Now(), version: 1}
	by := records.Actor(ctx)
	if err := insertAccount(ctx, tx, &u, wanted, by); err != nil {
		return "", err
	}
	return u.ID, s.auditNew(ctx, tx, &u, by)
}

// CheckHeld returns apierr.GrantNotHeld if the caller does not hold all of the roles, given by id. Administrators hold all, and
// so does an operator without a session.
func (s *Service) CheckHeld(ctx context.Context, tx *store.Tx, roles []string) error {
	caller := access.From(ctx)
	if caller.UserID == "" || caller.UserID == store.NilID {
		return nil
	}
	return s.mayAssign(ctx, tx, caller.UserID, roles) // reads now: roles may have changed since the request was authenticated
}

// ChangeMachine changes the user of a service account. nil stays as it is; a status is Active or Disabled. It returns apierr.RecordErased.
func (s *Service) ChangeMachine(ctx context.Context, tx *store.Tx, id string, name, status *string) error {
	u, err := userTable.GetUnchecked(ctx, tx, id)
	if u, err = withRoles(ctx, tx, u, err); err != nil {
		return err
	}
	if u.Erased() {
		return apierr.RecordErased
	}
	if name != nil && *name != u.DisplayName {
		before := u
		u.DisplayName = *name
		if err := s.save(ctx, tx, before, &u, "users.update"); err != nil {
			return err
		}
	}
	if status == nil || *status == u.Status {
		return nil
	}
	return s.changeStatus(ctx, tx, &u, *status)
}

// NewUser describes a user whom an operator creates: active at once, with a validated credential.
type NewUser struct {
	ID       string // empty: a new one
	Type     string // email, phone or username; empty: derived from the value
	Value    string
	Password string
	Roles    []string // names or ids
	Language string   // empty: English

	DisplayName string // may be empty
}

// Prepared is a user that is ready to be stored.
type Prepared struct {
	user       User
	credential Credential
	roles      []string
	hash       string
}

// Prepare checks a new user and hashes their password. Callers must not call it from within a transaction, because hashing
// is slow. It returns apierr.InvalidInput.
func (s *Service) Prepare(ctx context.Context, n NewUser) (Prepared, error) {
	if n.Type == "" {
		n.Type = guessType(n.Value)
	}
	if n.Language == "" {
		n.Language = types.English.String()
	}
	var problems apierr.Fields
	id := checkIdentifier(&problems, "credential_type", "credential_value", n.Type, n.Value)
	if _, err := types.ParseLanguage(n.Language); err != nil {
		problems.Add("language", "invalid.language")
	}
	name := checkDisplayName(&problems, n.DisplayName)
	s.auth.CheckPassword(&problems, "password", n.Password, id.value)
	if err := problems.Err(); err != nil {
		return Prepared{}, err
	}
	hash, err := s.auth.HashPassword(ctx, n.Password)
	if err != nil {
		return Prepared{}, err
	}
	u := User{ID: cmp.Or(n.ID, store.NewID()), DisplayName: name, Status: Active, Language: n.Language}
	c := newCredential(u.ID, id)
	c.Validated = true
	return Prepared{user: u, credential: c, roles: n.Roles, hash: hash}, nil
}

// Store writes a prepared user with credential, password, roles and audit entries. It returns apierr.CredentialExists, and
// apierr.InvalidInput for an unknown role.
func (s *Service) Store(ctx context.Context, tx *store.Tx, p Prepared) (User, error) {
	roles, err := resolveRoles(ctx, tx, p.roles)
	if err != nil {
		return User{}, err
	}
	u, c := p.user, p.credential
	err = s.add(ctx, tx, &u, &c, p.hash, roles, records.Actor(ctx))
	return u, err
}

// Create calls Prepare, and Store in a transaction of its own.
func (s *Service) Create(ctx context.Context, n NewUser) (User, error) {
	p, err := s.Prepare(ctx, n)
	if err != nil {
		return User{}, err
	}
	var u User
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		u, err = s.Store(ctx, tx, p)
		return err
	})
	return u, err
}

// SetPassword replaces the password of the user with the id or credential and ends all their sessions. It returns
// apierr.UserNotFound and apierr.InvalidInput.
func (s *Service) SetPassword(ctx context.Context, login, password string) (User, error) {
	u, err := s.Find(ctx, s.db, login)
	if err != nil {
		return User{}, err
	}
	personal, err := s.values(ctx, u.ID)
	if err != nil {
		return User{}, err
	}
	var problems apierr.Fields
	s.auth.CheckPassword(&problems, "password", password, personal...)
	if err := problems.Err(); err != nil {
		return User{}, err
	}
	hash, err := s.auth.HashPassword(ctx, password)
	if err != nil {
		return User{}, err
	}
	return u, s.db.InTx(ctx, func(tx *store.Tx) error {
		return s.replacePassword(ctx, tx, u, hash, "", true)
	})
}

// SetRoles replaces the roles of the user with the id or credential. It returns apierr.UserNotFound,
// apierr.LastAdministrator, and apierr.InvalidInput for an unknown role.
func (s *Service) SetRoles(ctx context.Context, login string, namesOrIDs []string) (User, error) {
	var u User
	err := s.db.InTx(ctx, func(tx *store.Tx) (err error) {
		if u, err = s.Find(ctx, tx, login); err != nil {
			return err
		}
		wanted, err := resolveRoles(ctx, tx, namesOrIDs)
		if err != nil {
			return err
		}
		if !slices.Contains(wanted, access.Administrator) {
			if err := s.keepAdministrator(ctx, tx, u); err != nil {
				return err
			}
		}
		now, err := assignedTo(ctx, tx, u.ID)
		if err != nil {
			return err
		}
		u, err = s.assign(ctx, tx, u, wantedRoles(now, wanted, nil), func(string) bool { return true })
		return err
	})
	return u, err
}

// Find returns the user with the id or the validated credential. It returns apierr.UserNotFound.
func (s *Service) Find(ctx context.Context, q store.Querier, login string) (User, error) {
	id, err := types.ParseID(strings.TrimSpace(login))
	if err != nil {
		c, err := selectValidated(ctx, q, keysOf(login))
		if err != nil {
			return User{}, records.OrMissing(err, apierr.UserNotFound)
		}
		id = c.UserID
	}
	u, err := userTable.GetUnchecked(ctx, q, id)
	return withRoles(ctx, q, u, err)
}

func guessType(text string) string {
	switch {
	case strings.Contains(text, "@"):
		return Email
	case strings.HasPrefix(strings.TrimSpace(text), "+"):
		return Phone
	default:
		return Username
	}
}
