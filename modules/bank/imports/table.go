package imports

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"io"
	"maps"
	"slices"
	"unicode/utf8"

	"kontor/modules/kit/upload"
	"kontor/server/apierr"
	"kontor/server/csvtable"
	"kontor/server/endpoint"
)

const (
	// maxRowBytes bounds the memory that a row takes, and maxHeaderBytes the header. maxRows bounds what an import keeps for each row.
	maxRowBytes    = 256 << 10
	maxHeaderBytes = 64 << 10
	maxRows        = 500_000
	maxShown       = 20 // wrong columns that an answer names
)

// byteMark begins files that spreadsheets write in UTF-8.
const byteMark = "\ufeff"

// table reads a file of comma-separated values (RFC 4180) row by row. Its memory does not depend on the size of the file.
type table struct {
	csv     *csv.Reader
	bound   *bounded
	columns []string
	number  int64 // rows that were read
	last    int64 // first line of the last one
}

// tableRow is a row of a file.
type tableRow struct {
	number int64 // from 1, without the header
	line   int64 // of its beginning in the file
	cells  map[string]string
	count  int // of its cells; another number than that of the columns: cells is empty
}

// openTable reads the header of a file, which must have known columns only and each once, and all that are required. It returns
// apierr.InvalidInput for a file that is no table, and the errors of the source.
func openTable(source io.Reader, known map[string]bool) (*table, error) {
	buffered := bufio.NewReaderSize(source, maxHeaderBytes)
	if mark, err := buffered.Peek(len(byteMark)); err == nil && string(mark) == byteMark {
		_, _ = buffered.Discard(len(byteMark))
	}
	head, err := buffered.Peek(maxHeaderBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(bytes.TrimSpace(head)) == 0 {
		return nil, apierr.Invalid(upload.FileMember, "imports.empty")
	}
	t := &table{bound: &bounded{source: buffered}}
	t.csv = csv.NewReader(t.bound)
	t.csv.Comma, t.csv.FieldsPerRecord, t.csv.ReuseRecord = separatorOf(head), -1, true
	header, _, err := t.read()
	if errors.Is(err, io.EOF) {
		return nil, apierr.Invalid(upload.FileMember, "imports.empty")
	}
	if err != nil {
		return nil, err
	}
	t.columns = slices.Clone(header)
	return t, checkHeader(t.columns, known)
}

// separatorOf returns the character that divides the header into more columns.
func separatorOf(head []byte) rune {
	most, best := 0, ','
	for _, separator := range []rune{',', ';'} {
		r := csv.NewReader(bytes.NewReader(head))
		r.Comma = separator
		if record, err := r.Read(); err == nil && len(record) > most {
			most, best = len(record), separator
		}
	}
	return best
}

// checkHeader returns apierr.InvalidInput with the columns that are unknown, repeated or missing.
func checkHeader(columns []string, known map[string]bool) error {
	var problems apierr.Fields
	seen := map[string]bool{}
	for _, column := range columns {
		if problems.Len() >= maxShown {
			break
		}
		_, isKnown := known[column]
		switch {
		case !isKnown:
			problems.Add(cmp.Or(endpoint.Clip(column), "?"), "imports.unknown_column")
		case seen[column]:
			problems.Add(column, "imports.repeated_column")
		}
		seen[column] = true
	}
	for _, column := range slices.Sorted(maps.Keys(known)) {
		if known[column] && !seen[column] {
			problems.Add(column, "imports.missing_column")
		}
	}
	return problems.Err()
}

// next returns the next row. It returns io.EOF at the end, and apierr.InvalidInput where the file is no table.
func (t *table) next() (tableRow, error) {
	record, line, err := t.read()
	if err != nil {
		return tableRow{}, err
	}
	if t.number++; t.number > maxRows {
		return tableRow{}, apierr.Invalid(upload.FileMember, "imports.too_many_rows", apierr.Args{"Max": maxRows})
	}
	row := tableRow{number: t.number, line: line, count: len(record)}
	if len(record) == len(t.columns) {
		row.cells = make(map[string]string, len(record))
		for i, cell := range record {
			row.cells[t.columns[i]] = csvtable.Plain(cell)
		}
	}
	return row, nil
}

// read returns the next record, which is valid until the next call, and its first line.
func (t *table) read() (record []string, line int64, err error) {
	t.bound.left = maxRowBytes
	record, err = t.csv.Read()
	if len(record) > 0 {
		at, _ := t.csv.FieldPos(0)
		line = int64(at)
	}
	var malformed *csv.ParseError
	switch {
	case errors.Is(err, errTooLong):
		return nil, 0, apierr.Invalid(upload.FileMember, "imports.row_too_long", apierr.Args{"Line": cmp.Or(line, t.line()), "Max": maxRowBytes})
	case errors.As(err, &malformed):
		return nil, 0, apierr.Invalid(upload.FileMember, "imports.quotation_mark", apierr.Args{"Line": malformed.StartLine})
	case err != nil:
		return nil, 0, err
	}
	for _, cell := range record {
		if !utf8.ValidString(cell) {
			return nil, 0, apierr.Invalid(upload.FileMember, "imports.not_utf8", apierr.Args{"Line": line})
		}
	}
	t.last = line
	return record, line, nil
}

// line returns the line after the last row that was read.
func (t *table) line() int64 {
	if t.columns == nil {
		return 1
	}
	return t.last + 1
}

var errTooLong = errors.New("the row is too long")

// bounded ends a source that returns too many bytes for one row.
type bounded struct {
	source io.Reader
	left   int
}

// Read returns the next bytes.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLong
	}
	n, err := b.source.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
