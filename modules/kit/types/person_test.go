package types_test

import (
	"strings"
	"testing"

	"kontor/modules/kit/types"
)

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
