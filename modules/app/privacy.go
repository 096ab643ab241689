package app

import (
	"slices"

	"kontor/modules/duty/privacy"
	"kontor/modules/kit/personal"
)

// personalModules returns the modules with tables. The directory erases last: notifications and auth need the credentials of a user,
// which it deletes.
func (m *Modules) personalModules() []personal.Module {
	isDirectory := func(module personal.Module) bool { return module == personal.Module(m.Users) }
	return append(slices.DeleteFunc(offering[personal.Module](m), isDirectory), m.Users)
}

// PersonalData returns what every table holds about persons.
func (m *Modules) PersonalData() []personal.Table {
	tables := ownTables()
	for _, module := range m.personalModules() {
		tables = append(tables, module.PersonalData()...)
	}
	return tables
}

func (m *Modules) newPrivacy(o Options) *privacy.Service {
	return privacy.New(m.DB, privacy.Options{
		RetentionYears: o.Settings.Privacy.RetentionYears, Customers: m.Customers, Users: m.Users, Personas: m.Personas,
		Owners: map[personal.Kind]personal.Module{personal.Customer: m.Customers, personal.User: m.Users, personal.Persona: m.Personas},
		Texts:  m.Texts, Log: o.Log,
	})
}

// ownTables lists the tables of the store and of package records.
func ownTables() []personal.Table {
	return []personal.Table{
		{Name: "storage_usage", Why: "It holds numbers of records and bytes by user id."},
		{Name: "meta", Why: "It holds signed counters and sealed secrets of the installation."},
		{Name: "audit_entries", Why: "It is append-only, and holds ids, shortened networks and keyed digests that reveal no content."},
		{Name: "audit_values", Holds: "sealed values of changed fields; the store deletes those of an erased record", Unexported: "They are former values of records that are exported, and the trail has readers of its own."},
		{Name: "idempotency_keys", Holds: "sealed answers of the last day; the store forgets those of and about an erased person", Unexported: "They are answers that the person has received, for a day."},
	}
}

// PersonalSections returns the sections of exports and reports that all modules declare.
func (m *Modules) PersonalSections() []personal.Section {
	var sections []personal.Section
	for _, module := range m.personalModules() {
		sections = append(sections, module.PersonalSections()...)
	}
	return sections
}
