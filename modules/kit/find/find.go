// Package find declares how modules take part in the full-text search: which words find their records, and how a search reads
// records with the caller's rights. The module search keeps the index current and answers requests.
package find

import (
	"context"

	"kontor/modules/kit/list"
	"kontor/modules/kit/types"
	"kontor/store"
)

// Source is a kind of documents, one for each row of a table: a record or a part of one.
type Source struct {
	From    string // the table, and the type of the audit entries about its rows
	Columns string // what Scan reads
	Where   string // selects the rows that can be found; empty: all
	Scan    func(row list.Row, d *store.TextDocument) error
}

// IDs returns a statement that selects the ids after $1, at most $2, in their order.
func (s Source) IDs() string {
	return "SELECT id FROM " + s.From + " WHERE id > $1 ORDER BY id LIMIT $2"
}

// Read returns the documents of ids, at most [Batch]. Ids without a row that can be found have none.
func (s Source) Read(ctx context.Context, q store.Querier, ids []string) ([]store.TextDocument, error) {
	statement := "SELECT " + s.Columns + " FROM " + s.From + " WHERE id IN (" + store.In(1, len(ids)) + ")"
	if s.Where != "" {
		statement += " AND " + s.Where
	}
	return store.All(ctx, q, func(row list.Row) (store.TextDocument, error) {
		d := store.TextDocument{Source: s.From}
		err := s.Scan(row, &d)
		return d, err
	}, statement, store.AppendIn(nil, ids)...)
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
