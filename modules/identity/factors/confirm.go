package factors

import (
	"context"
	"errors"
	"strings"

	"kontor/modules/kit/factor"
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
	before, err := readFactor(ctx, tx, f.ID)
	if errors.Is(err, store.ErrNotFound) {
		return false, apierr.EnrolmentOver
	}
	if err != nil {
		return false, err
	}
	all, err := ofUser(ctx, tx, f.UserID)
	if err != nil {
		return false, err
	}
	first = true
	for _, other := range all {
		first = first && !isSecond(other)
	}
	changed, err := tx.Exec(ctx, p.statement, append([]any{f.ID, tx.Now().Add(signin.Trial)}, p.args...)...)
	switch {
	case errors.Is(err, store.ErrDuplicate):
		return false, apierr.PasskeyExists.Wrap(err)
	case err != nil:
		return false, err
	case changed == 0:
		return false, apierr.EnrolmentOver
	}
	return first, audit(ctx, tx, "factors.confirm", f.UserID, f.ID, before)
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
