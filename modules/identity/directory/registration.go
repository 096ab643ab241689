package directory

import (
	"cmp"
	"context"
	"errors"
	"net/url"

	"github.com/google/uuid"

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
	return out, cmp.Or(err, rejection)
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

// A registration can be completed without the token of its first response, which a reload or another device does not have. The
// applicant proves who they are by the password that they chose and by the code. Neither is enough alone: the owner of an
// address that another person registered gets only the code, and must not activate an account with the password of that person.

// selectClaim finds the credential of a pending user that has the value.
const selectClaim = `
	SELECT ` + credentialColumns + ` FROM credentials
	WHERE value_key = $1 AND validated = FALSE AND EXISTS (SELECT 1 FROM users u WHERE u.id = credentials.user_id AND u.status = 'pending')`

// confirmPath is the path of the console's screen at which an applicant enters the code. The value stands in the fragment, which
// browsers send to no server.
func confirmPath(value string) string { return "/register#confirm=" + url.QueryEscape(value) }

// prepareFirstCode returns a code that completes a registration, in a message that links to the screen for it.
func (s *Service) prepareFirstCode(c Credential, language string) code {
	return s.codeWithMessage(c, language, forValidation, "registration", confirmPath(c.Value))
}

// claim returns the credential of a pending user with a value. ok is false if there is none.
func (s *Service) claim(ctx context.Context, q store.Querier, typed loginKeys) (c Credential, ok bool, err error) {
	c, err = scanCredential(q.QueryRow(ctx, selectClaim, typed.key))
	if errors.Is(err, store.ErrNotFound) {
		return c, false, nil
	}
	return c, err == nil, err
}

// completeRegistration validates the first credential of a pending user with its code and the password of the registration. An
// unknown value, a wrong password and a wrong code have the same error, apierr.InvalidOTP, and take as long: the password is
// compared in any case, and failures count alike. Only callers with the right password get apierr.OTPExpired and
// apierr.OTPAttemptsExceeded, and consume attempts of the code. It returns apierr.RateLimited and apierr.LockedOut, too.
func (s *Service) completeRegistration(ctx context.Context, in completeRegistrationInput) (endpoint.Message, error) {
	if err := s.wrongCodeLimits(ctx).check(ctx, s.db); err != nil {
		return endpoint.Message{}, err
	}
	c, found, err := s.claim(ctx, s.db, in.keys)
	if err != nil {
		return endpoint.Message{}, err
	}
	if !found {
		c.UserID = s.placeholder(in.keys.key)
	}
	err = s.auth.VerifyPassword(ctx, c.UserID, in.Password)
	digits, wellFormed := parseCode(in.OTP)
	switch {
	case errors.Is(err, apierr.InvalidCredentials), err == nil && (!wellFormed || !found):
		return endpoint.Message{}, s.rejectCode(ctx)
	case err != nil:
		return endpoint.Message{}, err
	}
	ctx = access.With(ctx, &access.Caller{UserID: c.UserID}) // the applicant acts
	outcome, taken := codeAccepted, false
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		now, still, err := s.claim(ctx, tx, in.keys)
		if err != nil {
			return err
		}
		if !still || now.ID != c.ID {
			outcome = apierr.InvalidOTP
			return s.countWrongCode(ctx, tx)
		}
		outcome, taken, err = s.tryCode(ctx, tx, &now, s.codeHash(now.ID, forValidation, digits), s.countWrongCode)
		return err
	})
	return endpoint.Confirm(ctx, s.texts, "users.registration_completed"), codeError(err, outcome, taken)
}

// rejectCode counts a failure of the network and returns apierr.InvalidOTP.
func (s *Service) rejectCode(ctx context.Context) error {
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		credentialTable.Audit(ctx, tx, "credentials.validate_failed", "", nil, nil)
		return s.countWrongCode(ctx, tx)
	})
	return cmp.Or(err, error(apierr.InvalidOTP))
}

// placeholder returns the id under which failures for an unknown value count. It is always the same for a value, so that a
// lockout reveals nothing.
func (s *Service) placeholder(key string) string {
	id, err := uuid.FromBytes(s.db.Keyed("unknown registration", []byte(key))[:16])
	if err != nil {
		panic(err) // sixteen bytes are always an id
	}
	return id.String()
}

// resendRegistration sends a new code to the value of a pending user. The response and the limits do not depend on whether there is
// one, as for a recovery. It returns apierr.OTPSendLimited.
func (s *Service) resendRegistration(ctx context.Context, in recoveryInput) (endpoint.Message, error) {
	c, found, err := s.claim(ctx, s.db, in.keys)
	if err != nil {
		return endpoint.Message{}, err
	}
	language := endpoint.Language(ctx)
	if !found {
		// Unknown value: render and discard a message so that timing reveals nothing.
		c = Credential{ID: store.NewID(), Type: Email, Value: in.keys.key}
	} else if user, err := userTable.GetUnchecked(ctx, s.db, c.UserID); err != nil {
		return endpoint.Message{}, err
	} else {
		language = user.Language
	}
	code := s.prepareFirstCode(c, language)
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		now, still, err := s.claim(ctx, tx, in.keys)
		if err != nil {
			return err
		}
		if err := s.sendLimits(ctx, in.keys.key, forValidation).consume(ctx, tx); err != nil {
			return err
		}
		if !found || !still || now.ID != c.ID {
			credentialTable.Audit(ctx, tx, "credentials.send_otp", "", nil, nil)
			return nil
		}
		credentialTable.Audit(ctx, tx, "credentials.send_otp", c.ID, nil, nil)
		_, err = s.sendCode(ctx, tx, c.ID, code)
		return err
	})
	return endpoint.Confirm(ctx, s.texts, "users.registration_sent"), err
}
