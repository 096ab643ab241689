package directory

import (
	"cmp"
	"context"
	"errors"

	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// initiateRecovery sends a code to a validated e-mail address or phone number of a user who is not disabled. The response does
// not reveal whether there is such a user, and its time hardly does: in any case a message is rendered, the request is counted
// and audited, and a commit is awaited. A known user adds two small inserts to that commit, and a value can be tried three
// times in ten minutes only. It returns apierr.OTPSendLimited.
func (s *Service) initiateRecovery(ctx context.Context, in recoveryInput) (endpoint.Message, error) {
	c, user, known, err := s.recoverable(ctx, s.db, in.keys)
	if err != nil {
		return endpoint.Message{}, err
	}
	if !known {
		// Unknown account: render and discard a message so that timing reveals nothing.
		c, user = Credential{ID: store.NewID(), Type: Email, Value: in.keys.key}, User{Language: endpoint.Language(ctx)}
	}
	code := s.prepareCode(c, user.Language, forRecovery)
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		now, _, still, err := s.recoverable(ctx, tx, in.keys)
		if err != nil {
			return err
		}
		if err := s.sendLimits(ctx, in.keys.key, forRecovery).consume(ctx, tx); err != nil {
			return err
		}
		if !known || !still || now.ID != c.ID {
			credentialTable.Audit(ctx, tx, "users.recovery_requested", "", nil, nil)
			return nil
		}
		credentialTable.Audit(ctx, tx, "users.recovery_requested", c.ID, nil, nil)
		_, err = s.sendCode(ctx, tx, c.ID, code)
		return err
	})
	return endpoint.Confirm(ctx, s.texts, "users.recovery_sent"), err
}

// recoverable returns the credential that may recover an account. Credentials that are not trusted yet may not: an attacker
// with a stolen session could add one and take over the account before its user reads the notification.
func (s *Service) recoverable(ctx context.Context, q store.Querier, typed loginKeys) (c Credential, u User, ok bool, err error) {
	c, err = selectValidated(ctx, q, typed)
	if errors.Is(err, store.ErrNotFound) {
		return c, u, false, nil
	}
	if err != nil {
		return c, u, false, err
	}
	u, err = userTable.GetUnchecked(ctx, q, c.UserID)
	return c, u, err == nil && channel(c.Type) != "" && u.Status != Disabled && q.Now() >= c.trustedFrom, err
}

// completeRecovery sets a new password for a caller with the right code, and ends all sessions of the user. By default it removes
// the methods of sign-in that are on trial. It returns apierr.RateLimited after too many wrong codes from a network. Every other
// failure is apierr.InvalidOTP: for unknown credentials, and for wrong, used, expired and exhausted codes. A password is hashed each
// time, so that timing reveals nothing.
func (s *Service) completeRecovery(ctx context.Context, in completeRecoveryInput) (endpoint.Message, error) {
	problems := cmp.Or(in.problems, &apierr.Fields{})
	typed := in.check(problems)
	s.auth.CheckPassword(problems, "password", in.Password, in.Value)
	if err := problems.Err(); err != nil {
		return endpoint.Message{}, err
	}
	if err := s.wrongCodeLimits(ctx).check(ctx, s.db); err != nil { // before the password is hashed
		return endpoint.Message{}, err
	}
	digits, wellFormed := parseCode(in.OTP)
	if !wellFormed {
		return endpoint.Message{}, apierr.InvalidOTP
	}
	hash, err := s.auth.HashPassword(ctx, in.Password)
	if err != nil {
		return endpoint.Message{}, err
	}
	recovered := false
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		recovered = false
		c, u, ok, err := s.recoverable(ctx, tx, typed)
		if err != nil {
			return err
		}
		outcome, err := s.useCode(ctx, tx, c.ID, forRecovery, s.codeHash(c.ID, forRecovery, digits))
		if err != nil {
			return err
		}
		if !ok || outcome != codeAccepted {
			credentialTable.Audit(ctx, tx, "users.recovery_failed", c.ID, nil, nil)
			return s.countWrongCode(ctx, tx)
		}
		recovered = true
		if err := s.replacePassword(ctx, tx, u, hash, "", in.RemoveNew == nil || *in.RemoveNew); err != nil {
			return err
		}
		return s.auth.TrustNetwork(ctx, tx, c.UserID)
	})
	if err == nil && !recovered {
		err = apierr.InvalidOTP
	}
	return endpoint.Confirm(ctx, s.texts, "users.password_changed"), err
}
