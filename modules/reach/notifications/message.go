package notifications

import (
	"html"
	"maps"
	"strings"
	"unicode"
)

// message is an e-mail or SMS.
type message struct{ subject, text, html string }

// message renders an event for a channel. It returns nil if the event has no template for the channel.
func (s *Service) message(lang, channel string, parent parentEvent) *message {
	args := maps.Clone(s.templates.localized(lang, parent.args))
	if args == nil {
		args = map[string]any{}
	}
	args["Link"] = s.options.BaseURL + linkPath(parent.recType, parent.recID, parent.customerID)
	part := channel
	if parent.undo != "" {
		args["Undo"], part = s.options.BaseURL+parent.undo, "undo."+channel
	}
	var m message
	var ok bool
	if m.text, ok = s.templates.render(lang, parent.event, part+".text", args); !ok {
		return nil
	}
	if channel != Email {
		return &m
	}
	if m.subject, ok = s.templates.render(lang, parent.event, "email.subject", args); !ok {
		return nil
	}
	m.subject = oneLine(m.subject)
	m.html, _ = s.templates.render(lang, parent.event, part+".html", escaped(args)) // optional
	return &m
}

// oneLine replaces control characters, so that a value cannot start another header.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

// escaped returns the arguments of a template with their texts escaped for HTML.
func escaped(args map[string]any) map[string]any {
	safe := maps.Clone(args)
	for name, value := range safe {
		if text, ok := value.(string); ok {
			safe[name] = html.EscapeString(text)
		}
	}
	return safe
}
