// Package locales holds all texts of the API in English, German, French and Italian, and selects the language
// of a request. The files are locales/<language>/<module>.json: flat objects from key to text, with placeholders such
// as {{.Max}}.
package locales

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"sync"

	"github.com/nicksnyder/go-i18n/v2/i18n"
	"golang.org/x/text/language"
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
	localizers map[string]func() (*i18n.Localizer, error)
}

// Lazy returns a bundle that reads a language at its first use, which takes about a millisecond, so that the program starts
// without them. The files are embedded, and tests call [Load], which reports invalid ones.
func Lazy() *Bundle {
	b := &Bundle{localizers: map[string]func() (*i18n.Localizer, error){}}
	for _, lang := range languages {
		b.localizers[lang] = sync.OnceValues(func() (*i18n.Localizer, error) { return read(lang) })
	}
	return b
}

// Load reads all languages. An error means that a file is invalid.
func Load() (*Bundle, error) {
	b := Lazy()
	for _, lang := range languages {
		if _, err := b.localizers[lang](); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// read parses the files of a language.
func read(lang string) (*i18n.Localizer, error) {
	bundle := i18n.NewBundle(language.Make(lang))
	names, err := fs.Glob(files, lang+"/*.json")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		data, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		// The library takes the language from a name such as "kernel.en.json".
		alias := path.Base(name[:len(name)-len(".json")]) + "." + lang + ".json"
		if _, err := bundle.ParseMessageFileBytes(data, alias); err != nil {
			return nil, fmt.Errorf("locale file %s: %w", name, err)
		}
	}
	return i18n.NewLocalizer(bundle, lang), nil
}

// localizer returns the texts of a language, or nil if there are none.
func (b *Bundle) localizer(lang string) *i18n.Localizer {
	get := b.localizers[lang]
	if get == nil {
		return nil
	}
	localizer, _ := get() // nil with an error
	return localizer
}

// Lookup returns the text of a key with its placeholders filled. ok is false if the language lacks the key or the
// placeholders do not match.
func (b *Bundle) Lookup(lang, key string, args map[string]any) (text string, ok bool) {
	if key == "" {
		return "", false
	}
	localizer := b.localizer(lang)
	if localizer == nil {
		return "", false
	}
	text, err := localizer.Localize(&i18n.LocalizeConfig{MessageID: key, TemplateData: args})
	return text, err == nil
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
	_, err := b.localizer(lang).Localize(&i18n.LocalizeConfig{MessageID: key})
	_, missing := errors.AsType[*i18n.MessageNotFoundErr](err)
	return !missing
}
