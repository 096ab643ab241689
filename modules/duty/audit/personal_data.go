package audit

import (
	"context"

	"kontor/modules/kit/personal"
	"kontor/store"
)

// PersonalData lists the tables of the module.
func (s *Service) PersonalData() []personal.Table {
	return []personal.Table{{Name: "audit_exports", Why: "It holds how far each export of the audit trail has come."}}
}

// PersonalSections returns none: the audit trail holds ids, shortened networks and keyed digests, and belongs to the store.
func (s *Service) PersonalSections() []personal.Section { return nil }

// ErasePerson erases nothing: the audit trail is append-only.
func (s *Service) ErasePerson(context.Context, *store.Tx, personal.Subject, string) (string, error) {
	return "", nil
}
