package privacy

import (
	"context"
	"errors"

	"kontor/modules/kit/personal"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/modules/kit/validate"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// A legal hold is on a customer. It also prevents the erasure of all other customers, users and personas of the same person, see
// heldPersons.

// HoldInput describes a legal hold.
type HoldInput struct {
	ID     string `path:"id"`
	Reason string `json:"reason" maxLength:"500" doc:"Why the data must not be erased. It is erased with the hold."`
	Until  string `json:"until" format:"date" doc:"The last day; without it, until the hold is removed."`

	until types.Date
}

const maxReason = 500

// Validate checks reason and date.
func (in *HoldInput) Validate(v *apierr.Fields) {
	in.Reason = validate.RequiredText(v, "reason", in.Reason, maxReason)
	in.until = validate.Parsed(v, "until", in.Until, types.ParseDate)
}

// activeHold returns the hold that is in force on a customer, or nil.
func (s *Service) activeHold(ctx context.Context, q store.Querier, customerID string) (*LegalHold, error) {
	h, err := scanHold(q.QueryRow(ctx, selectHold, customerID))
	if errors.Is(err, store.ErrNotFound) || err == nil && !h.Until.IsZero() && h.Until.Before(s.today(q)) {
		return nil, nil //nolint:nilnil // no hold
	}
	return &h, err
}

// checkHolds returns apierr.OnHold if the person of one of the records has a customer under a hold.
func (s *Service) checkHolds(ctx context.Context, q store.Querier, subjects []personal.Subject) error {
	persons, err := s.heldPersons(ctx, q)
	if err != nil {
		return err
	}
	for _, one := range subjects {
		customer, err := s.linkedHold(ctx, q, one, persons)
		if err != nil {
			return err
		}
		if customer != "" {
			return s.rejectHeld(ctx, q, one, customer)
		}
	}
	return nil
}

// rejectHeld returns the error for a record of a person with a customer under a hold. It names the customer to callers who may read it.
func (s *Service) rejectHeld(ctx context.Context, q store.Querier, of personal.Subject, customer string) error {
	hold, err := s.activeHold(ctx, q, customer)
	if err != nil || hold == nil {
		return err
	}
	if of.ID == customer {
		return onHold(hold)
	}
	switch err := s.Customers.Allow(ctx, q, customer, access.Read); {
	case err == nil:
		return onHold(hold).Detail("customer", customer)
	case errors.Is(err, apierr.NoAccess):
		return apierr.OnHold
	default:
		return err
	}
}

func onHold(hold *LegalHold) *apierr.Error {
	if hold.Until.IsZero() {
		return apierr.OnHold.With(nil)
	}
	return apierr.OnHold.Detail("until", hold.Until)
}

// GetHold returns the legal hold of a customer, also one that has ended. It returns apierr.HoldNotFound.
func (s *Service) GetHold(ctx context.Context, in OneInput) (LegalHold, error) {
	if err := s.Customers.Allow(ctx, s.db, in.ID, access.Read); err != nil {
		return LegalHold{}, err
	}
	h, err := scanHold(s.db.QueryRow(ctx, selectHold, in.ID))
	if errors.Is(err, store.ErrNotFound) {
		err = apierr.HoldNotFound
	}
	return h, err
}

// SetHold places a customer under a legal hold, or changes the hold.
func (s *Service) SetHold(ctx context.Context, in HoldInput) (LegalHold, error) {
	var h LegalHold
	err := s.db.InTx(ctx, func(tx *store.Tx) (err error) {
		if err := s.Customers.Allow(ctx, tx, in.ID, access.Delete); err != nil {
			return err
		}
		was, err := readBefore(ctx, tx, holdProof, in.ID)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, upsertHold, in.ID, in.Reason, dateColumn(in.until), tx.Now(), records.Actor(ctx)); err != nil {
			return err
		}
		if err := holdProof.Audit(ctx, tx, "privacy.hold", in.ID, was); err != nil {
			return err
		}
		h, err = scanHold(tx.QueryRow(ctx, selectHold, in.ID))
		return err
	})
	return h, err
}

// dateColumn returns a date as text, or NULL for the zero date.
func dateColumn(d types.Date) *string {
	if d.IsZero() {
		return nil
	}
	text := d.String()
	return &text
}

// RemoveHold removes the legal hold of a customer. It returns apierr.HoldNotFound.
func (s *Service) RemoveHold(ctx context.Context, in OneInput) (endpoint.Message, error) {
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		if err := s.Customers.Allow(ctx, tx, in.ID, access.Delete); err != nil && !errors.Is(err, apierr.RecordErased) {
			return err
		}
		was, err := holdProof.Read(ctx, tx, in.ID)
		if errors.Is(err, store.ErrNotFound) {
			return apierr.HoldNotFound
		}
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, deleteHold, in.ID); err != nil {
			return err
		}
		return holdProof.Audit(ctx, tx, "privacy.hold_removed", in.ID, was)
	})
	return endpoint.Confirm(ctx, s.Texts, "privacy.hold_removed"), err
}
