package serviceaccounts

import (
	"context"

	"kontor/modules/kit/personal"
	"kontor/store"
)

// PersonalData lists the tables of the module.
func (s *Service) PersonalData() []personal.Table {
	return []personal.Table{
		{Name: "service_accounts", Why: "An account belongs to a program; its description is a note of administrators."},
		{Name: "service_tokens", Why: "Tokens belong to programs; names and networks are notes of administrators."},
	}
}

// PersonalSections returns none.
func (s *Service) PersonalSections() []personal.Section { return nil }

// ErasePerson erases nothing.
func (s *Service) ErasePerson(context.Context, *store.Tx, personal.Subject, string) (string, error) {
	return "", nil
}
