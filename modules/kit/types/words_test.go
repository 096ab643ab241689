package types_test

import (
	"slices"
	"strings"
	"testing"

	"kontor/modules/kit/types"
)

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
