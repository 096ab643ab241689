package transfer

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"
)

// insert adds rows with COPY, in one transaction.
func (p postgresReader) insert(ctx context.Context, t *table, b *batch) error {
	pr := &copyText{table: t, batch: b}
	_, err := p.conn.CopyFrom(ctx, pr, "COPY "+quoted(t.name)+" ("+t.names(t.allColumns())+") FROM STDIN")
	if pr.err != nil {
		return pr.err
	}
	if err != nil {
		return fmt.Errorf("write to %s: %w", t.name, explainPostgres(err))
	}
	return nil
}

// copyText reads a batch in the text format of COPY.
type copyText struct {
	table *table
	batch *batch
	next  int // row
	text  bytes.Buffer
	err   error
}

// Read implements io.Reader.
func (c *copyText) Read(p []byte) (int, error) {
	for c.text.Len() == 0 {
		if c.next == c.batch.rows {
			return 0, io.EOF
		}
		line, err := c.table.appendLine(c.text.AvailableBuffer(), c.batch.row(c.next, len(c.table.columns)))
		if err != nil {
			c.err = err
			return 0, err
		}
		c.text.Write(line)
		c.next++
	}
	return c.text.Read(p)
}

// appendLine appends a row in the text format of COPY. It returns ErrNotStorable for a text that PostgreSQL rejects.
func (t *table) appendLine(b []byte, r row) ([]byte, error) {
	for i, v := range r {
		if i > 0 {
			b = append(b, '\t')
		}
		switch c := t.columns[i].class; {
		case v.null:
			b = append(b, `\N`...)
		case c == integers:
			b = strconv.AppendInt(b, v.n, 10)
		case c == booleans:
			b = append(b, "ft"[v.n])
		case c == texts:
			if !utf8.Valid(v.b) || bytes.IndexByte(v.b, 0) >= 0 {
				return nil, fmt.Errorf("the column %s of the row %s of %s has a NUL byte or is not UTF-8: %w",
					t.columns[i].name, t.keyText(t.keyOf(r)), t.name, ErrNotStorable)
			}
			b = appendEscaped(b, v.b)
		default:
			b = hex.AppendEncode(append(b, `\\x`...), v.b)
		}
	}
	return append(b, '\n'), nil
}

func appendEscaped(b, text []byte) []byte {
	for _, c := range text {
		switch c {
		case '\\':
			b = append(b, '\\', '\\')
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, c)
		}
	}
	return b
}
