package fulltext

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kontor/store/engine"
	"kontor/store/query"
)

// Document is what a search finds of a record, or of a part of one, such as a message of a chat.
type Document struct {
	Source string   // the type of the audit entries about it
	ID     string   // of the record or part
	Record string   // the id of the record that is found
	Title  []string // the words of names and titles
	Body   []string // all other words
}

func placeholder(n int) string { return "$" + strconv.Itoa(n) }

// places returns n placeholders from a number on.
func places(first, n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = placeholder(first + i)
	}
	return strings.Join(all, ", ")
}

// stored returns words as they are stored, each once.
func stored(source string, words []string) string {
	if len(words) == 0 {
		return ""
	}
	seen := make(map[string]bool, len(words))
	var b strings.Builder
	for _, word := range words {
		if !seen[word] {
			seen[word] = true
			b.WriteString(" " + marks[source] + word)
		}
	}
	b.WriteByte(' ')
	return b.String()
}

// words returns the words of a stored text.
func words(source, text string) []string {
	found := strings.Fields(text)
	for i, word := range found {
		found[i] = strings.TrimPrefix(word, marks[source])
	}
	return found
}

const (
	selectNumbers = `SELECT number, source_id, rec_id, title, body FROM search_documents WHERE source = $1 AND source_id IN (`

	selectLastNumber = `SELECT COALESCE(MAX(number), 0) FROM search_documents`

	insertDocument = `INSERT INTO search_documents (number, source, source_id, rec_id, title, body) VALUES ($1, $2, $3, $4, $5, $6)`

	updateDocument = `UPDATE search_documents SET rec_id = $2, title = $3, body = $4 WHERE number = $1`

	deleteDocument = `DELETE FROM search_documents WHERE source = $1 AND source_id = $2`
)

// found is a stored document.
type found struct {
	number              int64
	record, title, body string
}

// Change is a difference between the stored documents of a source and those that they should be.
type Change struct {
	source          string
	removed         []string
	updated, added  []Document
	updatedAtNumber []int64
}

// Empty reports whether there is nothing to write.
func (c *Change) Empty() bool { return len(c.removed)+len(c.updated)+len(c.added) == 0 }

// Compare returns what must be written so that the documents with the ids are those given. Ids without a document are removed. ids
// are at most some hundreds, each once.
func Compare(ctx context.Context, q query.Querier, source string, ids []string, documents []Document) (Change, error) {
	c := Change{source: source}
	known, err := read(ctx, q, source, ids)
	if err != nil {
		return c, err
	}
	wanted := make(map[string]bool, len(documents))
	for _, d := range documents {
		wanted[d.ID] = true
		is, exists := known[d.ID]
		switch {
		case !exists:
			c.added = append(c.added, d)
		case is.record != d.Record || is.title != stored(source, d.Title) || is.body != stored(source, d.Body):
			c.updated, c.updatedAtNumber = append(c.updated, d), append(c.updatedAtNumber, is.number)
		}
	}
	for _, id := range ids {
		if _, exists := known[id]; exists && !wanted[id] {
			c.removed = append(c.removed, id)
		}
	}
	return c, nil
}

func read(ctx context.Context, q query.Querier, source string, ids []string) (map[string]found, error) {
	known := make(map[string]found, len(ids))
	for part := range slices.Chunk(ids, maxIDs) {
		if err := readPart(ctx, q, source, part, known); err != nil {
			return nil, fmt.Errorf("read what a search finds: %w", err)
		}
	}
	return known, nil
}

// maxIDs is the number of ids in one statement. Shorter lists repeat the last id, so that there is one text of the statement.
const maxIDs = 64

func readPart(ctx context.Context, q query.Querier, source string, ids []string, known map[string]found) error {
	args := []any{source}
	for i := range maxIDs {
		args = append(args, ids[min(i, len(ids)-1)])
	}
	rows, err := q.Query(ctx, selectNumbers+places(2, maxIDs)+")", args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		var f found
		if err := rows.Scan(&f.number, &id, &f.record, &f.title, &f.body); err != nil {
			return err
		}
		known[id] = f
	}
	return rows.Err()
}

// Write writes a change in a transaction that has verified that the documents are still those that were compared.
func (c *Change) Write(ctx context.Context, tx engine.Source) error {
	for _, id := range c.removed {
		if _, err := query.Exec(ctx, tx, deleteDocument, []any{c.source, id}); err != nil {
			return err
		}
	}
	for i, d := range c.updated {
		if _, err := query.Exec(ctx, tx, updateDocument, []any{c.updatedAtNumber[i], d.Record, stored(c.source, d.Title), stored(c.source, d.Body)}); err != nil {
			return err
		}
	}
	if len(c.added) == 0 {
		return nil
	}
	var last int64
	if err := query.NewRow(ctx, tx, selectLastNumber, nil).Scan(&last); err != nil {
		return err
	}
	for _, d := range c.added {
		last++
		if _, err := query.Exec(ctx, tx, insertDocument, []any{last, c.source, d.ID, d.Record, stored(c.source, d.Title), stored(c.source, d.Body)}); err != nil {
			return err
		}
	}
	return nil
}

// Remove removes a document at once, and makes changes that were compared before be compared again.
func Remove(ctx context.Context, tx engine.Source, source, id string) error {
	if _, err := query.Exec(ctx, tx, deleteDocument, []any{source, id}); err != nil {
		return err
	}
	_, err := query.Exec(ctx, tx, countRemoval, nil)
	return err
}

// Match is a matching document of a record.
type Match struct {
	Record, Source, ID string
	Title, Body        []string
}

const (
	selectMatches = `SELECT d.rec_id, d.source, d.source_id, d.title, d.body FROM search_documents d WHERE d.rec_id IN (`

	// maxMatches bounds the documents that are compared to rank records.
	maxMatches = 4000
)

// Matches returns the matching documents of records, in no order.
func (s Search) Matches(ctx context.Context, q query.Querier, records []string) ([]Match, error) {
	var all []Match
	for part := range slices.Chunk(records, maxIDs) {
		matches, err := s.matchesOf(ctx, q, part)
		if err != nil {
			return nil, fmt.Errorf("read what a search has found: %w", err)
		}
		if all = append(all, matches...); len(all) >= maxMatches {
			break
		}
	}
	return all, nil
}

func (s Search) matchesOf(ctx context.Context, q query.Querier, records []string) (matches []Match, err error) {
	args := make([]any, 0, maxIDs)
	for i := range maxIDs {
		args = append(args, records[min(i, len(records)-1)])
	}
	like := s.like(maxIDs)
	sql := selectMatches + places(1, maxIDs) + ") AND (" + like.SQL + ") LIMIT " + placeholder(maxIDs+len(like.Args)+1)
	rows, err := q.Query(ctx, sql, append(append(args, like.Args...), maxMatches)...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var m Match
		var title, body string
		if err := rows.Scan(&m.Record, &m.Source, &m.ID, &title, &body); err != nil {
			return nil, err
		}
		m.Title, m.Body = words(m.Source, title), words(m.Source, body)
		matches = append(matches, m)
	}
	return matches, rows.Err()
}
