package latin_test

import (
	"slices"
	"testing"

	"kontor/modules/kit/names/latin"
)

func TestWords(t *testing.T) {
	for text, want := range map[string][][]string{
		"Anna-1":     {{"anna1"}},
		"…":          nil,
		"":           nil,
		"Фёдор":      {{"fiodor", "fedor"}},
		"김민수":        {{"gim", "kim"}, {"min"}, {"su"}},
		"අනුර":       {{"anur"}},
		"မြင့်":      {{"myin", "myint"}},
		"ไทย":        {{"thaiy"}},
		"ሰላም":        {{"selam"}},
		"\u0e4c":     nil,
		"ท์":         nil,
		"က္":         {{"ka"}},
		"Ⅷ":          {{"viii"}},
		"ЅМІТН":      {{"smith"}},
		"ქართველი":   {{"kartveli"}},
		"नमूना":      {{"nmuunaa"}},
		"Müller":     {{"muller", "mueller"}},
		"الأسد":      {{"asd"}},
		"ｆｕｌｌ":       {{"full"}},
		"\u2800x":    {{"x"}},
		"\U0010FFFF": nil,
	} {
		got := latin.Words(text, true)
		if len(got) != len(want) {
			t.Errorf("%q: %d words %+v, want %d", text, len(got), got, len(want))
			continue
		}
		for i, w := range got {
			for _, reading := range want[i] {
				if !slices.Contains(w.Readings, reading) {
					t.Errorf("%q is read %q, which lacks %q", text, w.Readings, reading)
				}
			}
		}
	}
}

// FuzzWords reads arbitrary texts: a word has readings of lower-case ASCII letters and digits, each once.
func FuzzWords(f *testing.F) {
	for _, seed := range []string{"Anna", "Фёдор", "김민수", "အောင်ဆန်းစုကြည်", "ประยุทธ์", "เ", "ኃይለማርያም", "加藤", "加藤サクラ", "ЅМІТНx", "عبدالعزيز", "ال", "אסתר", "\xff", "က္က", "์", "\u0e4d\u0e32"} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	f.Fuzz(func(t *testing.T, text string, chinese bool) {
		latin.Chinese([]string{text, text})
		latin.Mixed(text)
		for _, w := range latin.Words(text, chinese) {
			if len(w.Readings) == 0 {
				t.Errorf("%q: %+v has no reading", text, w)
			}
			for _, r := range w.Readings {
				for _, c := range []byte(r) {
					if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
						t.Errorf("%q is read %q", text, r)
					}
				}
				if r == "" {
					t.Errorf("%q has an empty reading", text)
				}
			}
		}
	})
}
