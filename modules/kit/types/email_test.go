package types_test

import (
	"net/mail"
	"strings"
	"testing"

	"kontor/modules/kit/types"
)

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
