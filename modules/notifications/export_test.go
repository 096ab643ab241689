package notifications

import (
	"time"

	"kontor/locales"
	"kontor/modules/notice"
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
func Channels() map[notice.Event][]string {
	channels := map[notice.Event][]string{}
	for event, k := range kinds {
		channels[event] = k.channels
	}
	return channels
}

// Word words a mail about a customer.
func Word(lang string, event notice.Event, baseURL string, args map[string]any) (subject, text, html string) {
	texts, err := locales.Load()
	if err != nil {
		return "", "", ""
	}
	s := &Service{texts: texts, words: words{texts}, options: Options{BaseURL: baseURL}}
	m := s.message(lang, Email, source{event: string(event), recType: access.Customers.Name, recID: store.NewID(), args: args})
	return m.subject, m.text, m.html
}
