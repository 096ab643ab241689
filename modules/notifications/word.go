package notifications

import (
	"context"

	"kontor/modules/kit/event"
)

// wording names the messages that are the same for many recipients.
type wording struct{ lang, channel string }

// Word prepares a notice before the transaction that tells of it: it renders the messages in the languages that the
// recipients have now. What is missing then, because a recipient has just changed the language, is rendered in the
// transaction. Recipients and Args must not change after it.
func (s *Service) Word(ctx context.Context, n event.Event) event.Event {
	n.Worded = s.worded(ctx, sourceOf(n), n.Recipients)
	return n
}

// worded renders the messages of a notice. Addresses that cannot be read are left to the transaction.
func (s *Service) worded(ctx context.Context, src source, recipients []string) map[wording]*message {
	if len(src.channels) == 0 || len(recipients) == 0 {
		return nil
	}
	reached, err := addresses(ctx, s.db, unique(recipients), src.channels, src.everywhere)
	if err != nil {
		return nil
	}
	worded := map[wording]*message{}
	for _, a := range reached {
		key := wording{a.language, a.channel}
		if _, known := worded[key]; !known {
			worded[key] = s.message(a.language, a.channel, src)
		}
	}
	return worded
}
