package imports

import (
	"encoding/csv"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"kontor/server/apierr"
)

var fuzzedColumns = map[string]bool{"last_name": true, "email": true, "first_name": false, "metadata": false}

// FuzzTable reads any bytes as a file. The reader must end, must return valid texts only, and must return what encoding/csv does for files
// without guards.
func FuzzTable(f *testing.F) {
	for _, seed := range []string{
		"", "\ufeff", "last_name,email\n", "last_name;email\r\nKeller;anna@example.ch\r\n", "\ufefflast_name,email\nKeller,\"a\"\"b\"\n",
		"last_name,email\nKeller,\"open\n", "last_name,email\na\"b,c\n", "last_name,email\n\xff,a\n", "last_name,email\n'=1+1,''+2\n",
		"last_name,last_name,email\n", "last_name,email,color\n", "last_name,email\n\"a\nb\",c\n,,,,\n\n\x00,b\n", "email\nb\n", "last_name;email,first_name\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		table, err := openTable(strings.NewReader(string(file)), fuzzedColumns)
		if err != nil {
			if !errors.Is(err, apierr.InvalidInput) {
				t.Fatalf("got %v", err)
			}
			return
		}
		plain := csv.NewReader(strings.NewReader(strings.TrimPrefix(string(file), byteMark)))
		plain.Comma, plain.FieldsPerRecord = table.csv.Comma, -1
		if _, err := plain.Read(); err != nil {
			t.Fatalf("the header: %v", err)
		}
		last := int64(0)
		for {
			row, err := table.next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				if !errors.Is(err, apierr.InvalidInput) {
					t.Fatalf("got %v", err)
				}
				return
			}
			want, err := plain.Read()
			if err != nil || len(want) != row.count || row.line <= last || (row.cells == nil) != (row.count != len(table.columns)) {
				t.Fatalf("row %d at line %d has %d cells, want %q %v", row.number, row.line, row.count, want, err)
			}
			last = row.line
			for i, column := range table.columns[:len(row.cells)] {
				got := row.cells[column]
				if got != want[i] && "'"+got != want[i] || !utf8.ValidString(got) {
					t.Fatalf("%s is %q, want %q", column, got, want[i])
				}
			}
		}
	})
}
