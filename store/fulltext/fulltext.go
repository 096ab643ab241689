// Package fulltext keeps the words of records, and builds the statements that search them. The engine indexes the words.
//
// Modules fold the words first: letters and digits only. Each is stored with a mark of its source in
// front, so that a search reads the words of the wanted sources and no others. The package depends on neither the content of a record nor
// its readers: conditions select ids of records, and become part of the statements that check the access.
//
// The package owns the tables search_documents and search_progress.
package fulltext

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kontor/store/engine"
	"kontor/store/query"
)

// Index returns the description of the index for engines.
func Index() *engine.TextIndex {
	return &engine.TextIndex{Table: "search_documents", Number: "number", Columns: []string{"title", "body"}, Progress: "search_progress"}
}

// marks are the first characters of the words of each source. A source is the type of audit entries about a record or a part of
// one. A mark must not be used for another source.
var marks = map[string]string{
	"customers": "c", "personas": "p", "payers": "y", "users": "u", "credentials": "k", "tasks": "t", "chats": "h", "chat_messages": "m",
}

// Known reports whether a type of audit entries has documents.
func Known(source string) bool { return marks[source] != "" }

// Words are words that must occur in one document, in any order; with Prefix, the last may be the beginning of a word.
type Words = engine.TextWords

// Search selects the documents of some sources in which one of the alternatives occurs.
type Search struct {
	Sources []string
	Any     []Words
}

// Empty reports whether no document matches.
func (s Search) Empty() bool { return len(s.Sources) == 0 || len(s.Any) == 0 }

// query returns the alternatives with the marks of all sources.
func (s Search) query() engine.TextQuery {
	q := make(engine.TextQuery, 0, len(s.Sources)*len(s.Any))
	for _, source := range s.Sources {
		for _, alternative := range s.Any {
			marked := Words{Words: make([]string, len(alternative.Words)), Prefix: alternative.Prefix}
			for i, word := range alternative.Words {
				marked.Words[i] = marks[source] + word
			}
			q = append(q, marked)
		}
	}
	return q
}

// Condition is a part of a statement with its arguments, whose placeholders begin at $1.
type Condition struct {
	SQL  string
	Args []any
}

// Tables are the tables of conditions.
var Tables = []string{"search_documents"}

// Rows are the tables of the condition of [Search.Each], with the column of the record that a row decides about.
var Rows = []string{"search_documents.rec_id"}

// Matching returns the condition that a column holds the id of a matching record. The engine collects all matches first.
func (s Search) Matching(t engine.TextSearch, id string) Condition {
	return Condition{id + " IN (SELECT d.rec_id FROM search_documents d WHERE d.number IN (" + t.Matching + "))", []any{t.Expression(s.query())}}
}

// Each returns the same condition in a form that is checked row by row, for statements that look at few rows.
func (s Search) Each(id string) Condition {
	like := s.like(0)
	return Condition{"EXISTS (SELECT 1 FROM search_documents d WHERE d.rec_id = " + id + " AND (" + like.SQL + "))", like.Args}
}

// like returns the condition on the texts of a document. base is the number of arguments before those of the condition.
func (s Search) like(base int) Condition {
	var c Condition
	var b strings.Builder
	for i, alternative := range s.query() {
		if i > 0 {
			b.WriteString(" OR ")
		}
		b.WriteByte('(')
		for j, word := range alternative.Words {
			if j > 0 {
				b.WriteString(" AND ")
			}
			pattern := "% " + word + " %"
			if alternative.Prefix && j == len(alternative.Words)-1 {
				pattern = "% " + word + "%"
			}
			c.Args = append(c.Args, pattern)
			place := placeholder(base + len(c.Args))
			b.WriteString("(d.title LIKE " + place + " OR d.body LIKE " + place + ")")
		}
		b.WriteByte(')')
	}
	c.SQL = b.String()
	return c
}

// Some returns a statement that counts the matching documents up to a limit.
func (s Search) Some(t engine.TextSearch, limit int) Condition {
	return Condition{"SELECT COUNT(*) FROM (" + t.Some + ") AS found", []any{t.Expression(s.query()), limit}}
}

// From returns the condition with placeholders after those of a statement with a number of arguments.
func (c Condition) From(base int) Condition { return Condition{query.Renumbered(c.SQL, base), c.Args} }

// Document is what a search finds of a record, or of a part of one, such as a message of a chat.
type Document struct {
	Source string   // the type of the audit entries about it
	ID     string   // of the record or part
	Record string   // the id of the record that is found
	Title  []string // the words of names and titles
	Body   []string // all other words
}

func placeholder(n int) string { return "$" + strconv.Itoa(n) }

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
	return query.Each(ctx, q, func(row query.Scanner) error {
		var id string
		var f found
		err := row.Scan(&f.number, &id, &f.record, &f.title, &f.body)
		known[id] = f
		return err
	}, selectNumbers+query.Places(2, maxIDs+1)+")", args...)
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

func (s Search) matchesOf(ctx context.Context, q query.Querier, records []string) ([]Match, error) {
	args := make([]any, 0, maxIDs)
	for i := range maxIDs {
		args = append(args, records[min(i, len(records)-1)])
	}
	like := s.like(maxIDs)
	sql := selectMatches + query.Places(1, maxIDs) + ") AND (" + like.SQL + ") LIMIT " + placeholder(maxIDs+len(like.Args)+1)
	return query.All(ctx, q, func(row query.Scanner) (m Match, err error) {
		var title, body string
		err = row.Scan(&m.Record, &m.Source, &m.ID, &title, &body)
		m.Title, m.Body = words(m.Source, title), words(m.Source, body)
		return m, err
	}, sql, append(append(args, like.Args...), maxMatches)...)
}

// trail is the name of the progress along the audit trail.
const trail = ""

// Progress is how far the documents have come. Name is a source that is being read for the first time, or empty for the audit
// trail.
type Progress struct {
	Name     string
	Position string // the last id that was read
	Seq      int64  // the last audit entry that was read
	Removals int64  // of the trail: how often documents were removed at once
	Done     bool
}

const (
	selectProgress = `SELECT name, position, seq, removals, done FROM search_progress ORDER BY name`

	selectRemovals = `SELECT seq, removals FROM search_progress WHERE name = ''`

	selectPosition = `SELECT position, done FROM search_progress WHERE name = $1`

	upsertProgress = `
		INSERT INTO search_progress (name, position, seq, removals, done) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (name) DO UPDATE SET position = excluded.position, seq = excluded.seq, removals = excluded.removals, done = excluded.done`

	countRemoval = `UPDATE search_progress SET removals = removals + 1 WHERE name = ''`
)

// ReadProgress returns the progress along the trail and of all sources. known is false for documents that were never begun.
func ReadProgress(ctx context.Context, q query.Querier) (alongTrail Progress, sources map[string]Progress, known bool, err error) {
	sources = map[string]Progress{}
	err = query.Each(ctx, q, func(row query.Scanner) error {
		var p Progress
		err := row.Scan(&p.Name, &p.Position, &p.Seq, &p.Removals, &p.Done)
		if p.Name == trail {
			alongTrail, known = p, true
		} else {
			sources[p.Name] = p
		}
		return err
	}, selectProgress)
	return alongTrail, sources, known, err
}

// Begin records that the documents follow the trail after an entry. It does nothing if another process has begun. Sources are read
// from their beginning.
func Begin(ctx context.Context, tx engine.Source, seq int64) error {
	var at, removals int64
	err := query.NewRow(ctx, tx, selectRemovals, nil).Scan(&at, &removals)
	if !errors.Is(err, engine.ErrNotFound) {
		return err
	}
	return Progress{Name: trail, Seq: seq, Done: true}.write(ctx, tx)
}

func (p Progress) write(ctx context.Context, tx engine.Source) error {
	_, err := query.Exec(ctx, tx, upsertProgress, []any{p.Name, p.Position, p.Seq, p.Removals, p.Done})
	return err
}

// Advance writes changes with the progress after them, if the progress before them is still that of the database. moved is false
// if it is not: another process was faster, or documents were removed. The changes must be compared again then.
func Advance(ctx context.Context, tx engine.Source, alongTrail, before, after Progress, changes []Change) (moved bool, err error) {
	var seq, removals int64
	if err := query.NewRow(ctx, tx, selectRemovals, nil).Scan(&seq, &removals); err != nil {
		return false, err
	}
	if seq != alongTrail.Seq || removals != alongTrail.Removals {
		return false, nil
	}
	if before.Name != trail {
		var position string
		var done bool
		err := query.NewRow(ctx, tx, selectPosition, []any{before.Name}).Scan(&position, &done)
		if err != nil && !errors.Is(err, engine.ErrNotFound) { // a source that was never begun has no row
			return false, err
		}
		if position != before.Position || done {
			return false, nil
		}
	}
	for i := range changes {
		if err := changes[i].Write(ctx, tx); err != nil {
			return false, err
		}
	}
	return true, after.write(ctx, tx)
}
