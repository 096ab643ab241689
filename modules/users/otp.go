package users

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"

	"kontor/server/fault"
	"kontor/store"
)

// The purposes of a code. A code for one is worthless for the other.
const (
	forValidation = "validation"
	forRecovery   = "recovery"
)

const (
	otpDigits = 6

	// Codes are sent to one target at most otpSends times within otpWindow.
	otpSends  = 3
	otpWindow = 10 * time.Minute
)

var otpRange = big.NewInt(1_000_000)

// newCode draws a code; each of the million is equally likely.
func newCode() string {
	n, err := rand.Int(rand.Reader, otpRange)
	if err != nil {
		panic(err) // crypto/rand does not fail: it ends the program instead
	}
	return fmt.Sprintf("%0*d", otpDigits, n)
}

// parseCode reads a code as people type it: spaces and hyphens between the digits do not count.
func parseCode(text string) (code string, ok bool) {
	const longest = 32 // no way of writing six digits is longer
	if len(text) > longest {
		return "", false
	}
	code = strings.NewReplacer(" ", "", "\u00a0", "", "\u202f", "", "-", "", "\t", "").Replace(text)
	if len(code) != otpDigits || strings.Trim(code, "0123456789") != "" {
		return "", false
	}
	return code, true
}

// codeHash is how a code is stored and found again. The million codes could be tried against a plain hash.
func (s *Service) codeHash(credentialID, purpose, code string) string {
	return hex.EncodeToString(s.db.Keyed("otp", []byte(purpose+"\x00"+credentialID+"\x00"+code)))
}

// code is a new code with the message that carries it, prepared before the transaction.
type code struct {
	hash    string
	purpose string
	send    func(ctx context.Context, tx *store.Tx) error
}

// prepareCode draws a code for a credential and words its message in the user's language.
func (s *Service) prepareCode(c Credential, language, purpose string) code {
	digits := newCode()
	return code{
		hash:    s.codeHash(c.ID, purpose, digits),
		purpose: purpose,
		send: s.outbox.PrepareOTP(OTPMessage{
			UserID: c.UserID, Channel: channel(c.Type), Recipient: c.Value, Language: language,
			Purpose: purpose, Code: digits, Minutes: int(s.OTPLife / time.Minute),
		}),
	}
}

// sendCode puts a code in the place of the one before and sends it. It returns fault.OTPSendLimited.
func (s *Service) sendCode(ctx context.Context, tx *store.Tx, credentialID, key string, c code) (expires store.Time, err error) {
	if err := s.countSend(ctx, tx, key); err != nil {
		return 0, err
	}
	expires = tx.Now().Add(s.OTPLife)
	if _, err := tx.Exec(ctx, upsertOTP, credentialID, c.purpose, c.hash, expires, tx.Now()); err != nil {
		return 0, fmt.Errorf("store a code: %w", err)
	}
	return expires, c.send(ctx, tx)
}

// countSend notes that a code was asked for and refuses the fourth within the window. Targets are counted whether or
// not they exist, by a keyed hash.
func (s *Service) countSend(ctx context.Context, tx *store.Tx, key string) error {
	target := hex.EncodeToString(s.db.Keyed("otp target", []byte(key)))
	since := tx.Now().Add(-otpWindow)
	if _, err := tx.Exec(ctx, deleteOldSends, since, tx.Now()); err != nil {
		return err
	}
	var sent int
	var first store.Time
	if err := tx.QueryRow(ctx, selectSends, target).Scan(&sent, &first); err != nil {
		return err
	}
	if sent >= otpSends {
		return fault.OTPSendLimited.RetryAfter(first.Add(otpWindow).Std().Sub(tx.Now().Std()))
	}
	_, err := tx.Exec(ctx, insertSend, store.NewID(), target, tx.Now())
	return err
}

// codeRight is the outcome of a try with the right code.
var codeRight fault.Kind

// useCode counts a try and uses the code up when it is right, in one statement, so that tries at the same time cannot
// exceed the number allowed. The outcome is codeRight, fault.InvalidOTP, fault.OTPExpired or fault.OTPAttemptsExceeded;
// the transaction has to be committed with each of them, so that a wrong try counts. err is for everything else.
func (s *Service) useCode(ctx context.Context, tx *store.Tx, credentialID, purpose, hash string) (outcome fault.Kind, err error) {
	var right bool
	err = tx.QueryRow(ctx, tryOTP, credentialID, purpose, hash, s.OTPAttempts, tx.Now()).Scan(&right)
	switch {
	case err == nil && right:
		return codeRight, nil
	case err == nil:
		return fault.InvalidOTP, nil
	case !errors.Is(err, store.ErrNotFound):
		return fault.InvalidOTP, fmt.Errorf("try a code: %w", err)
	}
	var attempts int
	var expires store.Time
	err = tx.QueryRow(ctx, selectLiveOTP, credentialID, purpose).Scan(&attempts, &expires)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return fault.InvalidOTP, nil
	case err != nil:
		return fault.InvalidOTP, fmt.Errorf("read a code: %w", err)
	case attempts >= s.OTPAttempts:
		return fault.OTPAttemptsExceeded, nil
	default:
		return fault.OTPExpired, nil
	}
}
