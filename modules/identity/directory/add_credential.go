package directory

import (
	"context"
	"crypto/rand"
	"errors"

	"kontor/modules/kit/records"
	"kontor/modules/kit/signin"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

// addCredential adds a credential to a user and sends the code that validates it. Users prove themselves with an older method. The
// response does not reveal whether another user has the value; validation with the right code does. It returns apierr.UserNotFound,
// apierr.NoAccess, apierr.CredentialExists for a value that the user already has and for a taken user name, apierr.RecordErased,
// apierr.TooManyCredentials, apierr.OTPSendLimited, apierr.ServiceAccount for a service account, and what signin.Rule.Prove returns.
func (s *Service) addCredential(ctx context.Context, in addCredentialInput) (Credential, error) {
	caller := access.From(ctx)
	user, err := userTable.GetUnchecked(ctx, s.db, in.UserID)
	if err != nil {
		return Credential{}, err
	}
	if caller.UserID != user.ID && !caller.May(access.Credentials, access.Create) {
		return Credential{}, apierr.NoAccess
	}
	if user.Erased() {
		return Credential{}, apierr.RecordErased
	}
	if user.Kind == Machine {
		return Credential{}, apierr.ServiceAccount
	}
	c := newCredential(user.ID, in.id)
	if caller.UserID == user.ID {
		if err := s.auth.Prove(ctx, in.Proof); err != nil {
			return Credential{}, err
		}
		c.session = caller.SessionID
	}
	if c.Validated {
		return s.addUsername(ctx, c)
	}
	c.key += " " + c.ID // unique beside the key of another user with the value
	code, err := s.prepareProof(ctx, c, user.Language)
	if err != nil {
		return Credential{}, err
	}
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		if err := checkCount(ctx, tx, c); err != nil {
			return err
		}
		if err := s.sendLimits(ctx, c.target(), forValidation).consume(ctx, tx); err != nil {
			return err
		}
		if err := s.insert(ctx, tx, &c, records.Actor(ctx)); err != nil {
			return err
		}
		if _, err := s.sendCode(ctx, tx, c.ID, code); err != nil {
			return err
		}
		tx.Respond(c)
		return nil
	})
	return c, err
}

// addUsername adds a user name to a user. User names have no code, so that the response reveals whether a name is taken.
// Therefore the number of attempts is limited.
func (s *Service) addUsername(ctx context.Context, c Credential) (Credential, error) {
	tried := limits{apierr.RateLimited, []quota{{s.subject("names", access.From(ctx).UserID), userSends, hour}}}
	undo, keepUndo := s.auth.NewUndo(signin.Credential, c.UserID, c.ID)
	var rejection error
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		if err := checkCount(ctx, tx, c); err != nil {
			return err
		}
		if err := tried.consume(ctx, tx); err != nil {
			return err
		}
		taken, err := s.isTaken(ctx, tx, c.key)
		if err != nil {
			return err
		}
		if rejection = nil; taken {
			rejection = apierr.CredentialExists
			return nil // committed, so that the attempt counts
		}
		if err := s.outbox.CredentialAdded(ctx, tx, c.UserID, masked(c), undo); err != nil {
			return err
		}
		if err := keepUndo(ctx, tx); err != nil {
			return err
		}
		c.trust(tx.Now().Add(signin.Trial))
		if err := s.insert(ctx, tx, &c, records.Actor(ctx)); err != nil {
			return err
		}
		tx.Respond(c)
		return nil
	})
	if err == nil {
		err = rejection
	}
	return c, err
}

// checkCount returns apierr.TooManyCredentials, or apierr.CredentialExists for a value that the user already has.
func checkCount(ctx context.Context, q store.Querier, c Credential) error {
	if err := notErased(ctx, q, c.UserID); err != nil {
		return err
	}
	var all, same int
	if err := q.QueryRow(ctx, countCredentials, c.UserID, c.target()).Scan(&all, &same); err != nil {
		return err
	}
	switch {
	case same > 0:
		return apierr.CredentialExists
	case all >= maxCredentials:
		return apierr.TooManyCredentials.With(apierr.Args{"Max": maxCredentials})
	}
	return nil
}

// isTaken reports whether a user has validated the value or recently claimed it.
func (s *Service) isTaken(ctx context.Context, q store.Querier, key string) (bool, error) {
	var n int
	err := q.QueryRow(ctx, countTaken, key, q.Now().Add(-s.OTPLife)).Scan(&n)
	return n > 0, err
}

// prepareProof prepares the code that validates a value. If another user has already validated the value, the message says so
// instead, and the stored code is random and is never sent.
func (s *Service) prepareProof(ctx context.Context, c Credential, language string) (code, error) {
	owned, err := selectValidated(ctx, s.db, loginKeys{c.target(), c.target()})
	switch {
	case errors.Is(err, store.ErrNotFound), err == nil && owned.UserID == c.UserID:
		return s.prepareCode(c, language, forValidation), nil
	case err != nil:
		return code{}, err
	}
	owner, err := userTable.GetUnchecked(ctx, s.db, owned.UserID)
	if err != nil {
		return code{}, err
	}
	notice := s.prepareCode(owned, owner.Language, forTakenValue)
	notice.hash, notice.purpose = s.codeHash(c.ID, forValidation, rand.Text()), forValidation
	return notice, nil
}
