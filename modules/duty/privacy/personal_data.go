package privacy

import (
	"context"
	"errors"

	"kontor/modules/kit/personal"
	"kontor/modules/kit/types"
	"kontor/store"
)

// PersonalData lists the tables of the module.
func (s *Service) PersonalData() []personal.Table {
	return []personal.Table{
		{Name: "erasures", Why: "It holds ids and times, and is the evidence that data were erased."},
		{Name: "legal_holds", Holds: "the reason of a legal hold on a customer, deleted at the latest with the customer", Sections: []string{"legal_hold"}},
		{Name: "relationships", Holds: "when the relationship with a customer ended; the time stays as evidence", Sections: []string{"relationship"}},
	}
}

// exportedRelationship is the relationship with a customer in an export. It does not say whether there is a legal hold: the law may
// forbid to mention it.
type exportedRelationship struct {
	EndedAt        *store.Time `json:"ended_at"`
	RetentionUntil types.Date  `json:"retention_until"`
}

func (r Relationship) exported() []exportedRelationship {
	return []exportedRelationship{{r.EndedAt, r.RetentionUntil}}
}

// PersonalSections declares the relationship with a customer and, for reports, a legal hold.
func (s *Service) PersonalSections() []personal.Section {
	return []personal.Section{
		personal.Answer(personal.About{Name: "relationship", Kind: personal.Customer, Endpoint: "GET /v1/customers/{id}/relationship"},
			func(ctx context.Context, of personal.Subject) ([]exportedRelationship, error) {
				r, err := s.GetRelationship(ctx, OneInput{ID: of.ID})
				return r.exported(), err
			},
			personal.Slice(func(ctx context.Context, q store.Querier, of personal.Subject) ([]exportedRelationship, error) {
				r, err := s.relationship(ctx, q, of.ID)
				return r.exported(), err
			}), nil),
		personal.Reported(personal.About{Name: "legal_hold", Kind: personal.Customer, Rule: personal.InReports},
			personal.Slice(func(ctx context.Context, q store.Querier, of personal.Subject) ([]LegalHold, error) {
				hold, err := s.activeHold(ctx, q, of.ID)
				if hold == nil {
					return nil, err
				}
				return []LegalHold{*hold}, err
			})),
	}
}

// ErasePerson deletes a legal hold that has ended.
func (s *Service) ErasePerson(ctx context.Context, tx *store.Tx, subject personal.Subject, _ string) (string, error) {
	if subject.Kind != personal.Customer {
		return "", nil
	}
	was, err := holdProof.Read(ctx, tx, subject.ID)
	if errors.Is(err, store.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if _, err := tx.Exec(ctx, deleteHold, subject.ID); err != nil {
		return "", err
	}
	return "", holdProof.Audit(ctx, tx, personal.Action, subject.ID, was)
}
