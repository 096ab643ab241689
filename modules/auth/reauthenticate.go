package auth

import (
	"context"
	"errors"
	"time"

	"kontor/modules/kit/records"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// freshFor is the time after authentication by password in which a session may change how its user signs in. Refreshing a
// token does not extend it: a stolen token must not be enough to take over the account.
const freshFor = 10 * time.Minute

const actionReauthenticate = "auth.session_reauthenticated"

const (
	selectAuthenticated = `SELECT authenticated_at FROM sessions WHERE id = $1 AND user_id = $2 AND ended_at IS NULL`
	updateAuthenticated = `UPDATE sessions SET authenticated_at = $3 WHERE id = $1 AND user_id = $2 AND ended_at IS NULL`
)

// RequireFresh returns apierr.StaleSession unless the caller's session was authenticated by password during the last ten
// minutes. It reads the session, so only requests that need it should call it.
func (s *Service) RequireFresh(ctx context.Context, q store.Querier) error {
	caller := access.From(ctx)
	var at store.Time
	err := q.QueryRow(ctx, selectAuthenticated, caller.SessionID, caller.UserID).Scan(&at)
	if errors.Is(err, store.ErrNotFound) {
		return apierr.Unauthorized.Wrap(err)
	}
	if err != nil {
		return err
	}
	// A time in the future is not fresh: a session would stay fresh for as long as the clock was set back.
	if now := q.Now(); at > now+clockLeeway || now >= at.Add(freshFor) {
		return apierr.StaleSession.Detail("max_age", int(freshFor/time.Second))
	}
	return nil
}

// Reauthenticate verifies the password of the caller and makes their session fresh. It returns apierr.UserNotFound,
// apierr.NoAccess for another user, apierr.InvalidInput for a wrong password, apierr.LockedOut and apierr.Unavailable.
func (s *Service) Reauthenticate(ctx context.Context, userID, password string) (until store.Time, err error) {
	caller := access.From(ctx)
	if caller.UserID != userID {
		if err := userExists(ctx, s.db, userID); err != nil {
			return 0, err
		}
		return 0, apierr.NoAccess
	}
	err = s.VerifyPassword(ctx, userID, password)
	if errors.Is(err, apierr.InvalidCredentials) {
		// Not 401: the token is valid, and clients take 401 for the end of the session.
		return 0, apierr.Invalid("password", "invalid.wrong_password")
	}
	if err != nil {
		return 0, err
	}
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		until = tx.Now().Add(freshFor)
		changed, err := tx.Exec(ctx, updateAuthenticated, caller.SessionID, userID, tx.Now())
		if err == nil && changed == 0 {
			err = apierr.Unauthorized // the session has ended since
		}
		if err == nil {
			tx.Audit(store.AuditEntry{Actor: records.Actor(ctx), Action: actionReauthenticate, RecType: access.Sessions.Name, RecID: caller.SessionID})
		}
		return err
	})
	return until, err
}

type reauthenticateInput struct {
	UserID   string `path:"id"`
	Password string `json:"password" format:"password" required:"true"`
}

// Validate requires a password.
func (in *reauthenticateInput) Validate(v *apierr.Fields) {
	if in.Password == "" {
		v.Add("password", "invalid.required")
	}
}

type reauthenticateOutput struct {
	Message    string     `json:"message"`
	FreshUntil store.Time `json:"fresh_until" doc:"Until then the session may change credentials, passwords of others and roles."`
}

func (s *Service) reauthenticate(ctx context.Context, in reauthenticateInput) (reauthenticateOutput, error) {
	until, err := s.Reauthenticate(ctx, in.UserID, in.Password)
	return reauthenticateOutput{Message: endpoint.Confirm(ctx, s.options.Texts, "auth.reauthenticated").Message, FreshUntil: until}, err
}
