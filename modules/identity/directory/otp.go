package directory

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"

	"kontor/server/apierr"
	"kontor/store"
)

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
		send: s.outbox.PrepareOTP(OTPMessage{
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
