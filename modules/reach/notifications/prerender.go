package notifications

import (
	"context"

	"kontor/modules/kit/event"
)

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
