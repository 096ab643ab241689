package payers

import (
	"cmp"
	"context"

	"kontor/modules/kit/find"
	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/store"
)

// source is the kind of documents that find payers.
const source = "payers"

const (
	selectTexts = `SELECT id, name, company, email FROM payers WHERE id IN (%s) AND erased_at IS NULL`

	selectTextIDs = `SELECT id FROM payers WHERE id > $1 ORDER BY id LIMIT $2`
)

// TextSources returns what finds payers: name, company, e-mail address and id.
func (s *Service) TextSources() []find.Source {
	return []find.Source{{Name: source, IDs: selectTextIDs, Read: readTexts}}
}

func readTexts(ctx context.Context, q store.Querier, ids []string) ([]store.TextDocument, error) {
	return find.Documents(ctx, q, selectTexts, ids, func(row records.Row) (store.TextDocument, error) {
		var name, company, email *string
		d := store.TextDocument{Source: source}
		err := row.Scan(&d.ID, &name, &company, &email)
		d.Record, d.Title = d.ID, find.Words(types.EmptyIfNil(company), types.EmptyIfNil(name))
		d.Body = append(find.Words(types.EmptyIfNil(email)), types.IDWords(d.ID)...)
		return d, err
	})
}

// FindText returns the payers that match a text best, of those that the caller may read.
func (s *Service) FindText(ctx context.Context, text list.Words, limit int) ([]find.Hit, error) {
	found, err := payerList.Find(ctx, s.db, text.Search(source), limit, table.Visible(access.From(ctx)))
	hits := make([]find.Hit, len(found))
	for i, one := range found {
		company, name := types.EmptyIfNil(one.Row.Company), types.EmptyIfNil(one.Row.Name)
		hit := find.Hit{ID: one.ID, Title: cmp.Or(company, name), Parent: one.Row.CustomerID, Score: one.Score}
		if company != "" {
			hit.Subtitle = name
		}
		hit.Subtitle = cmp.Or(hit.Subtitle, types.EmptyIfNil(one.Row.Email))
		hits[i] = hit
	}
	return hits, err
}
