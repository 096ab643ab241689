package directory

import (
	"context"
	"errors"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// changePassword sets a new password and ends the user's other sessions. Users must enter their old password; administrators
// set passwords of others without it. It returns apierr.UserNotFound, apierr.NoAccess, apierr.StaleSession, apierr.LockedOut and
// apierr.ServiceAccount.
func (s *Service) changePassword(ctx context.Context, in passwordInput) (endpoint.Message, error) {
	caller := access.From(ctx)
	own := caller.UserID == in.UserID
	if !own && !caller.Administrator() {
		if err := userExists(ctx, s.db, in.UserID); err != nil {
			return endpoint.Message{}, err
		}
		return endpoint.Message{}, apierr.NoAccess
	}
	// The old password is a recent authentication of a user without a second factor.
	if !own || caller.SignedIn.HasFactor {
		if err := endpoint.RequireAssurance(ctx, endpoint.SecondFactor); err != nil {
			return endpoint.Message{}, err
		}
	}
	if err := s.checkNewPassword(ctx, in, own); err != nil {
		return endpoint.Message{}, err
	}
	hash, err := s.auth.HashPassword(ctx, in.Password)
	if err != nil {
		return endpoint.Message{}, err
	}
	keep := ""
	if own {
		keep = caller.SessionID
	}
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		u, err := s.getForUpdate(ctx, tx, in.UserID)
		if err != nil {
			return err
		}
		return s.replacePassword(ctx, tx, u, hash, keep, in.RemoveNew == nil && !own || in.RemoveNew != nil && *in.RemoveNew)
	})
	return endpoint.Confirm(ctx, s.texts, "users.password_changed"), err
}

// checkNewPassword checks everything that must be valid before a password is hashed.
func (s *Service) checkNewPassword(ctx context.Context, in passwordInput, own bool) error {
	personal, err := s.values(ctx, in.UserID)
	if err != nil {
		return err
	}
	var problems apierr.Fields
	s.auth.CheckPassword(&problems, "password", in.Password, personal...)
	if own && in.OldPassword == "" {
		problems.Add("old_password", "invalid.required")
	}
	if err := problems.Err(); err != nil || !own {
		return err
	}
	err = s.auth.VerifyPassword(ctx, in.UserID, in.OldPassword)
	if errors.Is(err, apierr.InvalidCredentials) {
		// Not 401: the token is valid, and clients take 401 for the end of the session.
		return apierr.Invalid("old_password", "invalid.old_password")
	}
	return err
}

const selectValues = `SELECT value FROM credentials WHERE user_id = $1`

// values returns the credential values of a user, which their password must not restate. It returns apierr.UserNotFound, and
// apierr.ServiceAccount for a service account, which has no password.
func (s *Service) values(ctx context.Context, userID string) ([]string, error) {
	u, err := userTable.GetUnchecked(ctx, s.db, userID)
	if err != nil {
		return nil, err
	}
	if u.Kind == Machine {
		return nil, apierr.ServiceAccount
	}
	rows, err := s.db.Query(ctx, selectValues, userID)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var values []string
	for rows.Next() {
		var v string
		if err := rows.Scan(&v); err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	return values, rows.Err()
}

// replacePassword sets a password, ends all sessions except one, and deletes pending codes for a recovery. With removeNew, it
// removes the methods of sign-in that are on trial or not confirmed; a pending user has no others.
func (s *Service) replacePassword(ctx context.Context, tx *store.Tx, u User, hash, keepSession string, removeNew bool) error {
	userID := u.ID
	if removeNew && u.Status != Pending {
		if err := s.auth.DropOnTrial(ctx, tx, userID); err != nil {
			return err
		}
	}
	if err := s.auth.SetPassword(ctx, tx, userID, hash); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, deleteRecoveryOTPs, userID); err != nil {
		return err
	}
	userTable.Audit(ctx, tx, "users.password", userID, nil, nil)
	if err := s.outbox.PasswordChanged(ctx, tx, userID); err != nil {
		return err
	}
	return s.auth.EndSessions(ctx, tx, userID, keepSession)
}
