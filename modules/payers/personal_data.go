package payers

import (
	"context"

	"kontor/modules/kit/personal"
	"kontor/server/access"
	"kontor/store"
)

// PersonalData lists the tables of the module.
func (s *Service) PersonalData() []personal.Table {
	return []personal.Table{{Name: "payers", Holds: "names, companies, addresses and metadata of those who pay for a customer", Sections: []string{"payers"}}}
}

const (
	selectUnerased = `
		SELECT id FROM payers
		WHERE customer_id = $1 AND id > $2 AND erased_at IS NULL ORDER BY id LIMIT $3`

	eraseStatement = `
		UPDATE payers SET
			email = NULL, name = '', company = NULL, company_key = '', country = NULL, active = FALSE, metadata = '{}',
			modified_at = $2, modified_by = $3, version = version + 1, erased_at = $2
		WHERE id = $1`
)

// PersonalSections declares the payers of a customer.
func (s *Service) PersonalSections() []personal.Section {
	return []personal.Section{
		personal.Records(personal.About{Name: "payers", Kind: personal.Customer, Endpoint: "GET /v1/payers/{id}"},
			personal.Of[Payer]{Table: table, All: access.Read, Condition: "payers.customer_id = $2"}),
	}
}

// ErasePerson erases the payers of a customer.
func (s *Service) ErasePerson(ctx context.Context, tx *store.Tx, subject personal.Subject, cursor string) (string, error) {
	if subject.Kind != personal.Customer {
		return "", nil
	}
	return personal.Run(ctx, tx, cursor, personal.EachID(selectUnerased, subject.ID, func(ctx context.Context, tx *store.Tx, id string) error {
		before, err := table.GetUnchecked(ctx, tx, id)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, eraseStatement, id, tx.Now(), personal.Actor(ctx)); err != nil {
			return err
		}
		after, err := table.GetUnchecked(ctx, tx, id)
		if err != nil {
			return err
		}
		table.Audit(ctx, tx, personal.Action, id, before, after)
		return s.quota.Count(ctx, tx, before.CreatedBy, 0, after.weight()-before.weight())
	}))
}
