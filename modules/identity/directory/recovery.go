package directory

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"

	"kontor/modules/kit/event"
	"kontor/server/access"
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

// changePassword sets a new password and ends the user's other sessions. Users must enter their old password; administrators
// set passwords of others without it. It returns apierr.UserNotFound, apierr.NoAccess, apierr.StaleSession, apierr.LockedOut and
// apierr.ServiceAccount.
func (s *Service) changePassword(ctx context.Context, in passwordInput) (endpoint.Message, error) {
	caller := access.From(ctx)
	own := caller.UserID == in.UserID
	if !own {
		if err := userExists(ctx, s.db, in.UserID); err != nil {
			return endpoint.Message{}, err
		}
		if !caller.Administrator() {
			return endpoint.Message{}, apierr.NoAccess
		}
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
	return store.All(ctx, s.db, store.Text, selectValues, userID)
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

// The purposes of a code. A code is only valid for its purpose.
const (
	forValidation = "validation"
	forRecovery   = "recovery"

	// forTakenValue is the purpose of a message without a code, to the user who has already validated the value.
	forTakenValue = "taken"
)

const otpDigits = 6

var otpRange = big.NewInt(1_000_000)

// newCode returns a random code; each of the million is equally likely.
func newCode() string {
	n, err := rand.Int(rand.Reader, otpRange)
	if err != nil {
		panic(err) // crypto/rand does not fail: it would end the program
	}
	return fmt.Sprintf("%0*d", otpDigits, n)
}

// parseCode parses a code as people type it. It ignores spaces and hyphens between the digits.
func parseCode(text string) (code string, ok bool) {
	const longest = 32 // longer than six digits with separators
	if len(text) > longest {
		return "", false
	}
	code = strings.NewReplacer(" ", "", "\u00a0", "", "\u202f", "", "-", "", "\t", "").Replace(text)
	if len(code) != otpDigits || strings.Trim(code, "0123456789") != "" {
		return "", false
	}
	return code, true
}

// codeHash returns the stored hash of a code. It is keyed, because the million codes could be tried against a plain hash.
func (s *Service) codeHash(credentialID, purpose, code string) string {
	return hex.EncodeToString(s.db.Keyed("otp", []byte(purpose+"\x00"+credentialID+"\x00"+code)))
}

// code is a new code with its message, prepared before the transaction.
type code struct {
	hash    string
	purpose string
	send    func(ctx context.Context, tx *store.Tx) error
}

// prepareCode returns a new code for a credential with its message in the user's language.
func (s *Service) prepareCode(c Credential, language, purpose string) code {
	return s.codeWithMessage(c, language, purpose, purpose, "")
}

// codeWithMessage returns a new code for a purpose. The message may be another than that of the purpose, and link to a path.
func (s *Service) codeWithMessage(c Credential, language, purpose, message, path string) code {
	digits := newCode()
	return code{
		hash:    s.codeHash(c.ID, purpose, digits),
		purpose: purpose,
		send: s.outbox.PrepareOTP(event.OTPMessage{
			UserID: c.UserID, Channel: channel(c.Type), Recipient: c.Value, Language: language,
			Purpose: message, Code: digits, Minutes: int(s.OTPLife / time.Minute), Path: path,
		}),
	}
}

// sendCode replaces the code of a credential and sends the new one. Callers must have counted it with [Service.sendLimits].
func (s *Service) sendCode(ctx context.Context, tx *store.Tx, credentialID string, c code) (expires store.Time, err error) {
	expires = tx.Now().Add(s.OTPLife)
	if _, err := tx.Exec(ctx, upsertOTP, credentialID, c.purpose, c.hash, expires, tx.Now()); err != nil {
		return 0, fmt.Errorf("store a code: %w", err)
	}
	return expires, c.send(ctx, tx)
}

// codeAccepted is the outcome of an attempt with the right code.
var codeAccepted apierr.Kind

// useCode counts an attempt and consumes the code if it is right, in one statement, so that concurrent attempts cannot exceed
// the limit. The outcome is codeAccepted, apierr.InvalidOTP, apierr.OTPExpired or apierr.OTPAttemptsExceeded. The transaction
// must be committed with each outcome, so that wrong attempts count. err is for everything else.
func (s *Service) useCode(ctx context.Context, tx *store.Tx, credentialID, purpose, hash string) (outcome apierr.Kind, err error) {
	tries, err := s.tries(ctx, tx)
	if err != nil {
		return apierr.InvalidOTP, err
	}
	var right bool
	err = tx.QueryRow(ctx, tryOTP, credentialID, purpose, hash, tries, tx.Now()).Scan(&right)
	switch {
	case err == nil && right:
		return codeAccepted, nil
	case err == nil:
		return apierr.InvalidOTP, nil
	case !errors.Is(err, store.ErrNotFound):
		return apierr.InvalidOTP, fmt.Errorf("try a code: %w", err)
	}
	var attempts int
	var expires store.Time
	err = tx.QueryRow(ctx, selectLiveOTP, credentialID, purpose).Scan(&attempts, &expires)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return apierr.InvalidOTP, nil
	case err != nil:
		return apierr.InvalidOTP, fmt.Errorf("read a code: %w", err)
	case attempts >= tries:
		return apierr.OTPAttemptsExceeded, nil
	default:
		return apierr.OTPExpired, nil
	}
}

const (
	upsertOTP = `
		INSERT INTO otps (credential_id, purpose, code_hash, attempts, consumed, expires_at, created_at)
		VALUES ($1, $2, $3, 0, FALSE, $4, $5)
		ON CONFLICT (credential_id) DO UPDATE SET
			purpose = excluded.purpose, code_hash = excluded.code_hash, attempts = 0, consumed = FALSE,
			expires_at = excluded.expires_at, created_at = excluded.created_at`

	tryOTP = `
		UPDATE otps SET attempts = attempts + 1, consumed = (code_hash = $3)
		WHERE credential_id = $1 AND purpose = $2 AND consumed = FALSE AND attempts < $4 AND expires_at > $5
		RETURNING consumed`

	selectLiveOTP = `
		SELECT attempts, expires_at FROM otps
		WHERE credential_id = $1 AND purpose = $2 AND consumed = FALSE`

	deleteOTP = `DELETE FROM otps WHERE credential_id = $1`
)

const deleteRecoveryOTPs = `
	DELETE FROM otps WHERE purpose = 'recovery'
		AND credential_id IN (SELECT id FROM credentials WHERE user_id = $1)`
