package rbac

import (
	"context"

	"kontor/modules/kit/personal"
	"kontor/store"
)

// PersonalData lists the tables of the module.
func (s *Service) PersonalData() []personal.Table {
	return []personal.Table{
		{Name: "roles", Why: "Roles are named by administrators and describe no person."},
		{Name: "grants", Why: "It holds ids and permissions; those of an erased user have no effect."},
		{Name: "grant_records", Why: "It holds ids and permissions; those of an erased user have no effect."},
		{Name: "endpoint_grants", Why: "It holds ids and endpoints; those of an erased user have no effect."},
		{Name: "endpoints", Why: "It holds the endpoints of the program."},
		{Name: "record_types", Why: "It holds the record types of the program and of other applications."},
		{Name: "external_grants", Why: "It holds ids and permissions; those of an erased user have no effect."},
		{Name: "rate_limit_counts", Why: "It holds keyed hashes of callers of limited endpoints, for minutes."},
		{Name: "right_uses", Why: "It holds ids and hours; those of rights that were removed are deleted."},
		{Name: "access_reviews", Why: "It holds ids and names of roles, and proves who reviewed whose access."},
		{Name: "rate_limit_rules", Why: "It holds endpoints and numbers."},
	}
}

// PersonalSections returns none.
func (s *Service) PersonalSections() []personal.Section { return nil }

// ErasePerson erases nothing.
func (s *Service) ErasePerson(context.Context, *store.Tx, personal.Subject, string) (string, error) {
	return "", nil
}
