// Package find declares how modules take part in the full-text search: which words find their records, and how a search reads
// records with the caller's rights. The module search keeps the index current and answers requests.
package find

import (
	"context"

	"kontor/modules/kit/list"
	"kontor/modules/kit/types"
	"kontor/store"
)

// Source is a kind of documents, one for each record or part of a record.
type Source struct {
	// Name is the type of the audit entries about the records or parts.
	Name string
	// Read returns the documents of ids, at most [Batch]. Ids without a record, and records that nothing finds, have none.
	Read func(ctx context.Context, q store.Querier, ids []string) ([]store.TextDocument, error)
	// IDs is a statement that selects the ids after $1, at most $2, in their order.
	IDs string
}

// Batch is the number of ids that are read at once.
const Batch = 100

// Hit is a record that a search has found.
type Hit struct {
	ID       string
	Title    string // the name that the record is known by; empty: it has none
	Subtitle string // what tells it from others of the same name; may be empty
	Parent   string // the customer of a task or payer
	Message  string // of a chat: the id of the message that was found, with its text
	Line     string
	Score    int // larger is better
}

// Module is a module whose records a search finds.
type Module interface {
	// TextSources returns the kinds of documents of the module.
	TextSources() []Source
	// FindText returns the records that match best, at most limit, of those that the caller of the context may read.
	FindText(ctx context.Context, text list.Words, limit int) ([]Hit, error)
}

// Table returns the source of a table, with the columns that scan reads. condition selects the rows that can be found; empty: all.
func Table(name, columns, condition string, scan func(row list.Row, d *store.TextDocument) error) Source {
	if condition != "" {
		condition = " AND " + condition
	}
	return Source{
		Name: name,
		IDs:  "SELECT id FROM " + name + " WHERE id > $1 ORDER BY id LIMIT $2",
		Read: func(ctx context.Context, q store.Querier, ids []string) ([]store.TextDocument, error) {
			return store.All(ctx, q, func(row list.Row) (store.TextDocument, error) {
				d := store.TextDocument{Source: name}
				err := scan(row, &d)
				return d, err
			}, "SELECT "+columns+" FROM "+name+" WHERE id IN ("+store.In(1, len(ids))+")"+condition, store.AppendIn(nil, ids)...)
		},
	}
}

// Hits returns what a list has found, as show shows it.
func Hits[T any](found []list.Found[T], show func(row T) Hit) []Hit {
	hits := make([]Hit, len(found))
	for i, one := range found {
		hits[i] = show(one.Row)
		hits[i].ID, hits[i].Score = one.ID, one.Score
	}
	return hits
}

// Words returns the words of several texts.
func Words(texts ...string) (words []string) {
	for _, text := range texts {
		words = append(words, types.Words(text)...)
	}
	return words
}
