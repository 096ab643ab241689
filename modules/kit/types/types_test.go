package types_test

import (
	"encoding/json"
	"net/mail"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/text/language"
	"golang.org/x/text/unicode/norm"

	"kontor/modules/kit/types"
)

func TestRule_HasTextsInEveryLanguage(t *testing.T) {
	for _, l := range []types.Language{types.English, types.German, types.French, types.Italian} {
		data, err := os.ReadFile("../../../locales/" + l.String() + "/kernel.json")
		if err != nil {
			t.Fatal(err)
		}
		var texts map[string]string
		if err := json.Unmarshal(data, &texts); err != nil {
			t.Fatal(err)
		}
		for _, rule := range []types.Rule{
			types.RuleRequired, types.RuleTooLong, types.RuleText, types.RuleCountry, types.RuleAlpha3, types.RuleDate,
			types.RuleLanguage, types.RulePhone, types.RuleEmail, types.RuleID, types.RuleDisplayName,
		} {
			if key, _ := rule.Text(); texts[key] == "" {
				t.Errorf("%s has no text for %s", l, key)
			}
		}
	}
}

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

func TestParseCountry(t *testing.T) {
	for _, test := range []struct {
		in     string
		alpha2 string
		ok     bool
	}{
		{"CHE", "CH", true}, {"DEU", "DE", true}, {"LIE", "LI", true}, {"SSD", "SS", true}, {"BES", "BQ", true},
		{"XKX", "XK", true}, {"XXA", "", true}, {"XXB", "", true}, {"XXC", "", true}, {"XXX", "", true}, {"ANT", "", true}, {"ZZZ", "", true},
		{"che", "", false}, {"CH", "", false}, {"", "", false}, {"CHE ", "", false}, {"CHE\n", "", false}, {"CHEE", "", false}, {"C1E", "", false},
		{"ÄXA", "", false}, {"ÄX", "", false}, {"ＣＨＥ", "", false},
	} {
		c, err := types.ParseCountry(test.in)
		if (err == nil) != test.ok || c.Alpha2() != test.alpha2 {
			t.Errorf("ParseCountry(%q) = %q (alpha-2 %q), %v; want alpha-2 %q, ok %v", test.in, c, c.Alpha2(), err, test.alpha2, test.ok)
		}
		if err != nil && err != types.RuleAlpha3 {
			t.Errorf("ParseCountry(%q) returned %v, want %v", test.in, err, types.RuleAlpha3)
		}
	}
}

func TestCountryOf_TakesBothForms(t *testing.T) {
	for in, want := range map[string]types.Country{"CH": "CHE", "CHE": "CHE", "GB": "GBR", "XK": "XKX", "XKX": "XKX", "UK": "", "C": "",
		"ch": "", "XXA": "", "XQZ": ""} {
		got, err := types.CountryOf(in)
		if got != want || (want == "" && err != types.RuleCountry) {
			t.Errorf("CountryOf(%q) = %q, %v; want %q", in, got, err, want)
		}
	}
}

// The language library implements the same standard. The test fails when only one of the two tables is updated.
func TestCountries_AgreeWithTheLanguageLibrary(t *testing.T) {
	countries := types.Countries()
	if len(countries) != 250 {
		t.Fatalf("%d countries, want 249 of ISO 3166-1 and Kosovo", len(countries))
	}
	for _, c := range countries {
		if c == "XKX" { // no official code; the library has another one
			continue
		}
		region, err := language.ParseRegion(c.Alpha2())
		if err != nil || region.ISO3() != c.String() || !region.IsCountry() {
			t.Errorf("%s: the library says %v %s %v", c, region, region.ISO3(), err)
		}
	}
}

func TestParseLanguage(t *testing.T) {
	for _, l := range []types.Language{types.English, types.German, types.French, types.Italian} {
		if got, err := types.ParseLanguage(l.String()); got != l || err != nil {
			t.Errorf("ParseLanguage(%q) = %q, %v", l, got, err)
		}
	}
	for _, in := range []string{"", "EN", "de-CH", "rm", "english"} {
		if got, err := types.ParseLanguage(in); err != types.RuleLanguage || got != "" {
			t.Errorf("ParseLanguage(%q) = %q, %v", in, got, err)
		}
	}
}

func TestParseDate(t *testing.T) {
	for in, ok := range map[string]bool{
		"2026-01-31": true, "2024-02-29": true, "0001-01-01": true, "9999-12-31": true,
		"2025-02-29": false, "2025-02-30": false, "2025-13-01": false, "2025-00-10": false, "0000-01-01": false,
		"2025-1-1": false, "": false, "20250101": false, "2025-01-01T00:00:00Z": false, " 2025-01-01": false,
		"-025-01-01": false, "2025-01-0１": false, "10000-01-01": false,
	} {
		d, err := types.ParseDate(in)
		if (err == nil) != ok {
			t.Errorf("ParseDate(%q) = %v, %v; want ok %v", in, d, err, ok)
		}
		if ok && d.String() != in {
			t.Errorf("ParseDate(%q).String() = %q", in, d)
		}
	}
}

func TestDate_JSON(t *testing.T) {
	var got struct{ A, B, C types.Date }
	if err := json.Unmarshal([]byte(`{"A":"2026-01-31","B":null}`), &got); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(got)
	if want := `{"A":"2026-01-31","B":null,"C":null}`; err != nil || string(out) != want {
		t.Errorf("got %s, %v; want %s", out, err, want)
	}
	for _, in := range []string{`""`, `"2025-02-30"`, `5`, `{}`, `"2025-01-01 "`, `true`} {
		var d types.Date
		if err := json.Unmarshal([]byte(in), &d); err == nil {
			t.Errorf("%s was parsed as %v", in, d)
		}
	}
}

func TestDate_Order(t *testing.T) {
	early, _ := types.ParseDate("2024-02-28")
	late, _ := types.ParseDate("2024-03-01")
	if !early.Before(late) || !late.After(early) || early.Compare(early) != 0 {
		t.Errorf("%v and %v are in the wrong order", early, late)
	}
	if got := early.AddDays(2); got != late {
		t.Errorf("two days after %v is %v, want %v", early, got, late)
	}
	zone := time.FixedZone("east", 5*3600)
	if got := types.DateOf(time.Date(2024, 2, 28, 23, 0, 0, 0, time.UTC).In(zone)).String(); got != "2024-02-29" {
		t.Errorf("the day in the zone is %s", got)
	}
	if got := types.DateOf(time.Date(12000, 1, 1, 0, 0, 0, 0, time.UTC)); !got.IsZero() {
		t.Errorf("the year 12000 gave %v", got)
	}
}

func TestDate_Stored(t *testing.T) {
	d, _ := types.ParseDate("2026-01-31")
	stored, err := d.Value()
	if stored != "2026-01-31" || err != nil {
		t.Errorf("stored as %v, %v", stored, err)
	}
	var back types.Date
	if err := back.Scan(stored); err != nil || back != d {
		t.Errorf("read back as %v, %v", back, err)
	}
	if stored, _ := (types.Date{}).Value(); stored != nil {
		t.Errorf("the zero date is stored as %v", stored)
	}
	if err := back.Scan(nil); err != nil || !back.IsZero() {
		t.Errorf("NULL read as %v, %v", back, err)
	}
	if err := back.Scan([]byte("2026-02-31")); err == nil {
		t.Error("a wrong date was read from the database")
	}
	if err := back.Scan(int64(5)); err == nil {
		t.Error("a number was read as a date")
	}
}

func FuzzParseDate(f *testing.F) {
	f.Add("2026-01-31")
	f.Add("2025-02-29")
	f.Fuzz(func(t *testing.T, in string) {
		d, err := types.ParseDate(in)
		if err == nil && d.String() != in {
			t.Errorf("ParseDate(%q).String() = %q", in, d)
		}
		var viaJSON types.Date
		if quoted, _ := json.Marshal(in); json.Unmarshal(quoted, &viaJSON) == nil && viaJSON != d {
			t.Errorf("%q: JSON gives %v, ParseDate %v", in, viaJSON, d)
		}
	})
}

func TestParseEmail(t *testing.T) {
	long := strings.Repeat("a", 64)
	for in, key := range map[string]string{
		"anna@example.ch":                           "anna@example.ch",
		"  Anna.Meier+bank@Example.CH ":             "anna.meier+bank@example.ch",
		"o'brien@example.co.uk":                     "o'brien@example.co.uk",
		"jürg@müller.ch":                            "jürg@xn--mller-kva.ch",
		"JÜRG@MÜLLER.CH":                            "jürg@xn--mller-kva.ch",
		"Ju\u0308rg@XN--MLLER-KVA.ch":               "jürg@xn--mller-kva.ch",
		long + "@example.ch":                        long + "@example.ch",
		"a@" + strings.Repeat("b.", 120) + "museum": "a@" + strings.Repeat("b.", 120) + "museum",
		"admin@kontor.localhost":                    "admin@kontor.localhost",
	} {
		e, err := types.ParseEmail(in)
		if err != nil || e.Key() != key {
			t.Errorf("ParseEmail(%q) = %q, %v; key %q, want %q", in, e, err, e.Key(), key)
		}
	}
	for _, in := range []string{
		"", "anna", "@example.ch", "anna@", "anna@example", "anna@@example.ch", "a b@example.ch", "anna@exam ple.ch",
		".anna@example.ch", "anna.@example.ch", "an..na@example.ch", "anna@.ch", "anna@example..ch", "anna@example.ch.",
		"anna@-example.ch", "anna@example-.ch", "anna@exa_mple.ch", `"anna"@example.ch`, "Anna <anna@example.ch>",
		"anna@[10.0.0.1]", "anna@10.0.0.1", "anna@example.ch\r\nBcc: x@y.ch", "anna\x00@example.ch", "anna@example.ch, b@c.ch",
		"anna(comment)@example.ch", long + "a@example.ch", "a@" + strings.Repeat("b", 64) + ".ch",
		"a@" + strings.Repeat("b.", 130) + "ch", "an\u200bna@example.ch", "anna@xn--zzzzzzzzz99999.ch", "a\xff@example.ch",
	} {
		if e, err := types.ParseEmail(in); err != types.RuleEmail {
			t.Errorf("ParseEmail(%q) = %q, %v; want an error", in, e, err)
		}
	}
}

func TestEmail_KeepsItsSpelling(t *testing.T) {
	if e, _ := types.ParseEmail("Anna.Meier@Example.CH"); e.String() != "Anna.Meier@Example.CH" {
		t.Errorf("got %q", e)
	}
}

func FuzzParseEmail(f *testing.F) {
	for _, s := range []string{"anna@example.ch", "jürg@müller.ch", `"a b"@c.d`, "a@b@c.d", "ß@straße.de", "a@[::1]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		e, err := types.ParseEmail(in)
		if err != nil {
			return
		}
		if strings.ContainsAny(e.String(), "\r\n\x00 <>,;\"") || len(e) > 254 {
			t.Errorf("%q was parsed as %q", in, e)
		}
		if _, err := mail.ParseAddress("<" + e.String() + ">"); err != nil {
			t.Errorf("%q is no address: %v", e, err)
		}
		again, err := types.ParseEmail(e.String())
		if err != nil || again != e || again.Key() != e.Key() {
			t.Errorf("%q parsed again: %q, %v", e, again, err)
		}
		if upper, err := types.ParseEmail(strings.ToUpper(e.String())); err == nil && isASCII(in) && upper.Key() != e.Key() {
			t.Errorf("%q and %q have different keys %q and %q", e, upper, e.Key(), upper.Key())
		}
	})
}

func isASCII(s string) bool { return !strings.ContainsFunc(s, func(r rune) bool { return r > 127 }) }

func TestParsePhone(t *testing.T) {
	for in, want := range map[string]types.Phone{
		"+41446681800": "+41446681800", "044 668 18 00": "+41446681800", "0041 44 668 18 00": "+41446681800",
		"+41 (0)44 668 18 00": "+41446681800", "079/123.45.67": "+41791234567", "+49 30 123456": "+4930123456",
		"+39 06 698 1234": "+39066981234", "+423 237 74 00": "+4232377400", "+1 212-555-0123": "+12125550123",
		"": "", "hello": "", "123": "", "+41": "", "+999123456789": "", "044 668 18": "", "+41446681800 ext. 5": "",
		"044 668 18 00;ext=5": "", "1-800-FLOWERS": "", "+41\x00446681800": "", "tel:+41446681800": "",
		"+4144668180000000000000000000000000000000000000000000000000000000000000000": "",
	} {
		got, err := types.ParsePhone(in)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("ParsePhone(%q) = %q, %v; want %q", in, got, err, want)
		}
	}
}

var e164 = regexp.MustCompile(`^\+[1-9][0-9]{1,16}$`)

func FuzzParsePhone(f *testing.F) {
	for _, s := range []string{"044 668 18 00", "+49 (0)30 123456", "00", "+", "((((", "+800 1234 5678", "+54 9 11 1234-5678", "+52 1 55 1234 5678", "+1 (242) 365 1234",
		"4144 668 18 00", "+0041 44 668 18 00", "+39 06 698 1234", "+44 7700 900123", "+55 0 11 91234-5678"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		p, err := types.ParsePhone(in)
		if err != nil {
			return
		}
		if !e164.MatchString(p.String()) {
			t.Errorf("ParsePhone(%q) = %q", in, p)
		}
		if again, err := types.ParsePhone(p.String()); err != nil || again != p {
			t.Errorf("%q parsed again: %q, %v", p, again, err)
		}
	})
}

func TestPersonKey_FindsTheSamePersonInOtherSpellings(t *testing.T) {
	for name, c := range map[string]struct {
		one, other []string
		same       bool
	}{
		"case":                 {[]string{"Ada", "Lovelace"}, []string{"ADA", "lovelace"}, true},
		"accents":              {[]string{"Zoë", "Čapek"}, []string{"Zoe", "Capek"}, true},
		"order":                {[]string{"Ada", "Lovelace"}, []string{"Lovelace", "Ada"}, true},
		"all in one field":     {[]string{"Ada", "Lovelace"}, []string{"", "Lovelace, Ada"}, true},
		"white space":          {[]string{"Anna Maria", "Muster"}, []string{"Anna", "Maria  Muster"}, true},
		"a hyphen":             {[]string{"Anna-Maria", "Muster"}, []string{"Anna Maria", "Muster"}, true},
		"an apostrophe":        {[]string{"Sean", "O'Neill"}, []string{"Sean", "O’NEILL"}, true},
		"transliteration":      {[]string{"Jürg", "Müller"}, []string{"Juerg", "Mueller"}, true},
		"sharp s":              {[]string{"Eva", "Weiß"}, []string{"Eva", "WEISS"}, true},
		"full-width letters":   {[]string{"Ada", "Lovelace"}, []string{"Ａｄａ", "Ｌｏｖｅｌａｃｅ"}, true},
		"a Cyrillic letter":    {[]string{"Ada", "Lovelace"}, []string{"Аda", "Lоvelасе"}, true},
		"an invisible joiner":  {[]string{"Ada", "Lovelace"}, []string{"A\u200dda", "Love\u200blace"}, true},
		"a stroke":             {[]string{"Søren", "Łukasz"}, []string{"Soren", "Lukasz"}, true},
		"another person":       {[]string{"Ada", "Lovelace"}, []string{"Eda", "Lovelace"}, false},
		"one name more":        {[]string{"Ada", "Lovelace"}, []string{"Ada Maria", "Lovelace"}, false},
		"a name of each other": {[]string{"Ada", "Ada"}, []string{"Ada"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			one, other := types.PersonKey(c.one...), types.PersonKey(c.other...)
			if (one == other) != c.same {
				t.Errorf("got %q and %q, want the same: %v", one, other, c.same)
			}
		})
	}
}

func FuzzPersonKey(f *testing.F) {
	for _, seed := range []string{"Ada Lovelace", "Müller", "Ａｄａ", "aue", "\xff", "ﬁ ß İ"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		name = strings.ToValidUTF8(name, "")
		key := types.PersonKey(name)
		if again := types.PersonKey("", name, ""); again != key {
			t.Errorf("%q: got %q and, split otherwise, %q", name, key, again)
		}
		if strings.ToValidUTF8(key, "") != key || strings.TrimSpace(key) != key {
			t.Errorf("%q: got %q, want valid words", name, key)
		}
	})
}
