// Package fulltext keeps the words of records, and builds the statements that search them. The engine indexes the words.
//
// Modules fold the words first: letters and digits only. Each is stored with a mark of its source in
// front, so that a search reads the words of the wanted sources and no others. The package depends on neither the content of a record nor
// its readers: conditions select ids of records, and become part of the statements that check the access.
//
// The package owns the tables search_documents and search_progress.
package fulltext

import (
	"strconv"
	"strings"

	"kontor/store/engine"
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
func (c Condition) From(base int) Condition {
	var b strings.Builder
	rest := c.SQL
	for {
		before, after, found := strings.Cut(rest, "$")
		b.WriteString(before)
		if !found {
			return Condition{b.String(), c.Args}
		}
		digits := len(after) - len(strings.TrimLeft(after, "0123456789"))
		number, _ := strconv.Atoi(after[:digits]) // digits alone
		b.WriteString(placeholder(base + number))
		rest = after[digits:]
	}
}
