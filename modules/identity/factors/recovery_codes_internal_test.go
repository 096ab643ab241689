package factors

import (
	"math"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestRecoveryCodes_AreLongReadableAndDifferent(t *testing.T) {
	if bits := codeLength * math.Log2(float64(len(codeAlphabet))); bits < 50 {
		t.Errorf("a code has %.0f bits, want at least 50", bits)
	}
	if strings.ContainsAny(codeAlphabet, "ILOU") || 256%len(codeAlphabet) != 0 {
		t.Errorf("the alphabet %s is hard to read or not used evenly", codeAlphabet)
	}
	seen := map[string]bool{}
	for range 200 {
		codes := newCodes()
		if len(codes) != 10 {
			t.Fatalf("%d codes, want 10", len(codes))
		}
		for _, shown := range codes {
			code, ok := parseCode(shown)
			if !ok || len(shown) != 14 || strings.ReplaceAll(shown, "-", "") != code || seen[code] {
				t.Fatalf("the code %q is read as %q, %t; seen %t", shown, code, ok, seen[code])
			}
			seen[code] = true
		}
	}
}

func TestRecoveryCodes_AreReadAsPeopleTypeThem(t *testing.T) {
	const want = "7K2M9QPT4XW0"
	for _, typed := range []string{
		"7K2M-9QPT-4XW0", "7k2m-9qpt-4xw0", "7K2M 9QPT 4XW0", " 7k2m9qpt4xwo ", "7K2M–9QPT—4XWO", "7K2M\u00a09QPT\t4XW0", "7-K-2-M-9-Q-P-T-4-X-W-0",
	} {
		if code, ok := parseCode(typed); !ok || code != want {
			t.Errorf("%q: got %q, %t, want %s", typed, code, ok, want)
		}
	}
	if code, ok := parseCode("ilIL-oOoO-0000"); !ok || code != "111100000000" {
		t.Errorf("letters that look like digits: got %q, %t", code, ok)
	}
	for _, typed := range []string{
		"", "7K2M-9QPT-4XW", "7K2M-9QPT-4XW00", "7K2M-9QPT-4XWU", "7K2M_9QPT_4XW0", "７K2M-9QPT-4XW0", "7K2M-9QPT-4XW\x00", "7K2M\n9QPT\n4XW0",
		strings.Repeat("-", 60) + "7K2M9QPT4XW0", "7K2M-9QPT-4XWß", "\xff\xfe", "ſK2M-9QPT-4XW0", "7\u212a2M-9QPT-4XW0",
	} {
		if code, ok := parseCode(typed); ok {
			t.Errorf("%q is read as %q", typed, code)
		}
	}
}

func FuzzParseCode(f *testing.F) {
	for _, seed := range []string{"7K2M-9QPT-4XW0", "ilIL-oOoO-0000", "", "\xff", "ſ", "\u212a", strings.Repeat("-", 70)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, typed string) {
		code, ok := parseCode(typed)
		if !ok {
			return
		}
		if len(code) != codeLength || strings.Trim(code, codeAlphabet) != "" {
			t.Errorf("%q is read as %q", typed, code)
		}
		if again, ok := parseCode(code); !ok || again != code {
			t.Errorf("%q is read as %q and that as %q, %t", typed, code, again, ok)
		}
		if !utf8.ValidString(typed) {
			t.Errorf("invalid text %q is read as %q", typed, code)
		}
	})
}

func FuzzParseTOTP(f *testing.F) {
	for _, seed := range []string{"287082", "287 082", "", "28708२", "\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, typed string) {
		if code := parseTOTP(typed); code != "" && (len(code) != totpDigits || strings.Trim(code, "0123456789") != "") {
			t.Errorf("%q is read as %q", typed, code)
		}
	})
}
