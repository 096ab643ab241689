package notifications

import (
	"html"
	"maps"
	"strings"
	"unicode"
)

// message is what goes out by e-mail or SMS.
type message struct{ subject, text, html string }

// message words an event for a channel, or gives nil where the event has no template for it.
func (s *Service) message(lang, channel string, src source) *message {
	args := maps.Clone(s.words.localized(lang, src.args))
	if args == nil {
		args = map[string]any{}
	}
	args["Link"] = s.options.BaseURL + linkPath(src.recType, src.recID, src.customerID)
	var m message
	var ok bool
	if m.text, ok = s.words.template(lang, src.event, channel+".text", args); !ok {
		return nil
	}
	if channel != Email {
		return &m
	}
	if m.subject, ok = s.words.template(lang, src.event, "email.subject", args); !ok {
		return nil
	}
	m.subject = oneLine(m.subject)
	m.html, _ = s.words.template(lang, src.event, "email.html", escaped(args)) // a mail may do without
	return &m
}

// oneLine keeps a value from starting another header.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

// escaped makes the values of a template safe within HTML.
func escaped(args map[string]any) map[string]any {
	safe := maps.Clone(args)
	for name, value := range safe {
		if text, ok := value.(string); ok {
			safe[name] = html.EscapeString(text)
		}
	}
	return safe
}
