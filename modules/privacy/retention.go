package privacy

import (
	"context"
	"errors"

	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/modules/kit/validate"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// OneInput identifies a record.
type OneInput struct {
	ID string `path:"id"`
}

// RelationshipInput sets the end of a business relationship.
type RelationshipInput struct {
	ID      string                        `path:"id"`
	EndedAt endpoint.Optional[store.Time] `json:"ended_at" required:"true" doc:"When the relationship ended; null: it has not ended."`
}

// Validate requires the member.
func (in *RelationshipInput) Validate(v *apierr.Fields) {
	if !in.EndedAt.Given {
		v.Add("ended_at", "invalid.required")
	}
}

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

// today returns the day of the clock.
func (s *Service) today(q store.Querier) types.Date { return types.DateOf(q.Now().Std()) }

// retentionUntil returns the last day on which data must be kept after the end of a relationship.
func (s *Service) retentionUntil(ended store.Time) types.Date {
	return types.DateOf(ended.Std().AddDate(s.RetentionYears, 0, 0))
}

// relationship reads the relationship with a customer and what follows from it today.
func (s *Service) relationship(ctx context.Context, q store.Querier, customerID string) (Relationship, *LegalHold, error) {
	r := Relationship{CustomerID: customerID}
	err := q.QueryRow(ctx, selectRelationship, customerID).Scan(&r.EndedAt, &r.version)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return r, nil, err
	}
	verified, err := s.Customers.LastVerified(ctx, q, customerID)
	if err != nil {
		return r, nil, err
	}
	r.Customer = verified != nil
	if endsBefore(r.EndedAt, verified) {
		r.EndedAt = nil // the customer was verified again later
	}
	if r.EndedAt != nil {
		r.RetentionUntil = s.retentionUntil(*r.EndedAt)
	}
	hold, err := s.activeHold(ctx, q, customerID)
	if err != nil {
		return r, nil, err
	}
	r.OnHold = hold != nil
	r.Erasable = !r.OnHold && (!r.Customer || r.EndedAt != nil && r.RetentionUntil.Before(s.today(q)))
	return r, hold, nil
}

// endsBefore reports whether a relationship ended on an earlier day than that on which the customer was last verified. Then the
// end is wrong, or it is that of an earlier relationship: the retention period must not count from it.
func endsBefore(ended, verified *store.Time) bool {
	return ended != nil && verified != nil && types.DateOf(ended.Std()).Before(types.DateOf(verified.Std()))
}

// activeHold returns the hold that is in force on a customer, or nil.
func (s *Service) activeHold(ctx context.Context, q store.Querier, customerID string) (*LegalHold, error) {
	h, err := scanHold(q.QueryRow(ctx, selectHold, customerID))
	if errors.Is(err, store.ErrNotFound) || err == nil && !h.Until.IsZero() && h.Until.Before(s.today(q)) {
		return nil, nil //nolint:nilnil // no hold
	}
	return &h, err
}

// checkCustomer returns why the data of a customer must not be erased today, or nil.
func (s *Service) checkCustomer(ctx context.Context, q store.Querier, id string) error {
	r, hold, err := s.relationship(ctx, q, id)
	switch {
	case err != nil:
		return err
	case hold != nil && hold.Until.IsZero():
		return apierr.OnHold
	case hold != nil:
		return apierr.OnHold.Detail("until", hold.Until)
	case r.Erasable:
		return nil
	case r.EndedAt == nil:
		return apierr.RelationshipOpen
	}
	return apierr.Retained.With(apierr.Args{"Date": r.RetentionUntil.String()}).Detail("retention_until", r.RetentionUntil)
}

// GetRelationship returns the relationship with a customer. It returns apierr.CustomerNotFound and apierr.NoAccess.
func (s *Service) GetRelationship(ctx context.Context, in OneInput) (Relationship, error) {
	if err := s.Customers.Allow(ctx, s.db, in.ID, access.Read); err != nil {
		return Relationship{}, err
	}
	r, _, err := s.relationship(ctx, s.db, in.ID)
	return r, err
}

// SetRelationship records the end of the relationship with a customer, or that it has not ended. Only staff may, not the owner
// of the customer.
func (s *Service) SetRelationship(ctx context.Context, in RelationshipInput) (Relationship, error) {
	var r Relationship
	err := s.db.InTx(ctx, func(tx *store.Tx) (err error) {
		if err := s.Customers.Allow(ctx, tx, in.ID, access.Update); err != nil {
			return err
		}
		if !access.From(ctx).May(access.Customers, access.Update) {
			return apierr.NoAccess
		}
		before, _, err := s.relationship(ctx, tx, in.ID)
		if err != nil {
			return err
		}
		if err := endpoint.CheckMatch(ctx, before.ETag()); err != nil {
			return err
		}
		var ended *store.Time
		if !in.EndedAt.Null {
			if ended = &in.EndedAt.Value; *ended > tx.Now() {
				return apierr.Invalid("ended_at", "invalid.date_future")
			}
		}
		verified, err := s.Customers.LastVerified(ctx, tx, in.ID)
		if err != nil {
			return err
		}
		if endsBefore(ended, verified) {
			return apierr.Invalid("ended_at", "invalid.ended_before_verification")
		}
		was, err := readBefore(ctx, tx, relationshipProof, in.ID)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, upsertRelationship, in.ID, ended, tx.Now(), records.Actor(ctx)); err != nil {
			return err
		}
		if err := relationshipProof.Audit(ctx, tx, "privacy.relationship", in.ID, was); err != nil {
			return err
		}
		r, _, err = s.relationship(ctx, tx, in.ID)
		return err
	})
	return r, err
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
