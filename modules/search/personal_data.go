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

// ExportPerson writes nothing: the records have the words.
func (s *Service) ExportPerson(context.Context, store.Querier, personal.Subject, *personal.Writer) error {
	return nil
}

// ErasePerson does nothing: the store removes the words of a record with the audit entry of its erasure.
func (s *Service) ErasePerson(context.Context, *store.Tx, personal.Subject, string) (string, error) {
	return "", nil
}
