package records

import "kontor/modules/kit/personal"

// PersonalData lists the tables of this package and of the store.
func PersonalData() []personal.Table {
	return []personal.Table{
		{Name: "storage_usage", Why: "It holds numbers of records and bytes by user id."},
		{Name: "meta", Why: "It holds signed counters and sealed secrets of the installation."},
		{Name: "audit_entries", Why: "It is append-only, and holds ids, shortened networks and keyed digests that reveal no content."},
		{Name: "audit_values", Holds: "sealed values of changed fields; the store deletes those of an erased record"},
		{Name: "idempotency_keys", Holds: "sealed answers of the last day; the store forgets those of and about an erased person"},
	}
}
