package directory

import (
	"context"
	"errors"
	"strings"

	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

// NewUser describes a user whom an operator creates: active at once, with a validated credential.
type NewUser struct {
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
	u := User{ID: store.NewID(), DisplayName: name, Status: Active, Language: n.Language}
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
		keeps := false
		for _, role := range wanted {
			keeps = keeps || role == access.Administrator
		}
		if !keeps {
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
		if errors.Is(err, store.ErrNotFound) {
			return User{}, apierr.UserNotFound
		}
		if err != nil {
			return User{}, err
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
