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
	SQL  string
	Args []any
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

// where appends a condition of the module, renumbered.
func (b *builder) where(w Where) {
	base := len(b.args)
	b.args = append(b.args, w.Args...)
	sql := w.SQL
	for {
		dollar := strings.IndexByte(sql, '$')
		if dollar < 0 {
			break
		}
		digits := 0
		for rest := sql[dollar+1:]; digits < len(rest) && rest[digits] >= '0' && rest[digits] <= '9'; {
			digits++
		}
		b.text.WriteString(sql[:dollar+1])
		if number, err := strconv.Atoi(sql[dollar+1 : dollar+1+digits]); err == nil {
			b.text.WriteString(strconv.Itoa(base + number))
		}
		sql = sql[dollar+1+digits:]
	}
	b.text.WriteString(sql)
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
