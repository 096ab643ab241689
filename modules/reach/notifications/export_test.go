package notifications

import (
	"kontor/locales"
	"kontor/modules/kit/event"
	"kontor/modules/kit/list"
	"kontor/modules/reach/deliveries"
	"kontor/server/access"
	"kontor/store"
)

// HoldFrames makes frames of other nodes wait until release is called.
func (s *Service) HoldFrames() (release func()) {
	s.feed.passing.Lock()
	return s.feed.passing.Unlock
}

// Connected returns the users with an open stream.
func (s *Service) Connected() []string { return s.streams.Users() }

// FlushSent records at once which notifications were written to streams.
func (s *Service) FlushSent() { s.sent.flush() }

// Channels returns the channels of each event beside the list.
func Channels() map[event.Kind][]string {
	channels := map[event.Kind][]string{}
	for event, k := range kinds {
		channels[event] = k.channels
	}
	return channels
}

// BankText returns a text of the module with the name of a bank.
func BankText(lang, key, bank string, args map[string]any) string {
	texts, err := locales.Load()
	if err != nil {
		return ""
	}
	return bankTexts{texts, bank}.Text(lang, key, args)
}

// RenderMail renders an e-mail about a customer.
func RenderMail(lang string, event event.Kind, baseURL string, args map[string]any) (subject, text, html string) {
	texts, err := locales.Load()
	if err != nil {
		return "", "", ""
	}
	s := &Service{texts: texts, templates: templates{texts}, options: Options{BaseURL: baseURL}}
	m := s.message(lang, deliveries.Email, parentEvent{event: string(event), recType: access.Customers.Name, recID: store.NewID(), args: args})
	return m.subject, m.text, m.html
}

// Visible returns the condition of a caller's list.
func Visible(caller *access.Caller) list.Where { return table.Visible(caller) }

// Statements returns the statements that run often.
func Statements() map[string]string {
	return map[string]string{
		"unread": countUnread, "since": selectSince, "since of users": selectSinceOf + "$4" + endSinceOf, "mark record": markRecordRead, "delete": deleteNotifications, "latest of a user": selectLatestOf,
		"after": selectAfter, "unsent": selectUnsent, "latest": selectLatest,
	}
}
