package postgres

import "kontor/store/engine"

// Columns returns the number of columns.
func (s *statement) Columns() int { return len(s.p.columns) }

// Name returns the name of a column.
func (s *statement) Name(i int) string { return s.p.columns[i].name }

// Type returns the type of a column in the current row.
func (s *statement) Type(i int) engine.Type { return typeOf(s.p.columns[i].oid, s.row[i]) }

// Int returns a column as an integer.
func (s *statement) Int(i int) int64 { return intOf(s.p.columns[i].oid, s.row[i]) }

// Float returns a column as a floating point number.
func (s *statement) Float(i int) float64 { return floatOf(s.p.columns[i].oid, s.row[i]) }

// Text returns a column as a text.
func (s *statement) Text(i int) string { return textOf(s.p.columns[i].oid, s.row[i]) }

// AppendText appends the text in column i to b.
func (s *statement) AppendText(b []byte, i int) []byte { return append(b, s.Text(i)...) }

// Bytes returns a copy of a column.
func (s *statement) Bytes(i int) []byte {
	if s.row[i] == nil {
		return nil
	}
	return append(make([]byte, 0, len(s.row[i])), s.row[i]...)
}

// Size returns the length of a text or of bytes.
func (s *statement) Size(i int) int {
	switch s.Type(i) {
	case engine.Text, engine.Bytes:
		return len(s.row[i])
	}
	return 0
}
