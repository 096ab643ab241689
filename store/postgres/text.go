package postgres

import (
	"strings"
	"sync"
	"sync/atomic"

	"kontor/store/engine"
)

// text describes the text of a statement. There is one for all connections.
type text struct {
	sql     string
	args    int      // the highest n of its parameters $n
	written []string // the tables that it writes to
	// inserts is how many rows the statement inserts or updates whenever it succeeds. It is 0 for a statement that
	// returns rows, and where the number depends on the content of tables.
	inserts int64

	accepted atomic.Bool  // the server has prepared the statement once
	mode     atomic.Int32 // how the types of its parameters are declared
}

// texts finds what is known of a text. Texts contain no values, so that there are few.
type texts struct{ known sync.Map } // sql → *text

func (t *texts) get(sql string) *text {
	if known, ok := t.known.Load(sql); ok {
		return known.(*text)
	}
	known, _ := t.known.LoadOrStore(sql, parseText(sql))
	return known.(*text)
}

func parseText(sql string) *text {
	t := &text{sql: sql, written: engine.WrittenTables(sql)}
	var tokens []string
	for token := range tokensOf(sql) {
		if n, ok := parameter(token); ok {
			t.args = max(t.args, n)
		}
		tokens = append(tokens, strings.ToUpper(token))
	}
	t.inserts = countInserted(tokens)
	return t
}

// parameter returns the number of a parameter $n.
func parameter(token string) (n int, ok bool) {
	if len(token) < 2 || token[0] != '$' {
		return 0, false
	}
	for _, c := range []byte(token[1:]) {
		if c < '0' || c > '9' || n > 1<<16 {
			return 0, false
		}
		n = 10*n + int(c-'0')
	}
	return n, true
}

// countInserted returns how many rows INSERT INTO … VALUES (…), … writes when it succeeds, or 0 for any other statement and
// for one that returns rows or may leave some out.
func countInserted(tokens []string) (rows int64) {
	if len(tokens) == 0 || tokens[0] != "INSERT" {
		return 0
	}
	depth, values := 0, false
	for _, token := range tokens {
		switch token {
		case "SELECT", "RETURNING", "NOTHING", "WHERE":
			return 0
		case "(":
			if depth == 0 && values {
				rows++
			}
			depth++
		case ")":
			depth--
		case "VALUES":
			values = depth == 0
		case "ON":
			values = false
		}
	}
	return rows
}

// tokensOf returns the tokens of a statement without white space and comments: words, parameters, quoted names and values
// with their quotes, and single characters.
func tokensOf(sql string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for i := 0; i < len(sql); {
			n, skip := tokenLength(sql[i:])
			if !skip && !yield(sql[i:i+n]) {
				return
			}
			i += n
		}
	}
}

// tokenLength returns the length of the first token of s, and whether it is white space or a comment.
func tokenLength(s string) (n int, skip bool) {
	c := s[0]
	switch {
	case c == ' ' || c == '\t' || c == '\n' || c == '\r':
		return 1, true
	case strings.HasPrefix(s, "--"):
		return lengthTo(s, "\n"), true
	case strings.HasPrefix(s, "/*"):
		return lengthTo(s, "*/"), true
	case c == '\'' || c == '"':
		return 1 + lengthTo(s[1:], s[:1]), false // a doubled quote counts as two tokens, which does no harm
	case wordByte(c):
		for n = 1; n < len(s) && wordByte(s[n]); n++ {
		}
		return n, false
	}
	return 1, false
}

// lengthTo returns the length of s up to and including the end mark, or that of all of s.
func lengthTo(s, end string) int {
	if n := strings.Index(s, end); n >= 0 {
		return n + len(end)
	}
	return len(s)
}

func wordByte(c byte) bool {
	return c == '_' || c == '$' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}
