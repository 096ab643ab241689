package users

import (
	"context"
	"errors"

	"kontor/server/endpoint"
	"kontor/server/fault"
	"kontor/store"
)

// initiateRecovery sends a code to a validated e-mail address or phone number of a user who is not disabled. The answer
// does not tell whether there is one, and its time hardly can: a message is worded, a request is counted and audited and
// a commit is waited for in any case, what differs is two small inserts before that commit, and nobody can ask for one
// value more than three times in ten minutes. It returns fault.OTPSendLimited.
func (s *Service) initiateRecovery(ctx context.Context, in recoveryInput) (endpoint.Message, error) {
	c, user, known, err := s.recoverable(ctx, s.db, in.key)
	if err != nil {
		return endpoint.Message{}, err
	}
	if !known {
		// Somebody who is not there: his message is worded like any other and thrown away.
		c, user = Credential{ID: store.NewID(), Type: Email, Value: in.key}, User{Language: endpoint.Language(ctx)}
	}
	code := s.prepareCode(c, user.Language, forRecovery)
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		now, _, still, err := s.recoverable(ctx, tx, in.key)
		if err != nil {
			return err
		}
		if !known || !still || now.ID != c.ID {
			held.Audit(ctx, tx, "users.recovery_requested", "", nil, nil)
			return s.countSend(ctx, tx, in.key)
		}
		held.Audit(ctx, tx, "users.recovery_requested", c.ID, nil, nil)
		_, err = s.sendCode(ctx, tx, c.ID, c.key, code)
		return err
	})
	return endpoint.Confirm(ctx, s.texts, "users.recovery_sent"), err
}

// recoverable finds the credential to which a code for a new password may go.
func (s *Service) recoverable(ctx context.Context, q store.Querier, key string) (c Credential, u User, ok bool, err error) {
	c, err = scanCredential(q.QueryRow(ctx, selectValidatedByKey, key))
	if errors.Is(err, store.ErrNotFound) {
		return c, u, false, nil
	}
	if err != nil {
		return c, u, false, err
	}
	u, err = accounts.Any(ctx, q, c.UserID)
	return c, u, err == nil && channel(c.Type) != "" && u.Status != Disabled, err
}

// completeRecovery sets a new password for who has the code, and ends all sessions of the user. Everything that does
// not fit together is fault.InvalidOTP, whether the credential exists or not, whether the code is wrong, used, too old
// or tried too often; a password is hashed each time.
func (s *Service) completeRecovery(ctx context.Context, in completeRecoveryInput) (endpoint.Message, error) {
	var problems fault.Fields
	key := in.check(&problems)
	s.auth.CheckPassword(&problems, "password", in.Password, in.Value)
	if err := problems.Err(); err != nil {
		return endpoint.Message{}, err
	}
	digits, wellFormed := parseCode(in.OTP)
	if !wellFormed {
		return endpoint.Message{}, fault.InvalidOTP
	}
	hash, err := s.auth.HashPassword(ctx, in.Password)
	if err != nil {
		return endpoint.Message{}, err
	}
	recovered := false
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		recovered = false
		c, _, ok, err := s.recoverable(ctx, tx, key)
		if err != nil {
			return err
		}
		outcome, err := s.useCode(ctx, tx, c.ID, forRecovery, s.codeHash(c.ID, forRecovery, digits))
		if err != nil {
			return err
		}
		if !ok || outcome != codeRight {
			held.Audit(ctx, tx, "users.recovery_failed", c.ID, nil, nil)
			return nil
		}
		recovered = true
		return s.replacePassword(ctx, tx, c.UserID, hash, "")
	})
	if err == nil && !recovered {
		err = fault.InvalidOTP
	}
	return endpoint.Confirm(ctx, s.texts, "users.password_changed"), err
}
