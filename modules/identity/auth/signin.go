package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"kontor/modules/kit/factor"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

const (
	actionPassword     = "auth.password_set"
	actionSignInFailed = "auth.sign_in_failed"
	actionRehash       = "auth.password_rehash" // the same password, hashed with the present parameters
)

// loginOf returns the keys of a value as people type it.
func (s *Service) loginOf(value string) login {
	if id, err := uuid.Parse(strings.TrimSpace(value)); err == nil {
		return login{id.String(), id.String()}
	}
	return login{s.options.LoginKey(value), s.options.FormerKey(value)}
}

// signIn opens a session for the user with the sign-in value and the password. For a user with a second factor it returns the
// next step instead, and no tokens. It returns apierr.InvalidCredentials, the same
// whether or not the user exists, apierr.LockedOut after too many failures, and apierr.Unavailable when the queue is full.
func (s *Service) signIn(ctx context.Context, in signInInput) (endpoint.Result, error) {
	typed := s.loginOf(in.UserID)
	found, err := selectAccount(ctx, s.db, typed)
	if err != nil {
		return endpoint.Result{}, err
	}
	tried := s.newAttempt(ctx, found.id, typed.key)
	release, err := s.acquireTurn(tried)
	if err != nil {
		return endpoint.Result{}, err
	}
	defer release()
	user, upgraded, used, err := s.verify(ctx, tried, typed, in.Password)
	if err != nil {
		return endpoint.Result{}, err
	}
	amr := Methods{factor.AMRPassword}
	step, pending, err := s.nextStep(ctx, user.id, amr, s.db.Now())
	if err != nil {
		return endpoint.Result{}, err
	}
	var tokens Tokens
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		if err := s.acceptPassword(ctx, tx, user, tried, used, upgraded); err != nil {
			return err
		}
		if step != nil {
			return pending.insert(ctx, tx)
		}
		if err := s.requireNoStep(ctx, tx, user.id, amr); err != nil {
			return err
		}
		tokens, err = s.openAfter(ctx, tx, tried, proof{amr: amr, at: tx.Now()})
		return err
	})
	if step != nil {
		return endpoint.Result{Status: http.StatusAccepted, Body: step}, err
	}
	return endpoint.Result{Body: tokens}, err
}

// acceptPassword records a right password.
func (s *Service) acceptPassword(ctx context.Context, tx *store.Tx, user account, tried attempt, used budgetSet, upgraded string) error {
	if err := checkUnchanged(ctx, tx, user, tried); err != nil {
		return err
	}
	if err := forgetFailures(ctx, tx, tried, used); err != nil {
		return err
	}
	if upgraded != "" {
		return upgradeHash(ctx, tx, user, upgraded)
	}
	return nil
}

// checkUnchanged compares a verified user with the database. It returns apierr.InvalidCredentials when the user has changed
// since, and apierr.Unavailable for another hash: the password is new, or a concurrent sign-in has upgraded its hash.
func checkUnchanged(ctx context.Context, tx *store.Tx, user account, tried attempt) error {
	now, err := selectAccount(ctx, tx, login{user.id, user.id})
	switch {
	case err != nil:
		return err
	case now.id != user.id || now.status != user.status || tried.user != user.id:
		return apierr.InvalidCredentials
	case now.hash != user.hash:
		return apierr.Unavailable
	}
	return nil
}

// upgradeHash stores a hash of the same password with the present parameters.
func upgradeHash(ctx context.Context, tx *store.Tx, user account, upgraded string) error {
	if _, err := tx.Exec(ctx, updatePasswordHash, user.id, upgraded, user.hash); err != nil {
		return err
	}
	entry := store.AuditEntry{Actor: user.id, Action: actionRehash, RecType: passwordProof.Type, RecID: user.id}
	return passwordProof.AuditEntry(ctx, tx, entry)
}

// VerifyPassword verifies the password of a signed-in user again. Failures count like those of sign-ins with the user's id. It
// returns apierr.InvalidCredentials, apierr.LockedOut and apierr.Unavailable.
func (s *Service) VerifyPassword(ctx context.Context, userID, password string) error {
	tried := s.newAttempt(ctx, userID, "")
	release, err := s.acquireTurn(tried)
	if err != nil {
		return err
	}
	defer release()
	_, _, used, err := s.verify(ctx, tried, login{userID, userID}, password)
	if err != nil {
		return err
	}
	return s.db.InTx(ctx, func(tx *store.Tx) error {
		if err := forgetFailures(ctx, tx, tried, used); err != nil {
			return err
		}
		return rememberNetwork(ctx, tx, tried)
	})
}

// verify counts the attempt and then compares the password. The caller must hold the turn of the attempt. Every failure
// costs exactly one hash. upgraded is a new hash of the password if the stored one has other parameters than the present.
func (s *Service) verify(ctx context.Context, tried attempt, typed login, password string) (user account, upgraded string, used budgetSet, err error) {
	// Callers that are locked out are rejected here, without a write and without a place in the queue.
	_, wait, err := s.choose(ctx, s.db, tried)
	if err := lockedOut(wait, err); err != nil {
		reportLockout(ctx, err, tried)
		return account{}, "", budgetSet{}, err
	}
	// Before the attempt is counted: a caller rejected because the queue is full does not consume an attempt.
	release, err := s.hasher.acquire()
	if err != nil {
		return account{}, "", budgetSet{}, err
	}
	defer release()
	if used, err = s.reserve(ctx, tried); err != nil {
		return account{}, "", budgetSet{}, err
	}
	if user, err = selectAccount(ctx, s.db, typed); err != nil {
		return account{}, "", budgetSet{}, err
	}
	matched, upgraded, err := s.compare(ctx, user, password)
	if err != nil {
		return account{}, "", budgetSet{}, errors.Join(err, s.giveBack(ctx, used))
	}
	if !matched {
		s.options.Log.Info("sign-in rejected", "request_id", endpoint.Of(ctx).RequestID)
		reportFailure(ctx, endpoint.FailedSignIn, actionSignInFailed, tried, user.id)
		if err := s.countNetworkFailure(ctx, tried); err != nil {
			return account{}, "", budgetSet{}, err
		}
		return account{}, "", budgetSet{}, apierr.InvalidCredentials
	}
	return user, upgraded, used, nil
}

// compare compares a password with that of a user. It takes the time of one hash in any case: also for unknown and disabled
// users, damaged hashes, and texts that are too long to be a password. It returns apierr.Unavailable when it could not compare them.
func (s *Service) compare(ctx context.Context, user account, password string) (matched bool, upgraded string, err error) {
	hash, real := s.hasher.dummy, false
	if user.hash != "" {
		stored, err := parseHash(user.hash)
		if err != nil {
			s.options.Log.Error("sign-in", "cause", fmt.Errorf("password of user %s: %w", user.id, err))
		} else {
			hash, real = stored, user.status != "disabled"
		}
	}
	if isTooLong(password) {
		password, real = "", false
	}
	matched, err = s.hasher.matches(ctx, hash, password)
	if err != nil || !matched || !real {
		return false, "", err
	}
	if hash.cost != s.hasher.cost {
		better, err := s.hasher.hash(ctx, password)
		if err != nil {
			return false, "", err
		}
		upgraded = better.String()
	}
	return true, upgraded, nil
}

// MarkPrinted records that the password of a user was printed. The console reminds the user until they replace it.
func (s *Service) MarkPrinted(ctx context.Context, tx *store.Tx, userID string) error {
	return tx.Run(ctx, updatePasswordPrinted, userID)
}

// PasswordPrinted reports whether the password of a user is still the one that the first start printed.
func (s *Service) PasswordPrinted(ctx context.Context, q store.Querier, userID string) (printed bool, err error) {
	err = q.QueryRow(ctx, selectPrinted, userID).Scan(&printed)
	return printed, store.Optional(err)
}

// reportFailure reports a failed attempt to the audit trail. It names the sign-in value by its keyed hash only, because people
// type passwords into the wrong field.
func reportFailure(ctx context.Context, kind endpoint.EventKind, action string, tried attempt, userID string) {
	const shown = 16 // digits of the hash, enough to recognise a value
	endpoint.Report(ctx, endpoint.Event{Kind: kind, Action: action, RecType: access.Users.Name, RecID: userID, Subject: tried.who[:shown]})
}

// reportLockout reports an attempt that was rejected during a lockout.
func reportLockout(ctx context.Context, err error, tried attempt) {
	if errors.Is(err, apierr.LockedOut) {
		reportFailure(ctx, endpoint.Throttling, "auth.cooling_off", tried, "")
	}
}

// SetPassword stores a hash from [Service.HashPassword] and revokes the device tokens of the user. It ends no sessions.
func (s *Service) SetPassword(ctx context.Context, tx *store.Tx, userID, hash string) error {
	if _, err := parseHash(hash); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, upsertPassword, userID, hash, tx.Now()); err != nil {
		return err
	}
	if err := s.forgetKnownClients(ctx, tx, userID); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, deleteChallenges, userID, access.From(ctx).SessionID); err != nil {
		return err
	}
	return passwordProof.Audit(ctx, tx, actionPassword, userID, nil)
}

const (
	// A user id takes precedence over credentials. The former key of a value takes precedence over the key that it shares
	// with look-alikes: it belongs to a credential that collides with an older one.
	selectAccountByKey = `
		SELECT u.id, u.status, COALESCE(p.hash, '')
		FROM people u
		LEFT JOIN passwords p ON p.user_id = u.id
		WHERE u.id = COALESCE(
			(SELECT id FROM people WHERE id = $1),
			(SELECT user_id FROM user_credentials WHERE value_key = $2 AND validated = TRUE),
			(SELECT user_id FROM user_credentials WHERE value_key = $1 AND validated = TRUE))`

	upsertPassword = `
		INSERT INTO passwords (user_id, hash, changed_at) VALUES ($1, $2, $3)
		ON CONFLICT (user_id) DO UPDATE SET hash = excluded.hash, changed_at = excluded.changed_at, printed = FALSE`

	updatePasswordPrinted = `UPDATE passwords SET printed = TRUE WHERE user_id = $1`

	updatePasswordHash = `UPDATE passwords SET hash = $2 WHERE user_id = $1 AND hash = $3`

	selectPrinted = `SELECT printed FROM passwords WHERE user_id = $1`
)

// account is a user with the hash of their password. The zero account means an unknown user.
type account struct {
	id     string
	status string
	hash   string
}

// login holds the keys of a sign-in value.
type login struct{ key, former string }

// selectAccount returns the user of a value, or the zero account.
func selectAccount(ctx context.Context, q store.Querier, l login) (account, error) {
	var a account
	err := q.QueryRow(ctx, selectAccountByKey, l.key, l.former).Scan(&a.id, &a.status, &a.hash)
	return a, store.Optional(err)
}
