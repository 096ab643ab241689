package auth

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

const (
	actionPassword = "auth.password_set"
	actionRehash   = "auth.password_rehash" // the same password, hashed with the parameters of today
)

// account is what sign-in knows of a user. The zero account is nobody.
type account struct {
	id     string
	status string
	hash   string
}

const (
	// A user id wins over a credential that looks like one, and the former key of a value over the one that it shares
	// with its look-alikes: it belongs to a credential that collides with an older one.
	selectAccountByKey = `
		SELECT u.id, u.status, COALESCE(p.hash, '')
		FROM users u
		LEFT JOIN passwords p ON p.user_id = u.id
		WHERE u.id = COALESCE(
			(SELECT id FROM users WHERE id = $1),
			(SELECT user_id FROM credentials WHERE value_key = $2 AND validated = TRUE),
			(SELECT user_id FROM credentials WHERE value_key = $1 AND validated = TRUE))`

	upsertPassword = `
		INSERT INTO passwords (user_id, hash, changed_at) VALUES ($1, $2, $3)
		ON CONFLICT (user_id) DO UPDATE SET hash = excluded.hash, changed_at = excluded.changed_at, printed = FALSE`

	updatePasswordPrinted = `UPDATE passwords SET printed = TRUE WHERE user_id = $1`

	updatePasswordHash = `UPDATE passwords SET hash = $2 WHERE user_id = $1 AND hash = $3`

	updateLastLogin = `UPDATE users SET last_login_at = $2 WHERE id = $1`
)

// login is a value that somebody signs in with, in the forms under which it is looked up.
type login struct{ key, former string }

// selectAccount finds the user of a value, or nobody.
func selectAccount(ctx context.Context, q store.Querier, l login) (account, error) {
	var a account
	err := q.QueryRow(ctx, selectAccountByKey, l.key, l.former).Scan(&a.id, &a.status, &a.hash)
	if errors.Is(err, store.ErrNotFound) {
		return account{}, nil
	}
	return a, err
}

// loginOf reads a value as it is typed.
func (s *Service) loginOf(value string) login {
	if id, err := uuid.Parse(strings.TrimSpace(value)); err == nil {
		return login{id.String(), id.String()}
	}
	return login{s.options.LoginKey(value), s.options.FormerKey(value)}
}

// SignIn opens a session for whoever shows the password of a user. It returns apierr.InvalidCredentials, the same whether
// or not the user exists, apierr.CoolingOff after too many failures, and apierr.Unavailable when too many sign in at once.
func (s *Service) SignIn(ctx context.Context, value, password string) (Tokens, error) {
	if _, err := deviceID(ctx); err != nil {
		return Tokens{}, err
	}
	typed := s.loginOf(value)
	found, err := selectAccount(ctx, s.db, typed)
	if err != nil {
		return Tokens{}, err
	}
	tried := s.newAttempt(ctx, found.id, typed.key)
	done, err := s.takeTurn(tried)
	if err != nil {
		return Tokens{}, err
	}
	defer done()
	user, upgraded, used, err := s.verify(ctx, tried, typed, password)
	if err != nil {
		return Tokens{}, err
	}
	var tokens Tokens
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		// What was verified may have been changed since.
		now, err := selectAccount(ctx, tx, login{user.id, user.id})
		if err != nil {
			return err
		}
		switch {
		case now.id != user.id || now.status != user.status || tried.user != user.id:
			return apierr.InvalidCredentials
		case now.hash != user.hash: // a new password, or a parallel sign-in upgraded the hash: the next try will tell
			return apierr.Unavailable
		}
		if err := forgive(ctx, tx, tried, used); err != nil {
			return err
		}
		if upgraded != "" {
			if _, err := tx.Exec(ctx, updatePasswordHash, user.id, upgraded, user.hash); err != nil {
				return err
			}
			entry := store.AuditEntry{Actor: user.id, Action: actionRehash, RecType: passwordProof.Type, RecID: user.id}
			if err := passwordProof.AuditEntry(ctx, tx, entry); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, updateLastLogin, user.id, tx.Now()); err != nil {
			return err
		}
		var session string
		if tokens, session, err = s.openSession(ctx, tx, user.id, renewable); err != nil {
			return err
		}
		tokens.DeviceToken, err = s.renewDevice(ctx, tx, tried, session)
		return err
	})
	return tokens, err
}

// VerifyPassword asks for the password of a signed-in user again. Failures count like those of signing in with the
// user's id. It returns apierr.InvalidCredentials, apierr.CoolingOff and apierr.Unavailable.
func (s *Service) VerifyPassword(ctx context.Context, userID, password string) error {
	tried := s.newAttempt(ctx, userID, "")
	done, err := s.takeTurn(tried)
	if err != nil {
		return err
	}
	defer done()
	_, _, used, err := s.verify(ctx, tried, login{userID, userID}, password)
	if err != nil {
		return err
	}
	return s.db.InTx(ctx, func(tx *store.Tx) error { return forgive(ctx, tx, tried, used) })
}

// verify counts the attempt and then compares the password. The caller has the turn of the attempt. Every failure costs
// exactly one hash. upgraded is a new hash of the password where the stored one has other parameters than those of today.
func (s *Service) verify(ctx context.Context, tried attempt, typed login, password string) (user account, upgraded string, used lane, err error) {
	// Most who have to wait are told without a write and without a place in the queue.
	_, wait, err := s.choose(ctx, s.db, tried)
	if err := coolingOff(wait, err); err != nil {
		if errors.Is(err, apierr.CoolingOff) {
			reportFailure(ctx, endpoint.Throttling, "auth.cooling_off", tried, "")
		}
		return account{}, "", lane{}, err
	}
	// The place comes before the attempt is counted: who is turned away for want of one has not used it up.
	leave, err := s.hasher.enter()
	if err != nil {
		return account{}, "", lane{}, err
	}
	defer leave()
	if used, err = s.reserve(ctx, tried); err != nil {
		return account{}, "", lane{}, err
	}
	if user, err = selectAccount(ctx, s.db, typed); err != nil {
		return account{}, "", lane{}, err
	}
	hash, real := s.hasher.decoy, false
	if user.hash != "" {
		stored, err := parseHash(user.hash)
		if err != nil {
			s.options.Log.Error("sign-in", "cause", fmt.Errorf("password of user %s: %w", user.id, err))
		} else {
			hash, real = stored, user.status != "disabled"
		}
	}
	if isTooLong(password) { // no password is: the cost of looking at it must not depend on its length
		password, real = "", false
	}
	if matched := s.hasher.matches(hash, password); !matched || !real {
		s.options.Log.Info("sign-in refused", "request_id", endpoint.Of(ctx).RequestID)
		reportFailure(ctx, endpoint.FailedSignIn, "auth.sign_in_failed", tried, user.id)
		if err := s.countForNetworks(ctx, tried); err != nil {
			return account{}, "", lane{}, err
		}
		return account{}, "", lane{}, apierr.InvalidCredentials
	}
	if hash.cost != s.hasher.cost {
		upgraded = s.hasher.hash(password).String()
	}
	return user, upgraded, used, nil
}

// MarkPrinted notes that the password of a user was printed, until it is replaced: the user is reminded to do so.
func (s *Service) MarkPrinted(ctx context.Context, tx *store.Tx, userID string) error {
	_, err := tx.Exec(ctx, updatePasswordPrinted, userID)
	return err
}

// reportFailure reports a failed attempt to the audit trail. What was tried is named by its keyed hash only: a password
// typed into the wrong field must not be kept.
func reportFailure(ctx context.Context, kind endpoint.EventKind, action string, tried attempt, userID string) {
	const shown = 16 // digits of the hash: enough to recognise a value again
	endpoint.Report(ctx, endpoint.Event{Kind: kind, Action: action, RecType: access.Users.Name, RecID: userID, Subject: tried.who[:shown]})
}

// SetPassword stores a hash from [Service.HashPassword] in place of the one before and revokes the device tokens of the
// user. The caller decides which sessions end with the old password.
func (s *Service) SetPassword(ctx context.Context, tx *store.Tx, userID, hash string) error {
	if _, err := parseHash(hash); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, upsertPassword, userID, hash, tx.Now()); err != nil {
		return err
	}
	if err := s.forgetFamiliar(ctx, tx, userID); err != nil {
		return err
	}
	return passwordProof.Audit(ctx, tx, actionPassword, userID, nil)
}
