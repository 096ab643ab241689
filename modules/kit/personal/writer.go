package personal

import (
	"context"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"kontor/store"
)

// Writer writes an export: one JSON object with an array for each section.
type Writer struct {
	out     *jsontext.Encoder
	section string
	err     error
}

// NewWriter begins an export. head are the members before the sections.
func NewWriter(w io.Writer, head map[string]any) *Writer {
	e := &Writer{out: jsontext.NewEncoder(w, json.Deterministic(true))}
	e.token(jsontext.BeginObject)
	for _, name := range []string{"kind", "id", "exported_at"} {
		e.token(jsontext.String(name))
		e.value(head[name])
	}
	return e
}

// Add adds a row to a section. The rows of a section must follow each other.
func (w *Writer) Add(section string, row any) error {
	if section != w.section {
		w.endSection()
		w.section = section
		w.token(jsontext.String(section))
		w.token(jsontext.BeginArray)
	}
	w.value(row)
	return w.err
}

// Close ends the export.
func (w *Writer) Close() error {
	w.endSection()
	w.token(jsontext.EndObject)
	return w.err
}

func (w *Writer) endSection() {
	if w.section != "" {
		w.token(jsontext.EndArray)
		w.section = ""
	}
}

func (w *Writer) token(t jsontext.Token) {
	if w.err == nil {
		w.err = w.out.WriteToken(t)
	}
}

func (w *Writer) value(v any) {
	if w.err == nil {
		w.err = json.MarshalEncode(w.out, v, json.Deterministic(true))
	}
}

// Each adds the rows that a statement selects to a section, a batch at a time. The rows must be in the order of their keys. $1
// is the subject, $2 the last key, $3 the number of rows. scan returns a row and its key.
func Each(ctx context.Context, q store.Querier, w *Writer, section, statement, subject string,
	scan func(rows *store.Rows) (row any, key string, err error),
) error {
	for last := ""; ; {
		batch, err := readBatch(ctx, q, statement, subject, last, scan)
		if err != nil {
			return err
		}
		for _, r := range batch { // the reader is free while the client reads
			if err := w.Add(section, r.row); err != nil {
				return err
			}
			last = r.key
		}
		if len(batch) < Batch {
			return nil
		}
	}
}

type keyedRow struct {
	row any
	key string
}

func readBatch(ctx context.Context, q store.Querier, statement, subject, after string,
	scan func(rows *store.Rows) (row any, key string, err error),
) ([]keyedRow, error) {
	rows, err := q.Query(ctx, statement, subject, after, Batch)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var batch []keyedRow
	for rows.Next() {
		row, key, err := scan(rows)
		if err != nil {
			return nil, err
		}
		batch = append(batch, keyedRow{row, key})
	}
	return batch, rows.Err()
}
