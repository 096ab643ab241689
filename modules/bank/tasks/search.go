package tasks

import (
	"context"

	"kontor/modules/kit/find"
	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/store"
)

// source is the kind of documents that find tasks.
const source = "tasks"

const (
	selectTexts = `SELECT id, title, description FROM tasks WHERE id IN (%s) AND erased_at IS NULL`

	selectTextIDs = `SELECT id FROM tasks WHERE id > $1 ORDER BY id LIMIT $2`
)

// TextSources returns what finds tasks: title, description and id.
func (s *Service) TextSources() []find.Source {
	return []find.Source{{Name: source, IDs: selectTextIDs, Read: readTexts}}
}

func readTexts(ctx context.Context, q store.Querier, ids []string) ([]store.TextDocument, error) {
	return find.Documents(ctx, q, selectTexts, ids, func(row records.Row) (store.TextDocument, error) {
		var title, description string
		d := store.TextDocument{Source: source}
		err := row.Scan(&d.ID, &title, &description)
		d.Record, d.Title, d.Body = d.ID, find.Words(title), append(find.Words(description), types.IDWords(d.ID)...)
		return d, err
	})
}

// FindText returns the tasks that match a text best, of those that the caller may read.
func (s *Service) FindText(ctx context.Context, text list.Words, limit int) ([]find.Hit, error) {
	found, err := taskList.Find(ctx, s.db, text.Search(source), limit, table.Visible(access.From(ctx)))
	hits := make([]find.Hit, len(found))
	for i, one := range found {
		hits[i] = find.Hit{ID: one.ID, Title: one.Row.Title, Subtitle: string(one.Row.Status), Parent: one.Row.CustomerID, Score: one.Score}
	}
	return hits, err
}
