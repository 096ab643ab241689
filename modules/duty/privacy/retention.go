package privacy

import (
	"context"
	"errors"
	"net/http"
	"time"

	"kontor/modules/kit/personal"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
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
	if err != nil && !errors.Is(err, store.ErrNotFound) {
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
func (s *Service) GetRelationship(ctx context.Context, in OneInput) (Relationship, error) {
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
		if err := s.Customers.Allow(ctx, tx, in.ID, access.Update); err != nil {
			return err
		}
		if !access.From(ctx).May(access.Customers, access.Update) {
			return apierr.NoAccess
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
		was, err := readBefore(ctx, tx, relationshipProof, in.ID)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, upsertRelationship, in.ID, end.at, tx.Now(), records.Actor(ctx), end.proposed, end.proposedAt, end.proposedBy)
		if err != nil {
			return err
		}
		if err := relationshipProof.Audit(ctx, tx, "privacy.relationship", in.ID, was); err != nil {
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
