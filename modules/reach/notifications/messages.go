package notifications

import (
	"context"
	"fmt"
	"html"
	"maps"
	"strings"
	"time"
	"unicode"

	"github.com/go-json-experiment/json"

	"kontor/modules/kit/event"
	"kontor/modules/kit/types"
	"kontor/modules/reach/deliveries"
	"kontor/store"
)

// Texts returns the texts of the locale files.
type Texts interface {
	// Text returns a text with its arguments, in English if the language lacks it, and the key if there is none.
	Text(lang, key string, args map[string]any) string
	// Lookup returns a text with its arguments; ok is false if the language lacks it.
	Lookup(lang, key string, args map[string]any) (text string, ok bool)
}

// bankTexts are texts that name the bank: they have the argument Bank.
type bankTexts struct {
	Texts
	name string
}

// Text is that of Texts.
func (t bankTexts) Text(lang, key string, args map[string]any) string {
	return t.Texts.Text(lang, key, t.with(key, args))
}

// Lookup is that of Texts.
func (t bankTexts) Lookup(lang, key string, args map[string]any) (text string, ok bool) {
	return t.Texts.Lookup(lang, key, t.with(key, args))
}

// with returns the arguments of a key with the name of the bank.
func (t bankTexts) with(key string, args map[string]any) map[string]any {
	all := map[string]any{"Bank": t.name}
	if strings.HasSuffix(key, ".html") {
		all["Bank"] = html.EscapeString(t.name)
	}
	maps.Copy(all, args)
	return all
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
	if channel != deliveries.Email {
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

// messageKey identifies the messages of an event that are the same for many recipients.
type messageKey struct{ lang, channel string }

// Prerender renders the messages of an event before its transaction, in the languages that the recipients have now. Notify
// renders those that are missing because a recipient has just changed their language. Recipients and Args must not change
// afterwards.
func (s *Service) Prerender(ctx context.Context, e event.Event) event.Event {
	e.Rendered = s.renderMessages(ctx, parentOf(e), recipientsOf(ctx, e))
	return e
}

// renderMessages renders the messages of an event. If the addresses cannot be read, Notify renders all of them.
func (s *Service) renderMessages(ctx context.Context, parent parentEvent, recipients []string) map[messageKey]*message {
	if len(parent.channels) == 0 || len(recipients) == 0 {
		return nil
	}
	addresses, err := s.addresses(ctx, s.db, unique(recipients), parent.channels, parent.everywhere)
	if err != nil {
		return nil
	}
	rendered := map[messageKey]*message{}
	for _, a := range addresses {
		key := messageKey{a.Language, a.Channel}
		if _, known := rendered[key]; !known {
			rendered[key] = s.message(a.Language, a.Channel, parent)
		}
	}
	return rendered
}

// enqueueAll writes the deliveries of an event to the outbox, each in the language of its recipient, and with the id of the recipient's
// notification. It omits channels for which the event has no template.
func (s *Service) enqueueAll(ctx context.Context, tx *store.Tx, parent parentEvent, copies []recipientCopy) error {
	if len(parent.channels) == 0 {
		return nil
	}
	recipients, ids := make([]string, len(copies)), make(map[string]*string, len(copies))
	for i := range copies {
		recipients[i], ids[copies[i].userID] = copies[i].userID, &copies[i].id
	}
	addresses, err := s.addresses(ctx, tx, recipients, parent.channels, parent.everywhere)
	if err != nil {
		return err
	}
	rendered := maps.Clone(parent.rendered)
	if rendered == nil {
		rendered = map[messageKey]*message{}
	}
	messages := make([]deliveries.Delivery, 0, len(addresses))
	for _, a := range addresses {
		if parent.undo != "" && a.OnTrial {
			continue // the link is for those who had the account before
		}
		key := messageKey{a.Language, a.Channel}
		m, known := rendered[key]
		if !known {
			s.db.Heavy("template")
			m = s.message(a.Language, a.Channel, parent)
			rendered[key] = m
		}
		if m == nil {
			continue
		}
		messages = append(messages, deliveries.Delivery{NotificationID: ids[a.UserID], UserID: a.UserID, Channel: a.Channel, Recipient: a.Value,
			Subject: m.subject, Text: m.text, HTML: m.html, Secret: parent.undo != ""})
	}
	return s.deliveries.Enqueue(ctx, tx, messages)
}

// addresses returns the addresses of the active users for the channels: the first of each user and channel, or all.
func (s *Service) addresses(ctx context.Context, q store.Querier, userIDs, channels []string, all bool) ([]types.Address, error) {
	if s.Peers.Directory == nil || len(userIDs) == 0 {
		return nil, nil
	}
	known, err := s.Peers.Directory.Addresses(ctx, q, userIDs...)
	if err != nil {
		return nil, fmt.Errorf("read addresses: %w", err)
	}
	wanted := map[string]bool{}
	for _, channel := range channels {
		wanted[channel] = true
	}
	type reached struct{ userID, channel string }
	seen := map[reached]bool{}
	found := known[:0]
	for _, a := range known {
		if key := (reached{a.UserID, a.Channel}); wanted[a.Channel] && (all || !seen[key]) {
			seen[key] = true
			found = append(found, a)
		}
	}
	return found, nil
}

const (
	invitation    = "invitation" // the purpose of a message with a link instead of a code
	minutesPerDay = 24 * 60
)

// PrepareOTP renders a message and returns the function that writes it to the outbox.
func (s *Service) PrepareOTP(m event.OTPMessage) func(ctx context.Context, tx *store.Tx) error {
	key := "notification." + string(event.CredentialOTP) + "." + m.Channel + "." + m.Purpose + "."
	args := map[string]any{"Code": m.Code, "Minutes": m.Minutes, "Link": s.options.BaseURL + m.Path}
	if m.Purpose == invitation {
		// The token is in the fragment, which browsers do not send: it is in no log.
		args = map[string]any{"Link": s.options.BaseURL + "/invitation#" + m.Code, "Days": max(1, m.Minutes/minutesPerDay)}
	}
	d := deliveries.Delivery{
		UserID: m.UserID, Channel: m.Channel, Recipient: m.Recipient, Secret: true,
		Text: s.texts.Text(m.Language, key+"text", args),
	}
	if m.Channel == deliveries.Email {
		d.Subject = s.texts.Text(m.Language, key+"subject", args)
		d.HTML = s.texts.Text(m.Language, key+"html", args)
	}
	return s.deliveries.Prepare(d)
}
