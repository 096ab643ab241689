package notifications

import (
	"maps"
	"strings"
	"time"
)

// Texts gives the texts of the locale files.
type Texts interface {
	// Text gives a text with its values, in English where the language lacks it, and the key where there is none.
	Text(lang, key string, args map[string]any) string
	// Lookup gives a text with its values; ok is false where the language lacks it.
	Lookup(lang, key string, args map[string]any) (text string, ok bool)
}

// missingValue is what a template writes for a value that it was not given.
const missingValue = "<no value>"

// words puts events into words.
type words struct{ texts Texts }

// template gives one part of what an event says on a channel. It does not resolve where there is no such template, or
// where the values lack one that it names.
func (w words) template(lang, event, part string, args map[string]any) (string, bool) {
	text, ok := w.texts.Lookup(lang, "notification."+event+"."+part, args)
	return text, ok && !strings.Contains(text, missingValue)
}

// key gives the text of a translation key, and the key itself where there is none.
func (w words) key(lang, key string) string {
	if text, ok := w.texts.Lookup(lang, key, nil); ok && !strings.Contains(text, missingValue) {
		return text
	}
	return key
}

// termArgs are the values that are words of ours, with texts of their own.
var termArgs = []string{"From", "To", "Status", "Document", "Category"}

// dateLayouts are how a day is written, and a moment.
var dateLayouts = map[string]struct{ day, moment string }{
	"en": {"2 January 2006", "2 January 2006, 15:04 MST"},
	"de": {"02.01.2006", "02.01.2006, 15:04 MST"},
	"fr": {"02.01.2006", "02.01.2006, 15:04 MST"},
	"it": {"02.01.2006", "02.01.2006, 15:04 MST"},
}

// localized gives the values of a template as the language writes them: states and the like in words, days and moments
// in the order of the place.
func (w words) localized(lang string, args map[string]any) map[string]any {
	if len(args) == 0 {
		return args
	}
	local := maps.Clone(args)
	for _, name := range termArgs {
		if term, ok := local[name].(string); ok {
			if text, ok := w.texts.Lookup(lang, "notification.term."+term, nil); ok {
				local[name] = text
			}
		}
	}
	if text, ok := local["Date"].(string); ok {
		if day, err := time.Parse(time.DateOnly, text); err == nil {
			local["Date"] = day.Format(dateLayouts[lang].day)
		}
	}
	if text, ok := local["Time"].(string); ok {
		if moment, err := time.Parse(time.RFC3339, text); err == nil {
			local["Time"] = moment.UTC().Format(dateLayouts[lang].moment)
		}
	}
	return local
}
