package personal

import (
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Writer writes an export: one JSON object with an array for each section. Only [Section.Write] adds rows.
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

// add adds a row to a section. The rows of a section must follow each other.
func (w *Writer) add(section string, row any) error {
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
