package invoices

import (
	"context"

	"kontor/modules/kit/personal"
	"kontor/server/endpoint"
	"kontor/store"
)

// PersonalData lists the tables of the module.
func (s *Service) PersonalData() []personal.Table {
	return []personal.Table{{Name: billsTable, Holds: "QR-bills that a user has kept: creditors, debtors, amounts and references, sealed", Sections: []string{"bills"}}}
}

const (
	selectBillsAfter = `
		SELECT ` + billColumns + ` FROM bills
		WHERE user_id = $1 AND id > $2 ORDER BY id LIMIT $3`

	selectBillIDs = `SELECT id FROM bills WHERE user_id = $1 AND id > $2 ORDER BY id LIMIT $3`

	eraseBill = `DELETE FROM bills WHERE id = $1`
)

// PersonalSections declares the bills that a user has kept.
func (s *Service) PersonalSections() []personal.Section {
	return []personal.Section{
		personal.Own(personal.About{Name: "bills", Kind: personal.User, Endpoint: "GET /v1/invoices/bills"},
			personal.Query(selectBillsAfter, func(row store.Scanner) (Bill, string, error) {
				b, err := scanBill(row)
				return b, b.ID, err
			}),
			func(ctx context.Context, _ store.Querier, b Bill) (any, error) {
				err := s.open(endpoint.Language(ctx), &b)
				return b, err
			}),
	}
}

// ErasePerson deletes the bills that a user has kept.
func (s *Service) ErasePerson(ctx context.Context, tx *store.Tx, subject personal.Subject, cursor string) (string, error) {
	if subject.Kind != personal.User {
		return "", nil
	}
	return personal.Run(ctx, tx, cursor, personal.Delete(selectBillIDs, eraseBill, subject.ID))
}
