package postgres

import (
	"strings"

	"kontor/store/engine"
)

// wordsIndex is the full-text index of engine.TextIndex: an inverted index over the words of a row. The server keeps it current.
const wordsIndex = "kontor_words"

// wordsOf returns the expression of the words of a row. The texts are words already, so that no text search configuration is used.
func wordsOf(x *engine.TextIndex) string {
	return "array_to_tsvector(string_to_array(btrim(replace(" + strings.Join(x.Columns, " || ") + ", '  ', ' ')), ' '))"
}

// restoreWords creates a missing full-text index.
func restoreWords(m maintenance, x *engine.TextIndex) error {
	if x == nil {
		return nil
	}
	return m.conn.script("CREATE INDEX IF NOT EXISTS " + wordsIndex + " ON " + x.Table + " USING gin (" + wordsOf(x) + ")")
}

// Texts returns how statements search the full-text index.
func (e *Engine) Texts() engine.TextSearch {
	x := e.config.Texts
	if x == nil {
		return engine.TextSearch{}
	}
	matching := "SELECT " + x.Number + " FROM " + x.Table + " WHERE " + wordsOf(x) + " @@ CAST($1 AS tsquery)"
	return engine.TextSearch{Matching: matching, Some: matching + " LIMIT $2", Expression: matchExpression}
}

// matchExpression returns a query in the language of tsquery. Words are quoted, so that none is an operator.
func matchExpression(q engine.TextQuery) string {
	var b strings.Builder
	for i, alternative := range q {
		if i > 0 {
			b.WriteString(" | ")
		}
		b.WriteByte('(')
		for j, word := range alternative.Words {
			if j > 0 {
				b.WriteString(" & ")
			}
			b.WriteString("'" + strings.NewReplacer("'", "''", `\`, `\\`).Replace(word) + "'")
		}
		if alternative.Prefix {
			b.WriteString(":*")
		}
		b.WriteByte(')')
	}
	return b.String()
}
