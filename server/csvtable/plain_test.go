package csvtable_test

import (
	"encoding/csv"
	"reflect"
	"strings"
	"testing"

	"kontor/server/csvtable"
	"kontor/server/endpoint"
)

type textRow struct {
	Text string `json:"text"`
}

// cellOf returns the cell of a text in a table.
func cellOf(t *testing.T, text string) string {
	t.Helper()
	b, err := csvtable.New(reflect.TypeFor[textRow](), endpoint.Encoding).Append(nil, textRow{text})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(string(b))).ReadAll()
	if err != nil || len(rows) != 1 {
		t.Fatalf("%q: %v", b, err)
	}
	return rows[0][0]
}

func TestPlain_ReturnsTheTextOfEachCell(t *testing.T) {
	for text, want := range map[string]string{
		"Keller": "Keller", "=1+1": "'=1+1", "+41446681800": "'+41446681800", "-5": "'-5", "@a": "'@a", " =1": "' =1", "'=1": "''=1", "''=1": "'''=1",
		"' =1": "'' =1", "O'Neil": "O'Neil", "'s": "'s", "'": "'", "＝1": "'＝1", "\t1": "'\t1",
	} {
		got := cellOf(t, text)
		if got != want || csvtable.Plain(got) != text {
			t.Errorf("%q is the cell %q, and back %q; want %q", text, got, csvtable.Plain(got), want)
		}
	}
	if csvtable.Plain("'Keller") != "'Keller" {
		t.Error("an apostrophe that protects nothing was removed")
	}
}

func FuzzPlain(f *testing.F) {
	f.Add("=1")
	f.Add("''+1")
	f.Add("' \ufeff=1")
	f.Fuzz(func(t *testing.T, text string) {
		if text == "" || strings.ToValidUTF8(text, "") != text || strings.ContainsAny(text, "\r\n") {
			return // a line end becomes another one; an invalid text is no JSON
		}
		if got := csvtable.Plain(cellOf(t, text)); got != text {
			t.Errorf("%q came back as %q", text, got)
		}
	})
}
