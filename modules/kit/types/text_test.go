package types_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"kontor/modules/kit/types"
)

func TestLine(t *testing.T) {
	for _, test := range []struct {
		name, in, want string
		limit          int
		err            error
	}{
		{"plain", "Anna", "Anna", 100, nil},
		{"empty", "", "", 100, nil},
		{"trimmed", " \t Anna\u00a0\n", "Anna", 100, nil},
		{"composed", "Mu\u0308ller", "Müller", 6, nil},
		{"as long as allowed", strings.Repeat("é", 100), strings.Repeat("é", 100), 100, nil},
		{"too long", strings.Repeat("é", 101), "", 100, types.RuleTooLong},
		{"far too long", strings.Repeat("e\u0301", 1<<16), "", 100, types.RuleTooLong},
		{"emoji with a joiner", "👩\u200d🚀", "👩\u200d🚀", 10, nil},
		{"line break", "An\nna", "", 100, types.RuleText},
		{"NUL", "An\x00na", "", 100, types.RuleText},
		{"escape", "\x1b[31mAnna", "", 100, types.RuleText},
		{"C1 control", "An\u0085na", "", 100, types.RuleText},
		{"right-to-left override", "An\u202ena", "", 100, types.RuleText},
		{"invalid UTF-8", "An\xffna", "", 100, types.RuleText},
		{"noncharacter", "An\uffffna", "", 100, types.RuleText},
	} {
		got, err := types.Line(test.in, test.limit)
		if got != test.want || err != test.err {
			t.Errorf("%s: got %q, %v; want %q, %v", test.name, got, err, test.want, test.err)
		}
	}
}

func TestText_KeepsLines(t *testing.T) {
	got, err := types.Text("one\r\ntwo\rthree\n\tfour ", 100)
	if want := "one\ntwo\nthree\n\tfour"; got != want || err != nil {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
	if _, err := types.Text("a\x07b", 100); err != types.RuleText {
		t.Errorf("a bell was rejected with %v", err)
	}
}

func TestRequired(t *testing.T) {
	if _, err := types.Required(" \t ", 5); err != types.RuleRequired {
		t.Errorf("white space was rejected with %v", err)
	}
	if _, err := types.Required("abcdef", 5); err != types.RuleTooLong {
		t.Errorf("a long text was rejected with %v", err)
	}
	if got, err := types.Required(" a ", 5); got != "a" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestFold(t *testing.T) {
	for _, same := range [][]string{
		{"müller", "Müller", "MÜLLER", "Mu\u0308ller", "MU\u0308LLER"},
		{"strasse", "STRASSE", "Straße", "STRAẞE"},
		{"σίσυφος", "ΣΊΣΥΦΟΣ"},
		{"anna", "ANNA", "Anna"},
	} {
		for _, s := range same {
			if got, want := types.Fold(s), types.Fold(same[0]); got != want {
				t.Errorf("Fold(%q) = %q, want %q", s, got, want)
			}
		}
	}
	if types.Fold("Muller") == types.Fold("Müller") {
		t.Error("u and ü have the same key")
	}
}

func TestParseID(t *testing.T) {
	for in, want := range map[string]string{
		"0192d3a4-7c1b-7def-8abc-0123456789ab":          "0192d3a4-7c1b-7def-8abc-0123456789ab",
		"0192D3A4-7C1B-7DEF-8ABC-0123456789AB":          "0192d3a4-7c1b-7def-8abc-0123456789ab",
		"00000000-0000-0000-0000-000000000000":          "00000000-0000-0000-0000-000000000000",
		"":                                              "",
		"0192d3a47c1b7def8abc0123456789ab":              "",
		"{0192d3a4-7c1b-7def-8abc-0123456789ab}":        "",
		"urn:uuid:0192d3a4-7c1b-7def-8abc-0123456789ab": "",
		"0192d3a4-7c1b-7def-8abc-0123456789ag":          "",
		"0192d3a4-7c1b-7def-8abc-0123456789a":           "",
		"0192d3a4-7c1b-7def-8abc-0123456789é":           "",
		"0192d3a4_7c1b-7def-8abc-0123456789ab":          "",
	} {
		got, err := types.ParseID(in)
		if got != want || (err == nil) != (want != "") || types.IsID(in) != (want != "") {
			t.Errorf("ParseID(%q) = %q, %v; want %q", in, got, err, want)
		}
	}
}

func FuzzTexts(f *testing.F) {
	for _, s := range []string{"Müller", "Mu\u0308ller", "ẞ", "İstanbul", "ǅ", "\u0345", "ͅΑ", "a\u0315\u0345"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		if folded := types.Fold(in); utf8.ValidString(in) && types.Fold(folded) != folded {
			t.Errorf("Fold(%q) = %q, folded again %q", in, folded, types.Fold(folded))
		}
		line, err := types.Line(in, 50)
		if err == nil {
			if utf8.RuneCountInString(line) > 50 || !norm.NFC.IsNormalString(line) || strings.ContainsAny(line, "\r\n\x00") {
				t.Errorf("Line(%q) = %q", in, line)
			}
			if again, err := types.Line(line, 50); again != line || err != nil {
				t.Errorf("Line(%q) = %q, then %q, %v", in, line, again, err)
			}
		}
		if id, err := types.ParseID(in); err == nil && !strings.EqualFold(id, in) {
			t.Errorf("ParseID(%q) = %q", in, id)
		}
	})
}

func TestRequired_RejectsTextsThatShowNothing(t *testing.T) {
	for _, blank := range []string{"", " ", "\u200b", "\u200b \u2060", "\u00ad", "\u3164", "\u2800", "\ufe0f", "\u180e\u200d"} {
		if got, err := types.Required(blank, 10); err != types.RuleRequired {
			t.Errorf("%q: got %q, %v", blank, got, err)
		}
	}
	for _, shown := range []string{"a", "क\u200dष", ".", "\u200ba"} {
		if _, err := types.Required(shown, 10); err != nil {
			t.Errorf("%q: %v", shown, err)
		}
	}
}
