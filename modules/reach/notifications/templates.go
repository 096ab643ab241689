package notifications

import (
	"maps"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// Texts returns the texts of the locale files.
type Texts interface {
	// Text returns a text with its arguments, in English if the language lacks it, and the key if there is none.
	Text(lang, key string, args map[string]any) string
	// Lookup returns a text with its arguments; ok is false if the language lacks it.
	Lookup(lang, key string, args map[string]any) (text string, ok bool)
}

// missingValue is what a template writes for an argument that it was not given.
const missingValue = "<no value>"

// templates renders the texts of events.
type templates struct{ texts Texts }

// render renders one part of the template of an event. ok is false if there is no template, or if an argument is missing.
func (t templates) render(lang, event, part string, args map[string]any) (text string, ok bool) {
	text, ok = t.texts.Lookup(lang, "notification."+event+"."+part, args)
	return text, ok && !strings.Contains(text, missingValue)
}

// byKey returns the text of a key, or the key if there is none.
func (t templates) byKey(lang, key string) string {
	if text, ok := t.texts.Lookup(lang, key, nil); ok && !strings.Contains(text, missingValue) {
		return text
	}
	return key
}

// renderListed renders a notification for lists and streams: by the template of its event, or by its keys if the template
// cannot be rendered.
func (t templates) renderListed(language string, n *Listed) {
	n.LinkURL = linkPath(n.RecType, n.RecID, n.CustomerID)
	args := map[string]any{}
	if err := json.Unmarshal([]byte(n.metadata), &args); err != nil {
		args = nil // written by Kontor; a damaged row is rendered by its keys
	}
	args = t.localized(language, args)
	title, ok := t.render(language, n.Event, "push.title", args)
	if !ok {
		title = t.byKey(language, n.titleKey)
	}
	content, ok := t.render(language, n.Event, "push.content", args)
	if !ok {
		content = n.Content
		if content == "" {
			content = t.byKey(language, n.contentKey)
		}
	}
	n.Title, n.Content = title, content
	if n.LinkURL != "" {
		n.LinkText, _ = t.render(language, n.Event, "push.link_text", args) // optional
	}
}

// renderByKeys renders a notification by its keys. A text that a person wrote stays.
func (t templates) renderByKeys(language string, n *Notification) {
	n.language = language
	n.Title = t.byKey(language, n.titleKey)
	if n.Content == "" {
		n.Content = t.byKey(language, n.contentKey)
	}
}

// termArgs are the arguments that are terms with texts of their own, such as states.
var termArgs = []string{"From", "To", "Status", "Document", "Category", "Change"}

// dateLayouts are the layouts of dates and times by language.
var dateLayouts = map[string]struct{ date, time string }{
	"en": {"2 January 2006", "2 January 2006, 15:04 MST"},
	"de": {"02.01.2006", "02.01.2006, 15:04 MST"},
	"fr": {"02.01.2006", "02.01.2006, 15:04 MST"},
	"it": {"02.01.2006", "02.01.2006, 15:04 MST"},
}

// localized returns the arguments of a template in a language: translated terms, dates and times in the local layout. Outcome
// says in a sentence what the new status of a verification means.
func (t templates) localized(lang string, args map[string]any) map[string]any {
	if len(args) == 0 {
		return args
	}
	local := maps.Clone(args)
	for _, name := range termArgs {
		if term, ok := local[name].(string); ok {
			if text, ok := t.texts.Lookup(lang, "notification.term."+term, nil); ok {
				local[name] = text
			}
		}
	}
	if to, ok := args["To"].(string); ok {
		if text, ok := t.texts.Lookup(lang, "notification.term.outcome_"+to, nil); ok {
			local["Outcome"] = text
		}
	}
	if text, ok := local["Date"].(string); ok {
		if date, err := time.Parse(time.DateOnly, text); err == nil {
			local["Date"] = date.Format(dateLayouts[lang].date)
		}
	}
	if text, ok := local["Time"].(string); ok {
		if at, err := time.Parse(time.RFC3339, text); err == nil {
			local["Time"] = at.UTC().Format(dateLayouts[lang].time)
		}
	}
	return local
}
