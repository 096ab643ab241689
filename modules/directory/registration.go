package directory

import (
	"context"
	"net/http"

	"kontor/modules/kit/records"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

const created = http.StatusCreated

// Registration is what a new user gets: his first credential and a token with which he can do nothing but validate it.
type Registration struct {
	UserID      string     `json:"user_id"`
	Credential  Credential `json:"credential"`
	AccessToken string     `json:"access_token" doc:"A token that can validate the credential, and nothing else."`
	TokenType   string     `json:"token_type" enum:"Bearer"`
	ExpiresIn   int        `json:"expires_in"`
}

// register makes a pending user with one credential and sends the code that validates it. It returns
// apierr.CredentialExists and apierr.OTPSendLimited.
func (s *Service) register(ctx context.Context, in registerInput) (Registration, error) {
	var problems apierr.Fields
	id := in.check(&problems)
	s.auth.CheckPassword(&problems, "password", in.Password, id.value)
	if err := problems.Err(); err != nil {
		return Registration{}, err
	}
	if err := s.checkRegistration(ctx, s.db); err != nil { // before it costs a hash
		return Registration{}, err
	}
	hash, err := s.auth.HashPassword(ctx, in.Password)
	if err != nil {
		return Registration{}, err
	}
	u := User{ID: store.NewID(), Status: Pending, Language: endpoint.Language(ctx)}
	c := newCredential(u.ID, id)
	var first code
	if !c.Validated {
		first = s.prepareCode(c, u.Language, forValidation)
	}
	out := Registration{UserID: u.ID, TokenType: "Bearer"}
	var refused error
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		if refused, err = s.countRegistration(ctx, tx, c); err != nil || refused != nil {
			return err // committed, so that the try counts
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
		tx.Respond(created, out)
		return nil
	})
	if err == nil {
		err = refused
	}
	return out, err
}

// checkRegistration returns apierr.RateLimited when the API key or the network has registered too many.
func (s *Service) checkRegistration(ctx context.Context, q store.Querier) error {
	if err := s.conflictLimits(ctx).check(ctx, q); err != nil {
		return err
	}
	return s.registrationLimits(ctx).check(ctx, q)
}

// countRegistration counts a registration and the message that goes with it. A taken value is refused with
// apierr.CredentialExists, after its try was counted; what exceeds a limit is an error, and nothing is counted.
func (s *Service) countRegistration(ctx context.Context, tx *store.Tx, c Credential) (refused, err error) {
	if err := s.checkRegistration(ctx, tx); err != nil {
		return nil, err
	}
	// Checked before the value is looked up, so that the refusal does not depend on it.
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
	if err := s.registrationLimits(ctx).count(ctx, tx); err != nil {
		return nil, err
	}
	return nil, sending.count(ctx, tx)
}

// add stores a new user with his credential, password and roles. Whoever registers himself is his own creator.
func (s *Service) add(ctx context.Context, tx *store.Tx, u *User, c *Credential, hash string, roles []string, by string) error {
	u.CreatedAt, u.ModifiedAt, u.Roles, u.version = tx.Now(), tx.Now(), []string{}, 1
	if _, err := tx.Exec(ctx, insertUser, u.ID, u.Status, u.Language, u.CreatedAt, by); err != nil {
		return err
	}
	for _, role := range roles {
		if _, err := tx.Exec(ctx, insertUserRole, u.ID, role, tx.Now(), by); err != nil {
			return err
		}
	}
	if err := s.insert(ctx, tx, c, by); err != nil {
		return err
	}
	if err := s.auth.SetPassword(ctx, tx, u.ID, hash); err != nil {
		return err
	}
	var err error
	if *u, err = withRoles(ctx, tx, *u, nil); err != nil {
		return err
	}
	entry := store.AuditEntry{Actor: by, Action: "users.create", RecType: accountProof.Type, RecID: u.ID}
	if err := accountProof.AuditEntry(ctx, tx, entry); err != nil {
		return err
	}
	entry.RecType, entry.Action = records.UserRoles.Type, records.ActionUserRoles
	return records.UserRoles.AuditEntry(ctx, tx, entry)
}
