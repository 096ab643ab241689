package customers

import (
	"context"

	"kontor/modules/kit/find"
	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/store"
)

// source is the kind of documents that find customers.
const source = "customers"

const (
	selectTexts = `SELECT id, first_name, last_name, email, phone, city FROM customers WHERE id IN (%s) AND erased_at IS NULL`

	selectTextIDs = `SELECT id FROM customers WHERE id > $1 ORDER BY id LIMIT $2`
)

// TextSources returns what finds customers: names, e-mail address, telephone number, city and id.
func (s *Service) TextSources() []find.Source {
	return []find.Source{{Name: source, IDs: selectTextIDs, Read: readTexts}}
}

func readTexts(ctx context.Context, q store.Querier, ids []string) ([]store.TextDocument, error) {
	return find.Documents(ctx, q, selectTexts, ids, func(row records.Row) (store.TextDocument, error) {
		var first, last, email, city string
		var phone *string
		d := store.TextDocument{Source: source}
		err := row.Scan(&d.ID, &first, &last, &email, &phone, &city)
		d.Record, d.Title = d.ID, find.Words(first, last)
		d.Body = append(find.Words(email, city), types.IDWords(d.ID)...)
		d.Body = append(d.Body, types.PhoneWords(types.EmptyIfNil(phone))...)
		return d, err
	})
}

// FindText returns the customers that match a text best, of those that the caller may read.
func (s *Service) FindText(ctx context.Context, text list.Words, limit int) ([]find.Hit, error) {
	found, err := customerList.Find(ctx, s.db, text.Search(source), limit, table.Visible(access.From(ctx)))
	hits := make([]find.Hit, len(found))
	for i, one := range found {
		hits[i] = find.Hit{ID: one.ID, Title: one.Row.name(), Subtitle: one.Row.Email, Score: one.Score}
	}
	return hits, err
}

// FillKeys computes the sort keys of names, and the external ids, of customers that earlier versions have stored. It runs regularly.
func (s *Service) FillKeys(ctx context.Context) error {
	if err := s.fillExternalIDs(ctx); err != nil {
		return err
	}
	return records.FillSortKeys(ctx, s.db, records.SortKeys{From: "customers", Names: []string{"first_name", "last_name"}})
}
