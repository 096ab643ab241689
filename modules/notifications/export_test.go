package notifications

import (
	"time"

	"kontor/locales"
	"kontor/modules/kit/event"
	"kontor/modules/kit/list"
	"kontor/server/access"
	"kontor/store"
)

// Nudge wakes the queues, for tests whose clock jumps.
func (s *Service) Nudge() { s.nudge() }

// Pause is the pause after the n-th failed attempt.
func (s *Service) Pause(channel string, n int) time.Duration { return s.queues[channel].pause(n) }

// Connected lists who has a stream open.
func (s *Service) Connected() []string { return s.hub.Users() }

// Channels gives the channels of each event beside the inbox.
func Channels() map[event.Kind][]string {
	channels := map[event.Kind][]string{}
	for event, k := range kinds {
		channels[event] = k.channels
	}
	return channels
}

// Word words a mail about a customer.
func Word(lang string, event event.Kind, baseURL string, args map[string]any) (subject, text, html string) {
	texts, err := locales.Load()
	if err != nil {
		return "", "", ""
	}
	s := &Service{texts: texts, words: words{texts}, options: Options{BaseURL: baseURL}}
	m := s.message(lang, Email, source{event: string(event), recType: access.Customers.Name, recID: store.NewID(), args: args})
	return m.subject, m.text, m.html
}

// Visible is the condition of a caller's list.
func Visible(caller *access.Caller) list.Where { return table.Visible(caller) }

// Statements gives the statements that are run often.
func Statements() map[string]string {
	return map[string]string{
		"unread": countUnread, "mark record": markRecordRead, "delete": deleteCopies, "latest of a user": selectLatestOf,
		"after": selectAfter, "unsent": selectUnsent, "due": selectDue, "waiting": countWaiting, "dead": countDead, "latest": selectLatest,
	}
}
