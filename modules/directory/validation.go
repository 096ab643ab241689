package directory

import (
	"context"
	"errors"

	"kontor/modules/kit/records"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// validate takes the code that proves that a credential is the user's. It returns apierr.UserNotFound,
// apierr.CredentialNotFound, apierr.NoAccess, apierr.CredentialValidated, apierr.StaleSession, apierr.InvalidOTP,
// apierr.OTPExpired, apierr.OTPAttemptsExceeded and, once the right code is entered, apierr.CredentialExists.
func (s *Service) validate(ctx context.Context, in validateInput) (Credential, error) {
	digits, wellFormed := parseCode(in.OTP)
	hash := s.codeHash(in.CredentialID, forValidation, digits)
	var c Credential
	var outcome apierr.Kind
	var taken bool
	err := s.db.InTx(ctx, func(tx *store.Tx) (err error) {
		taken = false // the closure may run more than once
		if c, err = credentialOf(ctx, tx, in.UserID, in.CredentialID, access.Update); err != nil {
			return err
		}
		if err := endpoint.CheckMatch(ctx, c.ETag()); err != nil {
			return err
		}
		if c.Validated {
			return apierr.CredentialValidated
		}
		if !wellFormed {
			return apierr.InvalidOTP // no code looks like this: it cannot be a guess
		}
		user, err := accounts.GetUnchecked(ctx, tx, c.UserID)
		if err != nil {
			return err
		}
		if user.Status != Pending { // a pending account has no owner yet whom a thief could displace
			if err := s.auth.RequireFresh(ctx, tx); err != nil {
				return err
			}
		}
		if outcome, err = s.useCode(ctx, tx, c.ID, forValidation, hash); err != nil {
			return err
		}
		if outcome != codeRight {
			held.Audit(ctx, tx, "credentials.validate_failed", c.ID, nil, nil)
			return s.countFailure(ctx, tx)
		}
		if taken, err = s.takeValue(ctx, tx, c); err != nil || taken {
			return err // committed: the code is used up
		}
		return s.validated(ctx, tx, &c)
	})
	switch {
	case err != nil:
		return Credential{}, err
	case taken:
		return Credential{}, apierr.CredentialExists
	case outcome == codeRight:
		return c, nil
	case outcome == apierr.OTPAttemptsExceeded:
		// When a new code can be had for sure.
		return Credential{}, outcome.RetryAfter(otpWindow)
	default:
		return Credential{}, outcome
	}
}

// takeValue frees the value of a credential whose user has entered the right code: unvalidated claims of others are
// deleted. taken reports that another user has validated the value.
func (s *Service) takeValue(ctx context.Context, tx *store.Tx, c Credential) (taken bool, err error) {
	owned, err := selectValidated(ctx, tx, keys{c.target(), c.target()})
	if err == nil {
		return owned.ID != c.ID, nil
	}
	if !errors.Is(err, store.ErrNotFound) || c.key == c.target() {
		return false, ignoreNotFound(err)
	}
	return false, s.release(ctx, tx, c.target(), tx.Now(), records.Actor(ctx))
}

func ignoreNotFound(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

// validated marks a credential. The first one makes a pending user an active customer. A further one is reported to
// the addresses that the user has already, and is trusted later.
func (s *Service) validated(ctx context.Context, tx *store.Tx, c *Credential) error {
	user, err := accounts.GetUnchecked(ctx, tx, c.UserID)
	if user, err = withRoles(ctx, tx, user, err); err != nil {
		return err
	}
	was, err := readCredential(ctx, tx, c.ID)
	if err != nil {
		return err
	}
	now := tx.Now()
	if user.Status != Pending {
		c.trustedFrom = now.Add(trustedAfter)
		if err := s.outbox.CredentialAdded(ctx, tx, c.UserID, masked(*c)); err != nil {
			return err
		}
	}
	if _, err := tx.Exec(ctx, validateCredential, c.ID, now, c.target(), c.trustedFrom); err != nil {
		return err
	}
	c.key, c.Validated, c.ValidatedAt, c.version = c.target(), true, &now, c.version+1
	if err := credentialProof.Audit(ctx, tx, "credentials.validate", c.ID, was); err != nil {
		return err
	}
	if user.Status != Pending {
		return nil
	}
	return s.changeStatus(ctx, tx, &user, Active)
}

// resend sends a new code for a credential in the place of the one before. It returns apierr.UserNotFound,
// apierr.CredentialNotFound, apierr.NoAccess, apierr.CredentialValidated and apierr.OTPSendLimited.
func (s *Service) resend(ctx context.Context, in credentialPath) (resendOutput, error) {
	c, err := credentialOf(ctx, s.db, in.UserID, in.CredentialID, access.Update)
	if err != nil {
		return resendOutput{}, err
	}
	if c.Validated {
		return resendOutput{}, apierr.CredentialValidated
	}
	user, err := accounts.GetUnchecked(ctx, s.db, c.UserID)
	if err != nil {
		return resendOutput{}, err
	}
	code, err := s.prepareProof(ctx, c, user.Language)
	if err != nil {
		return resendOutput{}, err
	}
	out := resendOutput{Message: endpoint.Confirm(ctx, s.texts, "users.otp_sent").Message}
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		now, err := held.GetUnchecked(ctx, tx, c.ID)
		if err != nil {
			return err
		}
		if now.Validated {
			return apierr.CredentialValidated
		}
		if err := s.sendLimits(ctx, c.target(), forValidation).take(ctx, tx); err != nil {
			return err
		}
		if out.ExpiresAt, err = s.sendCode(ctx, tx, c.ID, code); err != nil {
			return err
		}
		held.Audit(ctx, tx, "credentials.send_otp", c.ID, nil, nil)
		return nil
	})
	return out, err
}
