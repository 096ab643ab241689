package types_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"kontor/modules/kit/types"
)

func TestParseDisplayName(t *testing.T) {
	for _, c := range []struct {
		name, in, want string
		err            error
	}{
		{"plain", "Anna Keller", "Anna Keller", nil},
		{"surrounded and separated by white space", "\t Anna \u00a0 Keller\u3000", "Anna Keller", nil},
		{"decomposed", "Mu\u0308ller", "Müller", nil},
		{"one letter", "A", "A", nil},
		{"100 characters", strings.Repeat("é", 100), strings.Repeat("é", 100), nil},
		{"punctuation of names", "Jean-Luc O’Neill, Dr. d'Été", "Jean-Luc O’Neill, Dr. d'Été", nil},
		{"HTML", "<b>Anna</b>", "<b>Anna</b>", nil},
		{"Arabic", "محمد", "محمد", nil},
		{"Devanagari", "क्षितिज", "क्षितिज", nil},
		{"Vietnamese", "Nguyễn Thị Ái", "Nguyễn Thị Ái", nil},
		{"empty", "", "", types.RuleRequired},
		{"blank", " \u00a0\t", "", types.RuleRequired},
		{"101 characters", strings.Repeat("é", 101), "", types.RuleTooLong},
		{"10,000 characters", strings.Repeat("a", 10_000), "", types.RuleTooLong},
		{"line break", "Anna\nKeller", "", types.RuleText},
		{"line separator", "Anna\u2028Keller", "", types.RuleText},
		{"NUL", "Anna\x00", "", types.RuleText},
		{"invalid UTF-8", "Anna\xff", "", types.RuleText},
		{"right-to-left override", "Anna\u202eRelleK", "", types.RuleText},
		{"right-to-left mark", "Anna\u200fKeller", "", types.RuleDisplayName},
		{"Arabic letter mark", "Anna\u061cKeller", "", types.RuleDisplayName},
		{"zero-width space", "An\u200bna", "", types.RuleDisplayName},
		{"zero-width joiner", "An\u200dna", "", types.RuleDisplayName},
		{"zero-width non-joiner", "An\u200cna", "", types.RuleDisplayName},
		{"soft hyphen", "An\u00adna", "", types.RuleDisplayName},
		{"grapheme joiner", "An\u034fna", "", types.RuleDisplayName},
		{"variation selector", "Anna\ufe0f", "", types.RuleDisplayName},
		{"Hangul filler", "\u3164", "", types.RuleDisplayName},
		{"tag characters", "Anna\U000e0041", "", types.RuleDisplayName},
		{"private use", "Anna \ue000", "", types.RuleDisplayName},
		{"unassigned", "Anna \u0378", "", types.RuleDisplayName},
		{"stacked marks", "A\u0316\u0317\u0318\u0319nna", "", types.RuleDisplayName},
		{"a mark without a letter", "\u0300Anna", "", types.RuleDisplayName},
		{"a mark after a space", "Anna \u0300Keller", "", types.RuleDisplayName},
		{"punctuation only", "-.,!", "", types.RuleDisplayName},
		{"emoji only", "🙂🙂", "", types.RuleDisplayName},
		{"blank Braille", "\u2800", "", types.RuleDisplayName},
		{"blank Braille in a name", "Anna\u2800Keller", "", types.RuleDisplayName},
	} {
		if got, err := types.ParseDisplayName(c.in); got != c.want || err != c.err {
			t.Errorf("%s: got %q, %v; want %q, %v", c.name, got, err, c.want, c.err)
		}
	}
}

func TestNameSkeleton(t *testing.T) {
	const name = "Anna Keller"
	for what, like := range map[string]string{
		"itself": name, "case": "ANNA keller", "order": "Keller, Anna", "no space": "AnnaKeller", "no space, other order": "kellerANNA",
		"user name": "anna.keller", "Cyrillic а": "Аnnа Keller", "fullwidth": "Ａｎｎａ Keller", "accents": "Ánnà Këller",
		"dots below": "Ạnna Keller", "digit one": "Anna Ke11er", "capital I": "Anna KeIIer", "bars": "Anna Ke||er", "mathematical": "𝐀𝐧𝐧𝐚 Keller",
	} {
		if types.NameSkeleton(like) != types.NameSkeleton(name) && types.WrittenSkeleton(like) != types.NameSkeleton(name) {
			t.Errorf("%s: %q does not resemble %q", what, like, name)
		}
	}
	if types.WrittenSkeleton("A n n a K e l l e r") != types.NameSkeleton(name) {
		t.Error("spaces within the words make another name")
	}
	for _, like := range [][2]string{{"Jürg Müller", "Mueller Juerg"}, {"Marna", "Mama"}, {"Leo Wyss", "Leo VVyss"}, {"Anna Maria Keller", "Keller Maria Anna"}, {"Bo Li", "B0 L1"}} {
		if types.NameSkeleton(like[0]) != types.NameSkeleton(like[1]) {
			t.Errorf("%q does not resemble %q", like[0], like[1])
		}
	}
	for _, other := range []string{"Anna Kellner", "Hanna Keller", "Anna", "Keller", "", "Nora Keller", "Anna Keller Meier"} {
		if types.NameSkeleton(other) == types.NameSkeleton(name) {
			t.Errorf("%q counts as a look-alike of %q", other, name)
		}
	}
}

func TestLatinCapitals(t *testing.T) {
	for text, want := range map[string]string{
		"Anna": "Anna", "Ηans": "hans", "ΝΙΝΑ": "nΙnΑ", "Ή": "h\u0301", "𝚮ans": "hans", "Νίκος": "nίκος", "Müller": "Müller", "": "",
	} {
		if got := types.LatinCapitals(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestContainsWords(t *testing.T) {
	words := []string{"kontor", "support", "help desk", "sécurité"}
	for text, want := range map[string]bool{
		"Kontor": true, "KONTOR Support": true, "K0nt0r": true, "КОNТОR": true, "kontorsupport": true, "S u p p o r t": true, "Help Desk": true,
		"Anna (Kontor)": true, "Kon-tor": true, "Securite Zürich": true, "helpdesk 24": true, "the Help  Desk": true,
		"Anna Keller": false, "Kontorowicz": false, "Supporter": false, "Help": false, "": false, "Anna Kontorsohn": false,
	} {
		if got := types.ContainsWords(text, words...); got != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}

func TestSearchKey(t *testing.T) {
	for _, text := range []string{"Müller", "MULLER", "muller", "Mu\u0308ller"} {
		if got := types.SearchKey(text); got != "muller" {
			t.Errorf("%q: got %q", text, got)
		}
	}
}

func FuzzDisplayName(f *testing.F) {
	for _, seed := range []string{"Anna Keller", "Mu\u0308ller", "Аnna", "\u202e", "A\u0300\u0301", "ﷺ", "ﬃ 🙂", "a e", "ͅΑ"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		name, err := types.ParseDisplayName(in)
		if err != nil {
			return
		}
		if again, err := types.ParseDisplayName(name); again != name || err != nil || utf8.RuneCountInString(name) > types.MaxDisplayName {
			t.Errorf("%q: got %q, and that again is %q, %v", in, name, again, err)
		}
		if types.NameSkeleton(name) != types.NameSkeleton(strings.ToUpper(name)) && roundTrips(name) {
			t.Errorf("%q: the skeleton depends on the case", name)
		}
		words := strings.Fields(name)
		for i, j := 0, len(words)-1; i < j; i, j = i+1, j-1 {
			words[i], words[j] = words[j], words[i]
		}
		if types.NameSkeleton(strings.Join(words, " ")) != types.NameSkeleton(name) {
			t.Errorf("%q: the skeleton depends on the order", name)
		}
		if key := types.SearchKey(name); types.SearchKey(key) != key {
			t.Errorf("%q: key %q changes again", name, key)
		}
	})
}

// roundTrips reports whether changing the case of a text and back changes nothing else, as it does for "ß".
func roundTrips(s string) bool {
	upper, lower := strings.ToUpper(s), strings.ToLower(s)
	fromLower, fromUpper := strings.ToUpper(lower), strings.ToLower(upper)
	return fromLower == upper && fromUpper == lower
}

func TestLookAlikeKey(t *testing.T) {
	const real = "anna.keller@example.ch"
	for name, address := range map[string]string{
		"itself":                       "Anna.Keller@Example.CH",
		"fullwidth letters":            "ａｎｎａ.keller@example.ch",
		"a fullwidth domain":           "anna.keller@ｅｘａｍｐｌｅ.ch",
		"a Cyrillic letter":            "аnna.keller@example.ch",
		"Cyrillic letters in capitals": "АNNА.KELLER@example.ch",
		"a Greek letter":               "αnna.keller@example.ch",
		"an Armenian letter":           "anոa.keller@example.ch",
		"a Cyrillic domain":            "anna.keller@ехаmрlе.ch",
		"mathematical letters":         "𝐚𝐧𝐧𝐚.keller@example.ch",
		"an invisible mark":            "an\u034fna.keller@example.ch",
		"a variation selector":         "anna\ufe0f.keller@example.ch",
	} {
		parsed, err := types.ParseEmail(address)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if got := parsed.LookAlikeKey(); got != real {
			t.Errorf("%s: key %q, want %q", name, got, real)
		}
	}
	for _, other := range []string{"änna.keller@example.ch", "anna.ke1ler@example.ch", "anna.keller@exarnple.ch", "анна@пример.рф", "anna.keller@examplé.ch"} {
		parsed, err := types.ParseEmail(other)
		if err != nil {
			t.Fatalf("%s: %v", other, err)
		}
		if parsed.LookAlikeKey() == real {
			t.Errorf("%s counts as a look-alike of %s", other, real)
		}
	}
}

func FuzzLookAlike(f *testing.F) {
	for _, seed := range []string{"", "anna", "ａｎｎａ", "аnna", "İı", "ǅ", "ﬁ", "e\u0301", "a\u034f\u0301", "ΐ", "\U0001d41a", "ß"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		key := types.LookAlike(text)
		if again := types.LookAlike(key); again != key {
			t.Errorf("%q: key %q, and the key of that %q", text, key, again)
		}
	})
}

func TestWords_FoldsSpellings(t *testing.T) {
	for text, want := range map[string]string{
		"Beat Küng": "beat kung", "MUELLER": "muller", "Müller": "muller", "Mu\u0308ller": "muller", "Bauer": "bauer", "Bäuerin": "bauerin",
		"Baeuerin": "bauerin", "Quelle": "quelle", "neue": "neue", "Straße": "strasse", "STRASSE": "strasse", "Weiß": "weiss",
		"Søren Ærø": "soren aro", "Soeren": "soren", "Łukasz Đoković": "lukasz dokovic", "Zoë": "zoe", "Noël": "nol", "Noel": "nol", "Chloé": "chloe",
		"D'Angelo O’Brien": "dangelo obrien", "Jean-Luc": "jean luc", "b.kueng@bank.example": "b kung bank example", "Île-de-France": "ile de france",
		"Ｆｕｌｌ": "full", "山田 太郎": "山 田 太 郎", "Ελλάς": "ελλασ", "ΕΛΛΆΣ": "ελλασ", "Иван Й": "иван и", "שלום": "שלום", "مرحبا": "مرحبا",
		"": "", " \x00\t--\u202e😀\xff ": "", "a\x00b": "a b", "ǅ": "dz",
	} {
		if got := strings.Join(types.Words(text), " "); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestSearchWords_JoinsNumbers(t *testing.T) {
	for text, want := range map[string][]string{
		"079 456 12 34": {"079 456 12 34", "794561234"}, "+41 (0)79 456": {"41 0 79 456", "4179456"}, "0041794561234": {"0041794561234", "41794561234"},
		"Küng 079 45": {"kung 079 45", "kung 7945"}, "0198f3c2-7a": {"0198f3c2 7a", "0198f3c27a"}, "Meier": {"meier"}, "000": {"000"}, "…": nil,
	} {
		var got []string
		for _, reading := range types.SearchWords(text) {
			got = append(got, strings.Join(reading, " "))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestPhoneWords_FindEachPart(t *testing.T) {
	words := types.PhoneWords("+41794561234")
	for _, part := range []string{"41794561234", "794561234", "4561234", "561234", "1234", "7945"} {
		if !slices.ContainsFunc(words, func(word string) bool { return strings.HasPrefix(word, part) }) {
			t.Errorf("%s does not begin one of %q", part, words)
		}
	}
	if got := types.PhoneWords(""); len(got) > 0 {
		t.Errorf("no number has the words %q", got)
	}
}

func TestSortKey_SortsByLanguage(t *testing.T) {
	want := []string{"", "Abegg", "Ächerli", "Aebi", "Alder", "Ångström", "de Meuron", "D'Eramo", "Élodie", "Elsener", "Müller", "Mueller", "Muller", "Zahnd", "Zürcher"}
	slices.SortStableFunc(want, func(a, b string) int { return strings.Compare(types.SortKey(a), types.SortKey(b)) })
	got := strings.Join(want, " ")
	if got != " Abegg Ächerli Aebi Alder Ångström de Meuron D'Eramo Élodie Elsener Mueller Muller Müller Zahnd Zürcher" {
		t.Errorf("got %s", got)
	}
	for _, pair := range [][2]string{{"Strasse", "Straße"}, {"Weiss", "Weiß"}, {"E", "É"}, {"a", "Ä"}} {
		a, b := types.SortKey(pair[0]), types.SortKey(pair[1])
		if a[:strings.IndexByte(a, 1)] != b[:strings.IndexByte(b, 1)] || a == b {
			t.Errorf("%q: keys %q and %q", pair, a, b)
		}
	}
}

// A word of a text must be found by each of its beginnings, except for one that ends within an umlaut of two letters.
// An id is found by each of its beginnings, also by one that ends between the letters of what could be an umlaut.
func TestSearchWords_FindIDsByTheirBeginnings(t *testing.T) {
	for _, id := range []string{"01a216e7-2b04-7142-969a-e666aeaee0ae", "aeae16e7-2b04-7ae2-969a-aeeeaeeeaeae"} {
		for _, written := range []string{id, strings.ToUpper(id), strings.ReplaceAll(id, "-", "")} {
			for end := 4; end <= len(written); end++ {
				found := slices.ContainsFunc(types.SearchWords(written[:end]), func(words []string) bool {
					return len(words) == 1 && strings.HasPrefix(types.IDWords(id)[0], words[0])
				})
				if strings.ContainsAny(written[:end], "0123456789") && !found {
					t.Errorf("%s: %q", written[:end], types.SearchWords(written[:end]))
				}
			}
		}
	}
}

func FuzzSearchWords(f *testing.F) {
	for _, text := range []string{"Müller Bauer", "O'Brien-Küng", "a\x00\"*( NEAR AND", "079 123", "\u202eabc", "山田太郎", "ﬁn ǆ ẞ", "aeaeaeue"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, reading := range types.SearchWords(text) {
			for _, word := range reading {
				if word == "" || strings.ContainsAny(word, " \"*()':\x00") || len([]rune(word)) > 40 {
					t.Errorf("%q has the word %q", text, word)
				}
				if again := types.Words(word); len(again) != 1 {
					t.Errorf("%q of %q has the words %q", word, text, again)
				}
			}
		}
		types.SortKey(text)
	})
}
