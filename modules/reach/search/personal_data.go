package search

import (
	"context"

	"kontor/modules/kit/personal"
	"kontor/store"
)

// PersonalData lists the tables of the full-text index.
func (s *Service) PersonalData() []personal.Table {
	return []personal.Table{
		{Name: "search_documents", Why: "It holds words of records, which leave it in the transaction that erases or deletes a record."},
		{Name: "search_progress", Why: "It holds numbers of audit entries and ids."},
	}
}

// PersonalSections returns none: the records have the words.
func (s *Service) PersonalSections() []personal.Section { return nil }

// ErasePerson does nothing: the store removes the words of a record with the audit entry of its erasure.
func (s *Service) ErasePerson(context.Context, *store.Tx, personal.Subject, string) (string, error) {
	return "", nil
}
