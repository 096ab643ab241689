package directory

import (
	"context"
	"errors"

	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// initiateRecovery sends a code to a validated e-mail address or phone number of a user who is not disabled. The answer
// does not tell whether there is one, and its time hardly can: a message is worded, a request is counted and audited and
// a commit is waited for in any case, what differs is two small inserts before that commit, and nobody can ask for one
// value more than three times in ten minutes. It returns apierr.OTPSendLimited.
func (s *Service) initiateRecovery(ctx context.Context, in recoveryInput) (endpoint.Message, error) {
	c, user, known, err := s.recoverable(ctx, s.db, in.keys)
	if err != nil {
		return endpoint.Message{}, err
	}
	if !known {
		// Somebody who is not there: his message is worded like any other and thrown away.
		c, user = Credential{ID: store.NewID(), Type: Email, Value: in.keys.key}, User{Language: endpoint.Language(ctx)}
	}
	code := s.prepareCode(c, user.Language, forRecovery)
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		now, _, still, err := s.recoverable(ctx, tx, in.keys)
		if err != nil {
			return err
		}
		if err := s.sendLimits(ctx, in.keys.key, forRecovery).take(ctx, tx); err != nil {
			return err
		}
		if !known || !still || now.ID != c.ID {
			held.Audit(ctx, tx, "users.recovery_requested", "", nil, nil)
			return nil
		}
		held.Audit(ctx, tx, "users.recovery_requested", c.ID, nil, nil)
		_, err = s.sendCode(ctx, tx, c.ID, code)
		return err
	})
	return endpoint.Confirm(ctx, s.texts, "users.recovery_sent"), err
}

// recoverable finds the credential to which a code for a new password may go. A credential that was added lately is none:
// whoever stole a session could take the account over with it before its user has read of it.
func (s *Service) recoverable(ctx context.Context, q store.Querier, typed keys) (c Credential, u User, ok bool, err error) {
	c, err = selectValidated(ctx, q, typed)
	if errors.Is(err, store.ErrNotFound) {
		return c, u, false, nil
	}
	if err != nil {
		return c, u, false, err
	}
	u, err = accounts.GetUnchecked(ctx, q, c.UserID)
	return c, u, err == nil && channel(c.Type) != "" && u.Status != Disabled && q.Now() >= c.trustedFrom, err
}

// completeRecovery sets a new password for who has the code, and ends all sessions of the user. Everything that does
// not fit together is apierr.InvalidOTP, whether the credential exists or not, whether the code is wrong, used, too old
// or tried too often; a password is hashed each time.
func (s *Service) completeRecovery(ctx context.Context, in completeRecoveryInput) (endpoint.Message, error) {
	var problems apierr.Fields
	typed := in.check(&problems)
	s.auth.CheckPassword(&problems, "password", in.Password, in.Value)
	if err := problems.Err(); err != nil {
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
		c, _, ok, err := s.recoverable(ctx, tx, typed)
		if err != nil {
			return err
		}
		outcome, err := s.useCode(ctx, tx, c.ID, forRecovery, s.codeHash(c.ID, forRecovery, digits))
		if err != nil {
			return err
		}
		if !ok || outcome != codeRight {
			held.Audit(ctx, tx, "users.recovery_failed", c.ID, nil, nil)
			return s.countFailure(ctx, tx)
		}
		recovered = true
		if err := s.removeUntrusted(ctx, tx, c.UserID); err != nil {
			return err
		}
		if err := s.replacePassword(ctx, tx, c.UserID, hash, ""); err != nil {
			return err
		}
		return s.auth.TrustNetwork(ctx, tx, c.UserID)
	})
	if err == nil && !recovered {
		err = apierr.InvalidOTP
	}
	return endpoint.Confirm(ctx, s.texts, "users.password_changed"), err
}
