package list

import (
	"strconv"
	"strings"
)

// Where is a condition on the rows of a list with its arguments. It is for filters of the module, such as the customer in the
// path or the caller's access. Its placeholders start at $1. They are renumbered when the condition becomes part of a statement:
// a dollar sign must not have another meaning in it. The zero Where matches every row.
type Where struct {
	SQL string
	// Any are conditions of which at least one must hold, in addition to SQL: relations of the caller to the row, each with
	// its own index. They use the same arguments.
	Any []string
	// Granted is a SELECT of the ids of further rows, which should be few. It uses the same arguments.
	//
	// "Created by the caller, or granted to the caller" must be in Any and Granted rather than in one text with OR: then a page
	// is read from the beginning of each index, independent of the number of rows.
	Granted string
	Args    []any
	// Tables are the further tables that the condition reads: totals are counted again when one of them changes. A table that decides
	// only about the row with the id in one of its columns is named with that column, see [Source.Tables].
	Tables []string
}

// builder builds a statement. Text comes from the program only; values of clients are added with arg.
type builder struct {
	text strings.Builder
	args []any
}

// unindexed returns a condition that is checked row by row: no index is searched for it, and SQLite reads that of the order instead.
func unindexed(condition string) string {
	return "CASE WHEN " + condition + " THEN TRUE ELSE FALSE END"
}

// add appends text of the program.
func (b *builder) add(parts ...string) {
	for _, part := range parts {
		b.text.WriteString(part)
	}
}

// arg appends a placeholder for a value.
func (b *builder) arg(value any) {
	b.args = append(b.args, value)
	b.text.WriteByte('$')
	b.text.WriteString(strconv.Itoa(len(b.args)))
}

// renumbered adds base to the numbers of a condition's placeholders.
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

// sql returns the statement so far.
func (b *builder) sql() string { return b.text.String() }

// and begins the next condition.
func (b *builder) and() {
	if b.text.Len() == 0 {
		b.text.WriteString(" WHERE ")
	} else {
		b.text.WriteString(" AND ")
	}
}

// copy returns a builder that continues the statement.
func (b *builder) copy() *builder {
	next := &builder{args: b.args[:len(b.args):len(b.args)]}
	next.text.WriteString(b.text.String())
	return next
}

// after returns a builder whose text is the parts followed by the text of b. Placeholders keep their numbers.
func (b *builder) after(parts ...string) *builder {
	next := &builder{args: b.args[:len(b.args):len(b.args)]}
	next.text.Grow(256)
	next.add(parts...)
	next.text.WriteString(b.text.String())
	return next
}
