package factors

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/kit/factor"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// The values of RFC 8176 for the methods.
var (
	amrCode     = []string{factor.AMROTP}
	amrHardware = []string{factor.AMRHardware, factor.AMRUser}
	amrSoftware = []string{factor.AMRSoftware, factor.AMRUser}
)

// Verify checks an answer of a user. Without a user it must be a passkey, which names its user. The caller counts the attempt
// before, and calls Use in the transaction that accepts the answer. Verify returns apierr.InvalidFactor for a wrong answer.
func (s *Service) Verify(ctx context.Context, userID string, session []byte, answer factor.Answer) (factor.Accepted, error) {
	switch {
	case answer.Given() != 1:
		return factor.Accepted{}, apierr.InvalidFactor
	case len(answer.Passkey) > 0:
		return s.verifyPasskey(ctx, userID, session, answer.Passkey)
	case userID == "":
		return factor.Accepted{}, apierr.InvalidFactor
	case answer.RecoveryCode != "":
		return s.verifyRecoveryCode(ctx, userID, answer.RecoveryCode)
	}
	return s.verifyTOTP(ctx, userID, answer.Code)
}

func (s *Service) verifyTOTP(ctx context.Context, userID, code string) (factor.Accepted, error) {
	var id, sealed string
	var last int64
	var trusted store.Time
	err := s.db.QueryRow(ctx, selectTOTP, userID).Scan(&id, &sealed, &last, &trusted)
	if errors.Is(err, store.ErrNotFound) {
		return factor.Accepted{}, apierr.InvalidFactor
	}
	if err != nil {
		return factor.Accepted{}, err
	}
	secret, err := s.unsealSecret(id, sealed)
	if err != nil {
		return factor.Accepted{}, err
	}
	step, ok := matchStep(secret, code, s.db.Now().Std())
	if !ok || step <= last {
		return factor.Accepted{}, apierr.InvalidFactor
	}
	accepted := s.accepted(userID, factor.TOTP, amrCode, trusted)
	accepted.Use = func(ctx context.Context, tx *store.Tx) error {
		return s.use(ctx, tx, userID, useTOTP, id, step, tx.Now())
	}
	return accepted, nil
}

func (s *Service) verifyPasskey(ctx context.Context, userID string, session []byte, answer jsontext.Value) (factor.Accepted, error) {
	if s.party == nil {
		return factor.Accepted{}, apierr.PasskeysUnavailable
	}
	parsed, err := parseAssertion(answer)
	if err != nil {
		return factor.Accepted{}, err
	}
	discovered := userID == ""
	if discovered {
		err := s.db.QueryRow(ctx, selectOwner, base64.RawURLEncoding.EncodeToString(parsed.RawID)).Scan(&userID)
		if errors.Is(err, store.ErrNotFound) {
			return factor.Accepted{}, apierr.InvalidFactor.Wrap(errors.New("unknown passkey"))
		}
		if err != nil {
			return factor.Accepted{}, err
		}
	}
	a, err := s.account(ctx, s.db, userID)
	if err != nil {
		return factor.Accepted{}, err
	}
	used, cloned, err := s.party.finishSignIn(a, session, parsed, discovered)
	if err != nil {
		return factor.Accepted{}, err
	}
	if cloned {
		s.options.Log.Warn("the counter of a passkey did not grow; it may have been copied", "factor", used.id, "user", userID)
		endpoint.Report(ctx, endpoint.Event{Kind: endpoint.FailedSignIn, Action: "factors.counter_went_back", RecType: access.Factors.Name, RecID: used.id})
		return factor.Accepted{}, apierr.InvalidFactor.Wrap(fmt.Errorf("the counter of passkey %s went back", used.id))
	}
	accepted := s.accepted(userID, factor.Passkey, used.amr(), used.trustedFrom)
	accepted.Use = func(ctx context.Context, tx *store.Tx) error {
		return s.use(ctx, tx, userID, usePasskey, used.id, used.signCount, used.backedUp, tx.Now())
	}
	return accepted, nil
}

func (s *Service) verifyRecoveryCode(ctx context.Context, userID, typed string) (factor.Accepted, error) {
	code, ok := parseCode(typed)
	if !ok {
		return factor.Accepted{}, apierr.InvalidFactor
	}
	var id string
	var trusted store.Time
	err := s.db.QueryRow(ctx, selectCodesOf, userID).Scan(&id, &trusted)
	if errors.Is(err, store.ErrNotFound) {
		return factor.Accepted{}, apierr.InvalidFactor
	}
	if err != nil {
		return factor.Accepted{}, err
	}
	var hash string
	hashes := s.codeHashes(id, code)
	err = s.db.QueryRow(ctx, selectCode+store.In(2, len(hashes))+")", store.AppendIn([]any{id}, hashes)...).Scan(&hash)
	if errors.Is(err, store.ErrNotFound) {
		return factor.Accepted{}, apierr.InvalidFactor
	}
	if err != nil {
		return factor.Accepted{}, err
	}
	notification := s.changed(ctx, userID, "recovery_code_used")
	accepted := s.accepted(userID, factor.RecoveryCode, amrCode, trusted)
	accepted.Use = func(ctx context.Context, tx *store.Tx) error {
		before, err := readFactor(ctx, tx, id)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		if err := s.use(ctx, tx, userID, useCode, id, hash, tx.Now()); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, touchCodes, id, tx.Now()); err != nil {
			return err
		}
		if err := audit(ctx, tx, "factors.recovery_code_used", userID, id, before); err != nil {
			return err
		}
		return s.notify.Notify(ctx, tx, notification)
	}
	return accepted, nil
}

// accepted returns a right answer of a factor, without its use.
func (s *Service) accepted(userID, method string, amr []string, trustedFrom store.Time) factor.Accepted {
	return factor.Accepted{UserID: userID, AMR: amr, Method: method, OnTrial: s.db.Now() < trustedFrom, TrustedFrom: trustedFrom}
}

// use runs the statement that marks a factor as used. It returns apierr.InvalidFactor if the factor was used or removed in the
// meantime, and for a user who must not sign in.
func (s *Service) use(ctx context.Context, tx *store.Tx, userID, statement string, args ...any) error {
	if err := checkUser(ctx, tx, userID); err != nil {
		return err
	}
	changed, err := tx.Exec(ctx, statement, args...)
	if err == nil && changed == 0 {
		err = apierr.InvalidFactor.Wrap(errors.New("the answer was used before"))
	}
	return err
}

// The place of the sealed secrets.
const (
	factorsTable = "factors"
	secretColumn = "secret_sealed"
)

func (s *Service) unsealSecret(id, sealed string) (string, error) {
	secret, err := s.db.Unseal(factorsTable, secretColumn, id, sealed)
	if err != nil {
		return "", fmt.Errorf("secret of authenticator app %s: %w", id, err)
	}
	return string(secret), nil
}
