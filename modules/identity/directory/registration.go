package directory

import (
	"cmp"
	"context"

	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// Registration is the response to a registration: the first credential, and a token that can only validate it.
type Registration struct {
	UserID      string     `json:"user_id"`
	Credential  Credential `json:"credential"`
	AccessToken string     `json:"access_token" doc:"A token that can validate the credential, and nothing else."`
	TokenType   string     `json:"token_type" enum:"Bearer"`
	ExpiresIn   int        `json:"expires_in"`
}

// register creates a pending user with one credential and sends the code that validates it. It returns
// apierr.CredentialExists, apierr.DisplayNameReserved, apierr.RateLimited and apierr.OTPSendLimited.
func (s *Service) register(ctx context.Context, in registerInput) (Registration, error) {
	problems := cmp.Or(in.problems, &apierr.Fields{})
	id := in.check(problems)
	s.auth.CheckPassword(problems, "password", in.Password, id.value)
	if err := problems.Err(); err != nil {
		return Registration{}, err
	}
	if err := s.checkRegistration(ctx, s.db); err != nil { // before the password is hashed
		return Registration{}, err
	}
	hash, err := s.auth.HashPassword(ctx, in.Password)
	if err != nil {
		return Registration{}, err
	}
	u := User{ID: store.NewID(), DisplayName: in.DisplayName, Status: Pending, Language: endpoint.Language(ctx)}
	c := newCredential(u.ID, id)
	var first code
	if !c.Validated {
		first = s.prepareFirstCode(c, u.Language)
	}
	out := Registration{UserID: u.ID, TokenType: "Bearer"}
	var rejection error
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		if rejection, err = s.countRegistration(ctx, tx, u, c); err != nil || rejection != nil {
			return err // committed, so that the attempt counts
		}
		if err := s.add(ctx, tx, &u, &c, hash, []string{access.Registrant}, u.ID); err != nil {
			return err
		}
		if !c.Validated {
			if _, err := s.sendCode(ctx, tx, c.ID, first); err != nil {
				return err
			}
		}
		out.Credential = c
		if out.AccessToken, out.ExpiresIn, err = s.auth.OpenSession(ctx, tx, u.ID); err != nil {
			return err
		}
		tx.Respond(out)
		return nil
	})
	if err == nil {
		err = rejection
	}
	return out, err
}

// checkRegistration returns apierr.RateLimited after too many registrations by the API key or from the network.
func (s *Service) checkRegistration(ctx context.Context, q store.Querier) error {
	if err := s.conflictLimits(ctx).check(ctx, q); err != nil {
		return err
	}
	return s.registrationLimits(ctx).check(ctx, q)
}

// countRegistration counts a registration and the message that goes with it. It rejects a taken value with
// apierr.CredentialExists and a reserved name with apierr.DisplayNameReserved, and counts the try. It returns an error for
// what exceeds a limit, and counts nothing.
func (s *Service) countRegistration(ctx context.Context, tx *store.Tx, u User, c Credential) (rejection, err error) {
	if err := s.checkRegistration(ctx, tx); err != nil {
		return nil, err
	}
	// Checked before the value is looked up, so that the rejection does not depend on it.
	sending := s.firstCodeLimits(ctx, c)
	if err := sending.check(ctx, tx); err != nil {
		return nil, err
	}
	taken, err := s.isTaken(ctx, tx, c.key)
	if err != nil {
		return nil, err
	}
	if taken {
		return apierr.CredentialExists, s.conflictLimits(ctx).count(ctx, tx)
	}
	reserved, err := s.isReserved(ctx, tx, u.ID, u.DisplayName)
	if err != nil {
		return nil, err
	}
	if reserved {
		return apierr.DisplayNameReserved, s.conflictLimits(ctx).count(ctx, tx)
	}
	if err := s.registrationLimits(ctx).count(ctx, tx); err != nil {
		return nil, err
	}
	return nil, sending.count(ctx, tx)
}

// add stores a new user with credential, password and roles. hash is empty for a user without a password. by is the creator;
// registered users create themselves.
func (s *Service) add(ctx context.Context, tx *store.Tx, u *User, c *Credential, hash string, roles []string, by string) error {
	u.CreatedAt, u.ModifiedAt, u.Roles, u.version = tx.Now(), tx.Now(), []string{}, 1
	if err := insertAccount(ctx, tx, u, roles, by); err != nil {
		return err
	}
	if err := s.insert(ctx, tx, c, by); err != nil {
		return err
	}
	if hash != "" {
		if err := s.auth.SetPassword(ctx, tx, u.ID, hash); err != nil {
			return err
		}
	}
	return s.auditNew(ctx, tx, u, by)
}

// insertAccount stores a user with their roles.
func insertAccount(ctx context.Context, tx *store.Tx, u *User, roles []string, by string) error {
	u.Kind = cmp.Or(u.Kind, Person)
	if _, err := tx.Exec(ctx, insertUser, u.ID, u.Status, u.Language, u.CreatedAt, by,
		u.DisplayName, types.SearchKey(u.DisplayName), types.NameSkeleton(u.DisplayName), u.Kind, types.SortKey(u.DisplayName)); err != nil {
		return err
	}
	for _, role := range roles {
		if _, err := tx.Exec(ctx, insertUserRole, u.ID, role, tx.Now(), by); err != nil {
			return err
		}
	}
	return nil
}

// auditNew adds the names of the roles to a new user, and writes the audit entries of user and roles.
func (s *Service) auditNew(ctx context.Context, tx *store.Tx, u *User, by string) error {
	s.invalidate(tx, u.ID)
	var err error
	if *u, err = withRoles(ctx, tx, *u, nil); err != nil {
		return err
	}
	entry := store.AuditEntry{Actor: by, Action: "users.create", RecType: accountProof.Type, RecID: u.ID}
	if err := accountProof.AuditEntry(ctx, tx, entry); err != nil {
		return err
	}
	entry.RecType, entry.Action = userRolesProof.Type, actionUserRoles
	return userRolesProof.AuditEntry(ctx, tx, entry)
}
