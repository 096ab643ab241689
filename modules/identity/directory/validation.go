package directory

import (
	"context"
	"errors"

	"kontor/modules/kit/records"
	"kontor/modules/kit/signin"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// validate validates a credential with its code. It returns apierr.UserNotFound, apierr.CredentialNotFound, apierr.NoAccess,
// apierr.CredentialValidated, apierr.StaleSession, apierr.InvalidOTP, apierr.OTPExpired, apierr.OTPAttemptsExceeded, for a right
// code apierr.CredentialExists, and in another session what signin.Rule.Prove returns.
func (s *Service) validate(ctx context.Context, in validateInput) (Credential, error) {
	if err := s.proveOtherSession(ctx, in); err != nil {
		return Credential{}, err
	}
	digits, wellFormed := parseCode(in.OTP)
	hash := "" // a malformed code is wrong, and does not count as a guess
	if wellFormed {
		hash = s.codeHash(in.CredentialID, forValidation, digits)
	}
	var c Credential
	var outcome apierr.Kind
	var taken bool
	err := s.db.InTx(ctx, func(tx *store.Tx) (err error) {
		c, outcome, taken, err = s.tryCode(ctx, tx, in, hash)
		return err
	})
	switch {
	case err != nil:
		return Credential{}, err
	case taken:
		return Credential{}, apierr.CredentialExists
	case outcome == codeAccepted:
		return c, nil
	case outcome == apierr.OTPAttemptsExceeded:
		// By then a new code can be requested.
		return Credential{}, outcome.RetryAfter(otpWindow)
	default:
		return Credential{}, outcome
	}
}

// proveOtherSession verifies the proof of users who validate a credential of their own in another session than the one that added
// it. Everything else is left to the transaction.
func (s *Service) proveOtherSession(ctx context.Context, in validateInput) error {
	caller := access.From(ctx)
	if caller.UserID != in.UserID {
		return nil
	}
	c, err := credentialOf(ctx, s.db, in.UserID, in.CredentialID, access.Update)
	if err != nil || c.Validated || c.session != "" && c.session == caller.SessionID {
		return err
	}
	user, err := userTable.GetUnchecked(ctx, s.db, c.UserID)
	if err != nil || user.Status == Pending {
		return err
	}
	if err := endpoint.RequireAssurance(ctx, endpoint.SecondFactor); err != nil {
		return err
	}
	return s.auth.Prove(ctx, in.Proof)
}

// tryCode counts an attempt to validate a credential and validates it if the code is right. taken reports that another user
// has already validated the value.
func (s *Service) tryCode(ctx context.Context, tx *store.Tx, in validateInput, hash string) (c Credential, outcome apierr.Kind, taken bool, err error) {
	if c, err = s.validatable(ctx, tx, in, hash); err != nil {
		return c, outcome, false, err
	}
	if outcome, err = s.useCode(ctx, tx, c.ID, forValidation, hash); err != nil {
		return c, outcome, false, err
	}
	if outcome != codeAccepted {
		credentialTable.Audit(ctx, tx, "credentials.validate_failed", c.ID, nil, nil)
		return c, outcome, false, s.countFailure(ctx, tx)
	}
	if taken, err = s.claimValue(ctx, tx, c); err != nil || taken {
		return c, outcome, taken, err // committed: the code is consumed
	}
	err = s.validated(ctx, tx, &c)
	return c, outcome, false, err
}

// validatable returns a credential that the caller may validate with a code, whose hash is empty for a malformed one.
func (s *Service) validatable(ctx context.Context, tx *store.Tx, in validateInput, hash string) (Credential, error) {
	c, err := credentialOf(ctx, tx, in.UserID, in.CredentialID, access.Update)
	if err != nil {
		return c, err
	}
	if err := endpoint.CheckMatch(ctx, c.ETag()); err != nil {
		return c, err
	}
	if c.Validated {
		return c, apierr.CredentialValidated
	}
	if hash == "" {
		return c, apierr.InvalidOTP
	}
	user, err := userTable.GetUnchecked(ctx, tx, c.UserID)
	if err != nil || user.Status == Pending { // an attacker gains nothing from a session of a pending user
		return c, err
	}
	return c, endpoint.RequireAssurance(ctx, endpoint.SecondFactor)
}

// claimValue deletes unvalidated claims of other users to the value of a credential whose code was right. taken reports that
// another user has validated the value.
func (s *Service) claimValue(ctx context.Context, tx *store.Tx, c Credential) (taken bool, err error) {
	owned, err := selectValidated(ctx, tx, loginKeys{c.target(), c.target()})
	if err == nil {
		return owned.ID != c.ID, nil
	}
	if !errors.Is(err, store.ErrNotFound) || c.key == c.target() {
		return false, ignoreNotFound(err)
	}
	return false, s.deleteClaim(ctx, tx, c.target(), tx.Now(), records.Actor(ctx))
}

func ignoreNotFound(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

// validated marks a credential as validated. The first one makes a pending user an active customer. Further ones are reported
// to the existing addresses of the user, and are trusted later.
func (s *Service) validated(ctx context.Context, tx *store.Tx, c *Credential) error {
	user, err := userTable.GetUnchecked(ctx, tx, c.UserID)
	if user, err = withRoles(ctx, tx, user, err); err != nil {
		return err
	}
	was, err := readCredential(ctx, tx, c.ID)
	if err != nil {
		return err
	}
	now := tx.Now()
	if user.Status != Pending {
		c.trust(now.Add(signin.Trial))
		undo, keepUndo := s.auth.NewUndo(signin.Credential, c.UserID, c.ID)
		if err := keepUndo(ctx, tx); err != nil {
			return err
		}
		if err := s.outbox.CredentialAdded(ctx, tx, c.UserID, masked(*c), undo); err != nil {
			return err
		}
	}
	if _, err := tx.Exec(ctx, validateCredential, c.ID, now, c.target(), c.trustedFrom); err != nil {
		return err
	}
	s.invalidate(tx, c.UserID)
	c.key, c.Validated, c.ValidatedAt, c.version = c.target(), true, &now, c.version+1
	if err := credentialProof.Audit(ctx, tx, "credentials.validate", c.ID, was); err != nil {
		return err
	}
	if user.Status != Pending {
		return nil
	}
	return s.changeStatus(ctx, tx, &user, Active)
}

// resend replaces the code of a credential and sends the new one. It returns apierr.UserNotFound, apierr.CredentialNotFound,
// apierr.NoAccess, apierr.CredentialValidated and apierr.OTPSendLimited.
func (s *Service) resend(ctx context.Context, in credentialPath) (resendOutput, error) {
	c, err := credentialOf(ctx, s.db, in.UserID, in.CredentialID, access.Update)
	if err != nil {
		return resendOutput{}, err
	}
	if c.Validated {
		return resendOutput{}, apierr.CredentialValidated
	}
	user, err := userTable.GetUnchecked(ctx, s.db, c.UserID)
	if err != nil {
		return resendOutput{}, err
	}
	code := s.prepareFirstCode(c, user.Language)
	if user.Status != Pending {
		if code, err = s.prepareProof(ctx, c, user.Language); err != nil {
			return resendOutput{}, err
		}
	}
	out := resendOutput{Message: endpoint.Confirm(ctx, s.texts, "users.otp_sent").Message}
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		now, err := credentialTable.GetUnchecked(ctx, tx, c.ID)
		if err != nil {
			return err
		}
		if now.Validated {
			return apierr.CredentialValidated
		}
		if err := s.sendLimits(ctx, c.target(), forValidation).consume(ctx, tx); err != nil {
			return err
		}
		if out.ExpiresAt, err = s.sendCode(ctx, tx, c.ID, code); err != nil {
			return err
		}
		credentialTable.Audit(ctx, tx, "credentials.send_otp", c.ID, nil, nil)
		return nil
	})
	return out, err
}
