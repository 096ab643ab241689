package list

import (
	"strings"
	"testing"

	"kontor/server/apierr"
)

func TestSplitValues_FollowsTheQuotingRule(t *testing.T) {
	for text, want := range map[string]string{
		`a`: `a`, `a,b`: `a|b`, ` a , b `: `a|b`, ``: ``, `,`: `|`, `a,`: `a|`,
		`"Muster, Anna"`: `"Muster, Anna`, `"Muster, Anna",b`: `"Muster, Anna|b`, ` "a" , " b "`: `"a|" b `,
		`"say ""hi"""`: `"say "hi"`, `""`: `"`, `"",a`: `"|a`, `"null",null`: `"null|null`,
		`"a`: `"a`, `a"b"`: `a"b"`, `"a"b`: `"a"b`, `"a,b`: `"a|b`,
	} {
		var got []string
		for _, v := range splitValues(text) {
			if v.quoted {
				v.text = `"` + v.text
			}
			got = append(got, v.text)
		}
		if joined := strings.Join(got, "|"); joined != want {
			t.Errorf("%q: got %s, want %s", text, joined, want)
		}
	}
}

func TestParseSearch_SeparatesNullAndEmpty(t *testing.T) {
	for _, c := range []struct {
		given  []string
		values string
		n      int
		null   bool
	}{
		{[]string{""}, "", 1, false}, {[]string{","}, "", 1, false}, {[]string{"null"}, "", 0, true}, {[]string{"null,a"}, "a", 1, true},
		{[]string{`"null"`}, "null", 1, false}, {[]string{`a,""`}, "a|", 2, false}, {[]string{"a,"}, "a", 1, false}, {[]string{"null", `""`}, "", 1, true},
	} {
		var problems apierr.Fields
		s := parseSearch("x", c.given, &problems)
		if strings.Join(s.values, "|") != c.values || len(s.values) != c.n || s.null != c.null || !problems.Empty() {
			t.Errorf("%q: got %q and %v", c.given, s.values, s.null)
		}
	}
}

// Every text can be searched in quotation marks, and no text makes a value disappear.
func FuzzSplitValues(f *testing.F) {
	for _, seed := range []string{`a,b`, `"a, b"`, `""""`, `"`, ` "x" y`, `,"",`, "\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		quoted := `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
		if got := splitValues(quoted + "," + quoted); len(got) != 2 || got[0].text != text || got[1].text != text {
			t.Errorf("%q: got %v", quoted, got)
		}
		if got := splitValues(text); len(got) == 0 || len(got) > strings.Count(text, ",")+1 {
			t.Errorf("%q: got %v", text, got)
		}
	})
}
