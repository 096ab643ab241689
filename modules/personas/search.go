package personas

import (
	"context"
	"strings"

	"kontor/modules/kit/find"
	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/store"
)

// source is the kind of documents that find personas.
const source = "personas"

const (
	selectTexts = `SELECT id, first_name, last_name FROM personas WHERE id IN (%s) AND erased_at IS NULL`

	selectTextIDs = `SELECT id FROM personas WHERE id > $1 ORDER BY id LIMIT $2`
)

// TextSources returns what finds personas: names and id.
func (s *Service) TextSources() []find.Source {
	return []find.Source{{Name: source, IDs: selectTextIDs, Read: readTexts}}
}

func readTexts(ctx context.Context, q store.Querier, ids []string) ([]store.TextDocument, error) {
	return find.Documents(ctx, q, selectTexts, ids, func(row records.Row) (store.TextDocument, error) {
		var first, last string
		d := store.TextDocument{Source: source}
		err := row.Scan(&d.ID, &first, &last)
		d.Record, d.Title, d.Body = d.ID, find.Words(first, last), types.IDWords(d.ID)
		return d, err
	})
}

// FindText returns the personas that match a text best, of those that the caller may read.
func (s *Service) FindText(ctx context.Context, text list.Words, limit int) ([]find.Hit, error) {
	found, err := personaList.Find(ctx, s.db, text.Search(source), limit, table.Visible(access.From(ctx)))
	hits := make([]find.Hit, len(found))
	for i, one := range found {
		hits[i] = find.Hit{ID: one.ID, Title: strings.TrimSpace(one.Row.FirstName + " " + one.Row.LastName), Subtitle: one.Row.DateOfBirth.String(), Score: one.Score}
	}
	return hits, err
}

// FillSortKeys computes the sort keys of names that earlier versions have stored. It runs regularly.
func (s *Service) FillSortKeys(ctx context.Context) error {
	return records.FillSortKeys(ctx, s.db, records.SortKeys{From: "personas", Names: []string{"first_name", "last_name"}})
}
