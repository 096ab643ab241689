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
		{Name: "legal_holds", Holds: "the reason of a legal hold on a customer, deleted at the latest with the customer"},
		{Name: "relationships", Holds: "when the relationship with a customer ended; the time stays as evidence"},
	}
}

// ExportPerson writes the relationship with a customer. It does not write a legal hold: the law may forbid to mention it.
func (s *Service) ExportPerson(ctx context.Context, q store.Querier, subject personal.Subject, w *personal.Writer) error {
	if subject.Kind != personal.Customer {
		return nil
	}
	r, _, err := s.relationship(ctx, q, subject.ID)
	if err != nil {
		return err
	}
	return w.Add("relationship", struct {
		EndedAt        *store.Time `json:"ended_at"`
		RetentionUntil types.Date  `json:"retention_until"`
	}{r.EndedAt, r.RetentionUntil})
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
