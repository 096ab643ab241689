package directory

import (
	"context"
	"errors"
	"net/url"

	"github.com/google/uuid"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

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
		if outcome, err = s.useCode(ctx, tx, now.ID, forValidation, s.codeHash(now.ID, forValidation, digits)); err != nil {
			return err
		}
		if outcome != codeAccepted {
			credentialTable.Audit(ctx, tx, "credentials.validate_failed", now.ID, nil, nil)
			return s.countWrongCode(ctx, tx)
		}
		if taken, err = s.claimValue(ctx, tx, now); err != nil || taken {
			return err // committed: the code is consumed
		}
		return s.validated(ctx, tx, &now)
	})
	switch {
	case err != nil:
		return endpoint.Message{}, err
	case taken:
		return endpoint.Message{}, apierr.CredentialExists
	case outcome == apierr.OTPAttemptsExceeded:
		return endpoint.Message{}, outcome.RetryAfter(otpWindow)
	case outcome != codeAccepted:
		return endpoint.Message{}, outcome
	}
	return endpoint.Confirm(ctx, s.texts, "users.registration_completed"), nil
}

// rejectCode counts a failure of the network and returns apierr.InvalidOTP.
func (s *Service) rejectCode(ctx context.Context) error {
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		credentialTable.Audit(ctx, tx, "credentials.validate_failed", "", nil, nil)
		return s.countWrongCode(ctx, tx)
	})
	if err == nil {
		err = apierr.InvalidOTP
	}
	return err
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
