package directory

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"kontor/modules/kit/records"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

// trustedAfter is how long a credential that is added to an account can neither recover it nor stand in for an older one:
// long enough for its user to read of it at an older address.
const trustedAfter = 24 * time.Hour

// addCredential gives a user a further credential and sends the code that validates it. The answer does not
// reveal whether another user has the value; entering the right code does. It returns apierr.UserNotFound,
// apierr.NoAccess, apierr.StaleSession, apierr.CredentialExists for a value that the user has already and for a user name
// that anybody has, apierr.TooManyCredentials and apierr.OTPSendLimited.
func (s *Service) addCredential(ctx context.Context, in addCredentialInput) (Credential, error) {
	caller := access.From(ctx)
	user, err := accounts.GetUnchecked(ctx, s.db, in.UserID)
	if err != nil {
		return Credential{}, err
	}
	if caller.UserID != user.ID && !caller.May(access.Credentials, access.Create) {
		return Credential{}, apierr.NoAccess
	}
	if err := s.auth.RequireFresh(ctx, s.db); err != nil {
		return Credential{}, err
	}
	c := newCredential(user.ID, in.id)
	if c.Validated {
		return s.addUsername(ctx, c)
	}
	c.key += " " + c.ID // keeps the key unique beside that of another user with the value
	code, err := s.prepareProof(ctx, c, user.Language)
	if err != nil {
		return Credential{}, err
	}
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		if err := checkRoom(ctx, tx, c); err != nil {
			return err
		}
		if err := s.sendLimits(ctx, c.target(), forValidation).take(ctx, tx); err != nil {
			return err
		}
		if err := s.insert(ctx, tx, &c, records.Actor(ctx)); err != nil {
			return err
		}
		if _, err := s.sendCode(ctx, tx, c.ID, code); err != nil {
			return err
		}
		tx.Respond(created, c)
		return nil
	})
	return c, err
}

// addUsername gives a user a name. It has no code that could keep secret whether it is taken, so that few may be tried.
func (s *Service) addUsername(ctx context.Context, c Credential) (Credential, error) {
	tried := limits{apierr.RateLimited, []quota{{s.subject("names", access.From(ctx).UserID), userSends, hour}}}
	var refused error
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		if err := checkRoom(ctx, tx, c); err != nil {
			return err
		}
		if err := tried.take(ctx, tx); err != nil {
			return err
		}
		taken, err := s.isTaken(ctx, tx, c.key)
		if err != nil {
			return err
		}
		if refused = nil; taken {
			refused = apierr.CredentialExists
			return nil // committed, so that the try counts
		}
		if err := s.outbox.CredentialAdded(ctx, tx, c.UserID, masked(c)); err != nil {
			return err
		}
		c.trustedFrom = tx.Now().Add(trustedAfter)
		if err := s.insert(ctx, tx, &c, records.Actor(ctx)); err != nil {
			return err
		}
		tx.Respond(created, c)
		return nil
	})
	if err == nil {
		err = refused
	}
	return c, err
}

// checkRoom returns apierr.TooManyCredentials, or apierr.CredentialExists for a value that the user has already.
func checkRoom(ctx context.Context, q store.Querier, c Credential) error {
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

// isTaken reports whether a value is somebody's, validated or claimed lately.
func (s *Service) isTaken(ctx context.Context, q store.Querier, key string) (bool, error) {
	var n int
	err := q.QueryRow(ctx, countTaken, key, q.Now().Add(-s.OTPLife)).Scan(&n)
	return n > 0, err
}

// prepareProof draws the code that proves that a value belongs to the user. Where it is somebody else's already, the
// message to the address says so instead, and the code is random and never sent.
func (s *Service) prepareProof(ctx context.Context, c Credential, language string) (code, error) {
	owned, err := selectValidated(ctx, s.db, keys{c.target(), c.target()})
	switch {
	case errors.Is(err, store.ErrNotFound), err == nil && owned.UserID == c.UserID:
		return s.prepareCode(c, language, forValidation), nil
	case err != nil:
		return code{}, err
	}
	owner, err := accounts.GetUnchecked(ctx, s.db, owned.UserID)
	if err != nil {
		return code{}, err
	}
	told := s.prepareCode(owned, owner.Language, aboutTaken)
	told.hash, told.purpose = s.codeHash(c.ID, forValidation, rand.Text()), forValidation
	return told, nil
}
