package users

import (
	"context"

	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/server/fault"
	"kontor/store"
)

// validate takes the code that proves that a credential is the user's. It returns fault.UserNotFound,
// fault.CredentialNotFound, fault.NoAccess, fault.CredentialValidated, fault.InvalidOTP, fault.OTPExpired and
// fault.OTPAttemptsExceeded.
func (s *Service) validate(ctx context.Context, in validateInput) (Credential, error) {
	digits, wellFormed := parseCode(in.OTP)
	hash := s.codeHash(in.CredentialID, forValidation, digits)
	var c Credential
	var outcome fault.Kind
	err := s.db.InTx(ctx, func(tx *store.Tx) (err error) {
		if c, err = credentialOf(ctx, tx, in.UserID, in.CredentialID, access.Update); err != nil {
			return err
		}
		if err := endpoint.CheckMatch(ctx, c.ETag()); err != nil {
			return err
		}
		if c.Validated {
			return fault.CredentialValidated
		}
		if !wellFormed {
			return fault.InvalidOTP // no code looks like this: it cannot be a guess
		}
		if outcome, err = s.useCode(ctx, tx, c.ID, forValidation, hash); err != nil {
			return err
		}
		if outcome != codeRight {
			held.Audit(ctx, tx, "credentials.validate_failed", c.ID, nil, nil)
			return nil
		}
		return s.validated(ctx, tx, &c)
	})
	switch {
	case err != nil:
		return Credential{}, err
	case outcome == codeRight:
		return c, nil
	case outcome == fault.OTPAttemptsExceeded:
		// When a new code can be had for sure.
		return Credential{}, outcome.RetryAfter(otpWindow)
	default:
		return Credential{}, outcome
	}
}

// validated marks a credential. The first one makes a pending user an active customer.
func (s *Service) validated(ctx context.Context, tx *store.Tx, c *Credential) error {
	was, err := readCredential(ctx, tx, c.ID)
	if err != nil {
		return err
	}
	now := tx.Now()
	if _, err := tx.Exec(ctx, validateCredential, c.ID, now); err != nil {
		return err
	}
	c.Validated, c.ValidatedAt, c.version = true, &now, c.version+1
	if err := credentialProof.Audit(ctx, tx, "credentials.validate", c.ID, was); err != nil {
		return err
	}

	user, err := accounts.Any(ctx, tx, c.UserID)
	user, err = withRoles(ctx, tx, user, err)
	if err != nil || user.Status != Pending {
		return err
	}
	return s.changeStatus(ctx, tx, &user, Active)
}

// resend sends a new code for a credential in the place of the one before. It returns fault.UserNotFound,
// fault.CredentialNotFound, fault.NoAccess, fault.CredentialValidated and fault.OTPSendLimited.
func (s *Service) resend(ctx context.Context, in credentialPath) (resendOutput, error) {
	c, err := credentialOf(ctx, s.db, in.UserID, in.CredentialID, access.Update)
	if err != nil {
		return resendOutput{}, err
	}
	if c.Validated {
		return resendOutput{}, fault.CredentialValidated
	}
	user, err := accounts.Any(ctx, s.db, c.UserID)
	if err != nil {
		return resendOutput{}, err
	}
	code := s.prepareCode(c, user.Language, forValidation)
	out := resendOutput{Message: endpoint.Confirm(ctx, s.texts, "users.otp_sent").Message}
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		now, err := held.Any(ctx, tx, c.ID)
		if err != nil {
			return err
		}
		if now.Validated {
			return fault.CredentialValidated
		}
		if out.ExpiresAt, err = s.sendCode(ctx, tx, c.ID, c.key, code); err != nil {
			return err
		}
		held.Audit(ctx, tx, "credentials.send_otp", c.ID, nil, nil)
		return nil
	})
	return out, err
}
