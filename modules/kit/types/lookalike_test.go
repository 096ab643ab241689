package types_test

import (
	"testing"

	"kontor/modules/kit/types"
)

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
