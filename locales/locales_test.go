package locales_test

import (
	"encoding/json"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kontor/locales"
)

func TestFiles_HaveTheSameKeysAndPlaceholdersInEveryLanguage(t *testing.T) {
	names, err := fs.Glob(locales.Files(), locales.Default+"/*.json")
	if err != nil || len(names) == 0 {
		t.Fatalf("found %d files: %v", len(names), err)
	}
	for _, name := range names {
		want := read(t, name)
		for _, lang := range locales.Languages()[1:] {
			got := read(t, lang+"/"+path.Base(name))
			for key, text := range want {
				translated, ok := got[key]
				switch {
				case !ok:
					t.Errorf("%s lacks %s", lang+"/"+path.Base(name), key)
				case strings.TrimSpace(translated) == "":
					t.Errorf("%s: %s is empty", lang, key)
				case !slices.Equal(placeholders(text), placeholders(translated)):
					t.Errorf("%s: %s has placeholders %v, English has %v", lang, key, placeholders(translated), placeholders(text))
				}
			}
			for key := range got {
				if _, ok := want[key]; !ok {
					t.Errorf("%s has %s, which English lacks", lang+"/"+path.Base(name), key)
				}
			}
		}
	}
}

func TestFiles_StandInEveryLanguage(t *testing.T) {
	english, _ := fs.Glob(locales.Files(), "en/*.json")
	for _, lang := range locales.Languages()[1:] {
		if files, _ := fs.Glob(locales.Files(), lang+"/*.json"); len(files) != len(english) {
			t.Errorf("%s has %d files, English has %d", lang, len(files), len(english))
		}
	}
}

func TestFiles_UseSwissOrthography(t *testing.T) {
	names, _ := fs.Glob(locales.Files(), "de/*.json")
	for _, name := range names {
		for key, text := range read(t, name) {
			if strings.Contains(text, "ß") {
				t.Errorf("%s: %s has an ß", name, key)
			}
		}
	}
}

// French has a narrow no-break space inside of quotation marks and before high punctuation. Text messages have not: they would be
// sent in more parts.
func TestFiles_UseFrenchTypography(t *testing.T) {
	bad := regexp.MustCompile(`«[^\x{202f}]|[^\x{202f}]»|[ \x{a0}][;?!]|\pL[:;?!](?:$|[ \n<])`)
	names, _ := fs.Glob(locales.Files(), "fr/*.json")
	for _, name := range names {
		for key, text := range read(t, name) {
			if found := bad.FindString(text); found != "" && !strings.Contains(key, ".sms.") {
				t.Errorf("%s: %s has %q: use a narrow no-break space (U+202F)", name, key, found)
			}
		}
	}
}

func TestText_FallsBackToEnglishAndThenToTheKey(t *testing.T) {
	bundle, err := locales.Load()
	if err != nil {
		t.Fatal(err)
	}
	if got := bundle.Text("de", "invalid.max_length", map[string]any{"Max": 100}); got != "Höchstens 100 Zeichen sind erlaubt." {
		t.Errorf("German: got %q", got)
	}
	if got := bundle.Text("xx", "invalid.required", nil); got != "This field is required." {
		t.Errorf("unknown language: got %q", got)
	}
	if got := bundle.Text("fr", "no.such.key", nil); got != "no.such.key" {
		t.Errorf("unknown key: got %q", got)
	}
}

func TestLoad_CountsReadRightWithAnyNumber(t *testing.T) {
	b, err := locales.Load()
	if err != nil {
		t.Fatal(err)
	}
	for lang, want := range map[string]string{
		"en": "The number of entries must be at least 1.",
		"de": "Die Anzahl der Einträge muss mindestens 1 betragen.",
		"fr": "Le nombre d’entrées doit être d’au moins 1.",
		"it": "Il numero di voci deve essere almeno 1.",
	} {
		if got := b.Text(lang, "invalid.min_items", map[string]any{"Min": 1}); got != want {
			t.Errorf("%s: got %q, want %q", lang, got, want)
		}
	}
}

func TestMatch(t *testing.T) {
	for header, want := range map[string]string{
		"":                                "en",
		"de":                              "de",
		"de-CH":                           "de",
		"DE-at;q=0.8":                     "de",
		"fr-CH, de;q=0.9":                 "fr",
		"de;q=0.5, fr;q=0.9, en;q=0.1":    "fr",
		"it;q=0, de;q=0.1":                "de",
		"de;q=0":                          "en",
		"es, ja;q=0.9, it;q=0.1":          "it",
		"es, pt":                          "en",
		"*":                               "en",
		"*;q=0.5, it;q=0.2":               "en",
		"it;q=0.2, *;q=0.1":               "it",
		"*, fr":                           "fr",
		"en;q=0, *":                       "de",
		"en;q=0.1, *;q=0.5":               "de",
		"en;q=0, *;q=0":                   "en",
		"es, *;q=0.5, fr;q=0.9":           "fr",
		"gsw":                             "de",
		"nonsense header \x00, fr":        "fr",
		"de;q=abc, it":                    "it",
		strings.Repeat("xx,", 500) + "de": "en",
	} {
		if got := locales.Match(header); got != want {
			t.Errorf("Match(%.40q) = %s, want %s", header, got, want)
		}
	}
}

func FuzzMatch(f *testing.F) {
	for _, header := range []string{"de-CH, fr;q=0.8", "*;q=0", ",,,;;;===", strings.Repeat("a-", 200), "en-u-ca-buddhist;q=1.0000"} {
		f.Add(header)
	}
	f.Fuzz(func(t *testing.T, header string) {
		if got := locales.Match(header); !locales.Known(got) {
			t.Errorf("Match(%q) = %q, which is not supported", header, got)
		}
	})
}

var placeholder = regexp.MustCompile(`\{\{\s*\.(\w+)\s*\}\}`)

func placeholders(text string) []string {
	var names []string
	for _, match := range placeholder.FindAllStringSubmatch(text, -1) {
		names = append(names, match[1])
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func read(t *testing.T, name string) map[string]string {
	t.Helper()
	data, err := fs.ReadFile(locales.Files(), name)
	if err != nil {
		t.Errorf("file %s is missing", name)
		return nil
	}
	var texts map[string]string
	if err := json.Unmarshal(data, &texts); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return texts
}
