package directory

import (
	"strings"
	"testing"
	"unicode/utf8"

	"kontor/modules/kit/types"
)

func TestNewCode_IsUniformAndKeepsLeadingZeros(t *testing.T) {
	const draws = 20_000
	var first [10]int
	for range draws {
		code := newCode()
		if len(code) != 6 || strings.Trim(code, "0123456789") != "" {
			t.Fatalf("got %q", code)
		}
		first[code[0]-'0']++
	}
	for digit, n := range first {
		if n < draws/10*8/10 || n > draws/10*12/10 { // more than nine standard deviations away
			t.Errorf("%d begins %d codes of %d", digit, n, draws)
		}
	}
}

func FuzzParseCode(f *testing.F) {
	for _, seed := range []string{"123456", " 123 456 ", "123-456", "000000", "12345", "１２３４５６", "", "\x00", "1e5", "+12345", "12345\u00a06"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		code, ok := parseCode(text)
		if !ok {
			return
		}
		if len(code) != otpDigits || strings.Trim(code, "0123456789") != "" {
			t.Fatalf("%q became %q", text, code)
		}
		if again, ok := parseCode(code); !ok || again != code {
			t.Fatalf("%q is read as %q", code, again)
		}
		if strings.Trim(text, "0123456789 -\t\u00a0\u202f") != "" {
			t.Fatalf("%q was accepted", text)
		}
	})
}

func FuzzLoginKey(f *testing.F) {
	for _, seed := range []string{"Anna@Bank.Example", "+41 44 668 18 00", "anna.muster", "", "a@b", "0446681800", "\xff", "anna@münchen.example"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		key := LoginKey(text)
		for _, kind := range []string{Email, Phone, Username} {
			id, err := parseIdentifier(kind, text)
			if err != nil {
				continue
			}
			if id.key != key {
				t.Fatalf("%q: the key is %q for the %s and %q at sign-in", text, id.key, kind, key)
			}
			if LoginKey(id.value) != key || !utf8.ValidString(id.value) || types.IsID(key) {
				t.Fatalf("%q is stored as %q with key %q", text, id.value, key)
			}
		}
	})
}
