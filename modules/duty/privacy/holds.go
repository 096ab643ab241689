package privacy

import (
	"context"
	"errors"
	"net/http"
	"time"

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
	h, err := scanHold(q.QueryRow(ctx, selectHold, customerID), s.today(q))
	if errors.Is(err, store.ErrNotFound) || err == nil && !h.Active {
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

// GetHold returns the legal hold of a customer, also one that has ended. Without a hold it returns one that is not active.
func (s *Service) GetHold(ctx context.Context, in endpoint.ByID) (LegalHold, error) {
	if err := s.Customers.Allow(ctx, s.db, in.ID, access.Read); err != nil {
		return LegalHold{}, err
	}
	h, err := scanHold(s.db.QueryRow(ctx, selectHold, in.ID), s.today(s.db))
	if errors.Is(err, store.ErrNotFound) {
		return LegalHold{CustomerID: in.ID, CreatedBy: store.NilID}, nil
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
		if err := holdProof.PutRow(ctx, tx, "privacy.hold", in.ID,
			upsertHold, in.ID, in.Reason, dateColumn(in.until), tx.Now(), records.Actor(ctx)); err != nil {
			return err
		}
		h, err = scanHold(tx.QueryRow(ctx, selectHold, in.ID), s.today(tx))
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

// findHeld finds a customer whose hold the caller may set or remove.
func (s *Service) findHeld(ctx context.Context, ids []string, _ any) error {
	return s.Customers.Allow(ctx, s.db, ids[0], access.Delete)
}

// RemoveHold removes the legal hold of a customer. It returns apierr.HoldNotFound.
func (s *Service) RemoveHold(ctx context.Context, in endpoint.ByID) (endpoint.Message, error) {
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		if err := s.Customers.Allow(ctx, tx, in.ID, access.Delete); err != nil && !errors.Is(err, apierr.RecordErased) {
			return err
		}
		return records.OrMissing(holdProof.ChangeRow(ctx, tx, "privacy.hold_removed", in.ID, deleteHold, in.ID), apierr.HoldNotFound)
	})
	return endpoint.Confirm(ctx, s.Texts, "privacy.hold_removed"), err
}

// RelationshipInput sets the end of a business relationship.
type RelationshipInput struct {
	ID      string                        `path:"id"`
	EndedAt endpoint.Optional[store.Time] `json:"ended_at" required:"true" doc:"When the relationship ended; null: it has not ended. An end more than 90 days ago waits until a second person sends the same."`
}

// provenEnd is how long ago a single person may state that a relationship ended: an earlier end shortens the retention period by much.
const provenEnd = 90 * 24 * time.Hour

// Validate requires the member.
func (in *RelationshipInput) Validate(v *apierr.Fields) {
	if !in.EndedAt.Given {
		v.Add("ended_at", "invalid.required")
	}
}

// today returns the day of the clock.
func (s *Service) today(q store.Querier) types.Date { return types.DateOf(q.Now().Std()) }

// retentionUntil returns the last day on which data must be kept after the end of a relationship.
func (s *Service) retentionUntil(ended store.Time) types.Date {
	return types.DateOf(ended.Std().AddDate(s.RetentionYears, 0, 0))
}

// relationship reads the relationship with a customer and what follows from it today. It is the one function that decides whether a
// customer may be erased.
func (s *Service) relationship(ctx context.Context, q store.Querier, customerID string) (Relationship, error) {
	persons, err := s.heldPersons(ctx, q)
	if err != nil {
		return Relationship{}, err
	}
	return s.relationshipBeside(ctx, q, customerID, persons)
}

// relationshipBeside is relationship, with the persons under a hold.
func (s *Service) relationshipBeside(ctx context.Context, q store.Querier, customerID string, persons held) (Relationship, error) {
	r := Relationship{CustomerID: customerID}
	p := ProposedEnd{}
	var proposed *store.Time
	err := q.QueryRow(ctx, selectRelationship, customerID).Scan(&r.EndedAt, &proposed, &p.ProposedAt, &p.ProposedBy, &r.version)
	if err := store.Optional(err); err != nil {
		return r, err
	}
	if proposed != nil {
		p.EndedAt = *proposed
		r.ProposedEnd = &p
	}
	verified, err := s.Customers.LastVerified(ctx, q, customerID)
	if err != nil {
		return r, err
	}
	r.Customer = verified != nil
	if endsBefore(r.EndedAt, verified) {
		r.EndedAt = nil // the customer was verified again later
	}
	if r.EndedAt != nil {
		r.RetentionUntil = s.retentionUntil(*r.EndedAt)
	}
	if r.heldBy, err = s.linkedHold(ctx, q, personal.Subject{Kind: personal.Customer, ID: customerID}, persons); err != nil {
		return r, err
	}
	r.OnHold = r.heldBy != ""
	r.Erasable = !r.OnHold && (!r.Customer || r.EndedAt != nil && r.RetentionUntil.Before(s.today(q)))
	return r, nil
}

// endsBefore reports whether a relationship ended on an earlier day than that on which the customer was last verified. Then the
// end is wrong, or it is that of an earlier relationship: the retention period must not count from it.
func endsBefore(ended, verified *store.Time) bool {
	return ended != nil && verified != nil && types.DateOf(ended.Std()).Before(types.DateOf(verified.Std()))
}

// checkCustomer returns why the data of a customer must not be erased today, or nil.
func (s *Service) checkCustomer(ctx context.Context, q store.Querier, id string) error {
	r, err := s.relationship(ctx, q, id)
	switch {
	case err != nil:
		return err
	case r.OnHold:
		return s.rejectHeld(ctx, q, personal.Subject{Kind: personal.Customer, ID: id}, r.heldBy)
	case r.Erasable:
		return nil
	case r.EndedAt == nil:
		return apierr.RelationshipOpen
	}
	return apierr.Retained.With(apierr.Args{"Date": r.RetentionUntil.String()}).Detail("retention_until", r.RetentionUntil)
}

// GetRelationship returns the relationship with a customer. It returns apierr.CustomerNotFound and apierr.NoAccess.
func (s *Service) GetRelationship(ctx context.Context, in endpoint.ByID) (Relationship, error) {
	if err := s.Customers.Allow(ctx, s.db, in.ID, access.Read); err != nil {
		return Relationship{}, err
	}
	return s.relationship(ctx, s.db, in.ID)
}

// SetRelationship records the end of the relationship with a customer, or that it has not ended. Only staff may, not the owner
// of the customer. An end far in the past is stored as a proposal, until a second person sends the same end: the retention period
// counts from it. SetRelationship returns apierr.SecondPersonRequired and apierr.SelfVerification for a confirmation by a person
// who does not count as another one.
func (s *Service) SetRelationship(ctx context.Context, in RelationshipInput) (endpoint.Result, error) {
	var r Relationship
	err := s.db.InTx(ctx, func(tx *store.Tx) (err error) {
		if err := s.allowReviewer(ctx, tx, in.ID); err != nil {
			return err
		}
		before, err := s.relationship(ctx, tx, in.ID)
		if err != nil {
			return err
		}
		if err := endpoint.CheckMatch(ctx, before.ETag()); err != nil {
			return err
		}
		end, err := s.newEnd(ctx, tx, in, before)
		if err != nil {
			return err
		}
		if err := relationshipProof.PutRow(ctx, tx, "privacy.relationship", in.ID,
			upsertRelationship, in.ID, end.at, tx.Now(), records.Actor(ctx), end.proposed, end.proposedAt, end.proposedBy); err != nil {
			return err
		}
		r, err = s.relationship(ctx, tx, in.ID)
		return err
	})
	if r.ProposedEnd != nil {
		return endpoint.Result{Status: http.StatusAccepted, Body: r}, err
	}
	return endpoint.Result{Body: r}, err
}

// newEnd is what a request changes: the end of a relationship, or a proposed one.
type newEnd struct {
	at         *store.Time
	proposed   *store.Time
	proposedAt *store.Time
	proposedBy string
}

func (s *Service) newEnd(ctx context.Context, tx *store.Tx, in RelationshipInput, before Relationship) (newEnd, error) {
	if in.EndedAt.Null {
		return newEnd{}, nil
	}
	now, ended := tx.Now(), in.EndedAt.Value
	if ended > now {
		return newEnd{}, apierr.Invalid("ended_at", "invalid.date_future")
	}
	verified, err := s.Customers.LastVerified(ctx, tx, in.ID)
	if err != nil {
		return newEnd{}, err
	}
	if endsBefore(&ended, verified) {
		return newEnd{}, apierr.Invalid("ended_at", "invalid.ended_before_verification")
	}
	// Without a verification no retention period counts from the end.
	if verified == nil || ended >= now.Add(-provenEnd) || before.EndedAt != nil && ended >= *before.EndedAt {
		return newEnd{at: &ended}, nil
	}
	if p := before.ProposedEnd; p != nil && p.EndedAt == ended && p.ProposedBy != records.Actor(ctx) {
		return newEnd{at: &ended}, s.Customers.CheckSecondPerson(ctx, tx, in.ID, p.ProposedBy)
	}
	return newEnd{at: before.EndedAt, proposed: &ended, proposedAt: &now, proposedBy: records.Actor(ctx)}, nil
}

// allowReviewer lets callers who may update all customers.
func (s *Service) allowReviewer(ctx context.Context, q store.Querier, id string) error {
	if err := s.Customers.Allow(ctx, q, id, access.Update); err != nil {
		return err
	}
	if !access.From(ctx).May(access.Customers, access.Update) {
		return apierr.NoAccess
	}
	return nil
}

func (s *Service) findReviewed(ctx context.Context, ids []string, _ any) error {
	return s.allowReviewer(ctx, s.db, ids[0])
}
