// Package locales holds all texts of the API in English, German, French and Italian, and selects the language
// of a request. The files are locales/<language>/<module>.json: flat objects from key to text, with placeholders such
// as {{.Max}}.
package locales

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"sync"
)

//go:embed */*.json
var files embed.FS

// Default is the language for requests that name no supported language.
const Default = "en"

var languages = []string{"en", "de", "fr", "it"}

// Languages lists the languages, the default first.
func Languages() []string { return slices.Clone(languages) }

// Known reports whether texts exist in the language.
func Known(lang string) bool { return slices.Contains(languages, lang) }

// Bundle holds the texts by language and key.
type Bundle struct {
	texts map[string]func() (map[string]text, error)
}

// Lazy returns a bundle that reads a language at its first use, which takes about a millisecond, so that the program starts
// without them. The files are embedded, and tests call [Load], which reports invalid ones.
func Lazy() *Bundle {
	b := &Bundle{texts: map[string]func() (map[string]text, error){}}
	for _, lang := range languages {
		b.texts[lang] = sync.OnceValues(func() (map[string]text, error) { return read(lang) })
	}
	return b
}

// Load reads all languages. An error means that a file is invalid.
func Load() (*Bundle, error) {
	b := Lazy()
	for _, lang := range languages {
		if _, err := b.texts[lang](); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// read parses the files of a language.
func read(lang string) (map[string]text, error) {
	names, err := fs.Glob(files, lang+"/*.json")
	if err != nil {
		return nil, err
	}
	texts := map[string]text{}
	for _, name := range names {
		data, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		if err := add(texts, data); err != nil {
			return nil, fmt.Errorf("locale file %s: %w", name, err)
		}
	}
	return texts, nil
}

// add parses one file.
func add(texts map[string]text, data []byte) error {
	var file map[string]string
	if err := json.Unmarshal(data, &file); err != nil {
		return err
	}
	for key, source := range file {
		if _, exists := texts[key]; exists {
			return fmt.Errorf("another file has %s, too", key)
		}
		parsed, err := parse(source)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		texts[key] = parsed
	}
	return nil
}

// find returns the text of a key. ok is false if the language or the key is unknown.
func (b *Bundle) find(lang, key string) (t text, ok bool) {
	get := b.texts[lang]
	if get == nil {
		return t, false
	}
	texts, _ := get() // nil with an error
	t, ok = texts[key]
	return t, ok
}

// Lookup returns the text of a key with its placeholders filled. ok is false if the language lacks the key, or args a
// placeholder.
func (b *Bundle) Lookup(lang, key string, args map[string]any) (text string, ok bool) {
	t, ok := b.find(lang, key)
	if !ok {
		return "", false
	}
	return t.fill(args)
}

// Text returns the text of a key. It falls back to English, then to the key itself.
func (b *Bundle) Text(lang, key string, args map[string]any) string {
	if text, ok := b.Lookup(lang, key, args); ok {
		return text
	}
	if text, ok := b.Lookup(Default, key, args); ok {
		return text
	}
	return key
}

// Files returns the embedded files, for tests that compare them.
func Files() fs.FS { return files }

// Has reports whether the language has the key, whatever its placeholders.
func (b *Bundle) Has(lang, key string) bool {
	_, ok := b.find(lang, key)
	return ok
}
