package factors

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/kit/factor"
	"kontor/modules/kit/records"
	"kontor/modules/kit/signin"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// Confirmed is an active factor. The first one comes with recovery codes, which are shown once.
type Confirmed struct {
	Factor
	RecoveryCodes []string `json:"recovery_codes,omitzero" example:"7K2M-9QPT-4XWD" doc:"With the first factor only. Each works once. They are not shown again."`
}

// proven is what an enrolment has proved: the statement that activates the factor, and how it counts for the session.
type proven struct {
	statement string
	args      []any // after the id and the end of the trial
	amr       []string
}

// confirm activates a pending factor of the caller. The first factor ends the other sessions of the user: they were opened
// with a password alone, perhaps by the person against whom the factor protects. It returns apierr.UserNotFound,
// apierr.FactorNotFound, apierr.NoAccess, apierr.FactorActive, apierr.EnrolmentOver, apierr.PasskeyExists and
// apierr.InvalidInput.
func (s *Service) confirm(ctx context.Context, in confirmInput) (Confirmed, error) {
	f, err := s.own(ctx, s.db, in.UserID, in.FactorID)
	if err != nil {
		return Confirmed{}, err
	}
	if f.Status == active {
		return Confirmed{}, apierr.FactorActive
	}
	if err := in.check(f.Type); err != nil {
		return Confirmed{}, err
	}
	if err := s.reserve(ctx, f.ID); err != nil {
		return Confirmed{}, err
	}
	p, err := s.prove(ctx, f, in)
	if err != nil {
		return Confirmed{}, err
	}
	confirmed := Confirmed{Factor: f, RecoveryCodes: newCodes()}
	undo, keepUndo := s.auth.NewUndo(signin.Factor, f.UserID, f.ID)
	notification := s.added(ctx, f.UserID, f.Type+"_added", undo)
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		first, err := s.activate(ctx, tx, f, p)
		if err != nil {
			return err
		}
		if first {
			if err := s.protect(ctx, tx, f.UserID, confirmed.RecoveryCodes); err != nil {
				return err
			}
			if err := s.auth.FactorVerified(ctx, tx, p.amr); err != nil {
				return err
			}
		} else {
			confirmed.RecoveryCodes = nil
		}
		if err := keepUndo(ctx, tx); err != nil {
			return err
		}
		s.auth.Changed(tx, f.UserID)
		if err := s.notify.Notify(ctx, tx, notification); err != nil {
			return err
		}
		confirmed.Factor, err = table.GetUnchecked(ctx, tx, f.ID)
		return err
	})
	return confirmed, err
}

// reserve counts an attempt before it is evaluated, so that parallel ones cannot exceed their number. It returns
// apierr.EnrolmentOver for an enrolment that has expired, was tried too often, or began in another session.
func (s *Service) reserve(ctx context.Context, id string) error {
	return s.db.InTx(ctx, func(tx *store.Tx) error {
		counted, err := tx.Exec(ctx, countAttempt, id, access.From(ctx).SessionID, tx.Now().Add(-enrolmentLife), enrolmentAttempts)
		if err == nil && counted == 0 {
			err = apierr.EnrolmentOver
		}
		return err
	})
}

// prove checks the answer of an authenticator. A wrong answer is apierr.InvalidInput, not apierr.InvalidFactor: clients take
// 401 for the end of the session.
func (s *Service) prove(ctx context.Context, f Factor, in confirmInput) (proven, error) {
	if f.Type == factor.TOTP {
		return s.proveTOTP(ctx, f, in.Code)
	}
	if s.party == nil {
		return proven{}, apierr.PasskeysUnavailable
	}
	kept, err := s.auth.TakeChallenge(ctx, f.UserID, in.Token)
	if err != nil {
		return proven{}, err
	}
	a, err := s.account(ctx, s.db, f.UserID)
	if err != nil {
		return proven{}, err
	}
	made, err := s.party.finishEnrolment(a, kept, f.ID, in.Passkey)
	if errors.Is(err, apierr.InvalidFactor) {
		s.options.Log.Info("a passkey was rejected", "request_id", endpoint.Of(ctx).RequestID, "cause", err)
		return proven{}, apierr.Invalid("passkey", "factors.passkey_rejected")
	}
	if err != nil {
		return proven{}, err
	}
	return proven{activatePasskey, []any{made.credentialID, made.publicKey, strings.Join(made.transports, " "), made.aaguid, made.backupEligible,
		made.backedUp, made.signCount}, made.amr()}, nil
}

func (s *Service) proveTOTP(ctx context.Context, f Factor, code string) (proven, error) {
	var sealed string
	if err := s.db.QueryRow(ctx, selectSecret, f.ID).Scan(&sealed); err != nil {
		return proven{}, err
	}
	secret, err := s.unsealSecret(f.ID, sealed)
	if err != nil {
		return proven{}, err
	}
	step, ok := matchStep(secret, code, s.db.Now().Std())
	if !ok {
		return proven{}, apierr.Invalid("code", "invalid.wrong_code")
	}
	return proven{activateTOTP, []any{step}, amrCode}, nil
}

// activate stores what was proved. first reports that the user had no other factor.
func (s *Service) activate(ctx context.Context, tx *store.Tx, f Factor, p proven) (first bool, err error) {
	all, err := ofUser(ctx, tx, f.UserID)
	if err != nil {
		return false, err
	}
	err = proof.ChangeBy(ctx, tx, f.UserID, "factors.confirm", f.ID, func() error {
		changed, err := tx.Exec(ctx, p.statement, append([]any{f.ID, tx.Now().Add(signin.Trial)}, p.args...)...)
		switch {
		case errors.Is(err, store.ErrDuplicate):
			return apierr.PasskeyExists.Wrap(err)
		case err == nil && changed == 0:
			return apierr.EnrolmentOver
		}
		return err
	})
	return !slices.ContainsFunc(all, isSecond), records.OrMissing(err, apierr.EnrolmentOver)
}

// protect gives a user with their first factor recovery codes, and ends their other sessions.
func (s *Service) protect(ctx context.Context, tx *store.Tx, userID string, codes []string) error {
	all, err := ofUser(ctx, tx, userID)
	if err != nil {
		return err
	}
	f := newFactor{Factor: Factor{ID: store.NewID(), UserID: userID, Type: RecoveryCodes, version: 1}, createdBy: userID}
	if f.Name, err = s.nameFor(ctx, f.Factor, all); err != nil {
		return err
	}
	if _, err := s.insertCodes(ctx, tx, f, codes); err != nil {
		return err
	}
	return s.auth.EndSessions(ctx, tx, userID, access.From(ctx).SessionID)
}

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
	if err != nil {
		return factor.Accepted{}, records.OrMissing(err, apierr.InvalidFactor)
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
	if err := s.db.QueryRow(ctx, selectCodesOf, userID).Scan(&id, &trusted); err != nil {
		return factor.Accepted{}, records.OrMissing(err, apierr.InvalidFactor)
	}
	var hash string
	hashes := s.codeHashes(id, code)
	err := s.db.QueryRow(ctx, selectCode+store.In(2, len(hashes))+")", store.AppendIn([]any{id}, hashes)...).Scan(&hash)
	if err != nil {
		return factor.Accepted{}, records.OrMissing(err, apierr.InvalidFactor)
	}
	notification := s.changed(ctx, userID, "recovery_code_used")
	accepted := s.accepted(userID, factor.RecoveryCode, amrCode, trusted)
	accepted.Use = func(ctx context.Context, tx *store.Tx) error {
		err := proof.ChangeBy(ctx, tx, userID, "factors.recovery_code_used", id, func() error {
			if err := s.use(ctx, tx, userID, useCode, id, hash, tx.Now()); err != nil {
				return err
			}
			return tx.Run(ctx, touchCodes, id, tx.Now())
		})
		if err != nil {
			return records.OrMissing(err, apierr.InvalidFactor)
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
