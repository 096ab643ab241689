// Package find declares how modules take part in the full-text search: which words find their records, and how a search reads
// records with the caller's rights. The module search keeps the index current and answers requests.
package find

import (
	"context"
	"strings"

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

// Documents reads documents with a statement that contains %s for the list of ids.
func Documents(ctx context.Context, q store.Querier, statement string, ids []string, scan func(row list.Row) (store.TextDocument, error)) ([]store.TextDocument, error) {
	text, args := listed(statement, ids)
	return store.All(ctx, q, scan, text, args...)
}

// Words returns the words of several texts.
func Words(texts ...string) (words []string) {
	for _, text := range texts {
		words = append(words, types.Words(text)...)
	}
	return words
}

// listed returns a statement for a list of ids, with its arguments.
func listed(statement string, ids []string) (string, []any) {
	return strings.Replace(statement, "%s", store.In(1, len(ids)), 1), store.AppendIn(nil, ids)
}
