package webhooks

import (
	"context"

	"kontor/modules/kit/personal"
	"kontor/store"
)

// PersonalData lists the tables of the module.
func (s *Service) PersonalData() []personal.Table {
	return []personal.Table{
		{Name: "webhooks", Why: "Webhooks belong to programs; addresses and descriptions are notes of administrators."},
		{Name: "webhook_progress", Why: "It holds how far the delivery of events has come."},
		{Name: "webhook_deliveries", Why: "Events hold ids of records and none of their data. They are deleted after webhooks.keep_days."},
	}
}

// PersonalSections returns none.
func (s *Service) PersonalSections() []personal.Section { return nil }

// ErasePerson erases nothing. A webhook of an erased user sends nothing: the account is not active.
func (s *Service) ErasePerson(context.Context, *store.Tx, personal.Subject, string) (string, error) {
	return "", nil
}
