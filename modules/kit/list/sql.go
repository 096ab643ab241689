package list

import (
	"strconv"
	"strings"
)

// Where is a condition on the rows of a list with its arguments, for a filter that the module itself
// sets: the customer named in the path, the caller's rights. Its placeholders count from $1; they are
// renumbered when the condition becomes part of a statement, so that a dollar sign must not stand for
// anything else in it. The zero Where lets every row pass.
type Where struct {
	SQL string
	// Any are conditions of which at least one must hold, beside SQL: the relations of the caller to
	// the row, each with an index of its own. They use the same arguments.
	Any []string
	// Granted is a SELECT of the ids of rows that pass like those of Any; they should be few. It uses
	// the same arguments.
	//
	// "He made it, or it was granted to him" belongs into Any and Granted rather than into one text with
	// OR: a page is then read from the beginning of each index, however many rows there are.
	Granted string
	Args    []any
	// Tables are those that the condition reads beside the list's own: totals that depend on it are
	// counted again when one of them changes.
	Tables []string
}

// builder puts a statement together. Text comes from the program only; whatever the client sent goes
// through arg.
type builder struct {
	text strings.Builder
	args []any
}

// add appends text that the program holds.
func (b *builder) add(parts ...string) {
	for _, part := range parts {
		b.text.WriteString(part)
	}
}

// arg appends the placeholder of a value.
func (b *builder) arg(value any) {
	b.args = append(b.args, value)
	b.text.WriteByte('$')
	b.text.WriteString(strconv.Itoa(len(b.args)))
}

// renumbered turns the placeholders of a condition that count from $1 into those after base.
func renumbered(sql string, base int) string {
	var b strings.Builder
	for {
		dollar := strings.IndexByte(sql, '$')
		if dollar < 0 {
			break
		}
		digits := 0
		for rest := sql[dollar+1:]; digits < len(rest) && rest[digits] >= '0' && rest[digits] <= '9'; {
			digits++
		}
		b.WriteString(sql[:dollar+1])
		if number, err := strconv.Atoi(sql[dollar+1 : dollar+1+digits]); err == nil {
			b.WriteString(strconv.Itoa(base + number))
		}
		sql = sql[dollar+1+digits:]
	}
	b.WriteString(sql)
	return b.String()
}

// sql is the statement so far.
func (b *builder) sql() string { return b.text.String() }

// and begins the next of several conditions.
func (b *builder) and() {
	if b.text.Len() == 0 {
		b.text.WriteString(" WHERE ")
	} else {
		b.text.WriteString(" AND ")
	}
}

// copy gives a builder that goes on where b is.
func (b *builder) copy() *builder {
	next := &builder{args: b.args[:len(b.args):len(b.args)]}
	next.text.WriteString(b.text.String())
	return next
}

// after gives a builder whose text begins with the parts and goes on with that of b, so that the
// placeholders keep their numbers.
func (b *builder) after(parts ...string) *builder {
	next := &builder{args: b.args[:len(b.args):len(b.args)]}
	next.text.Grow(256)
	next.add(parts...)
	next.text.WriteString(b.text.String())
	return next
}
