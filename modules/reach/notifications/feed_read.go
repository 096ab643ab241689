package notifications

import (
	"context"
	"fmt"
	"slices"

	"kontor/modules/kit/event"
	"kontor/modules/kit/list"
	"kontor/server/sse"
	"kontor/store"
)

const (
	// feedPage is how many notifications one statement reads.
	feedPage = 256
	// feedUsers is the largest number of users whose notifications are read by their own index. For more, those of all users
	// are read by time.
	feedUsers = 64
)

const (
	selectSince = `
	SELECT ` + columns + `, notice_id FROM notifications
	WHERE deleted = FALSE AND (created_at, id) > ($1, $2)
	ORDER BY created_at, id
	LIMIT $3`

	// selectSinceOf is followed by the ids of users and endSinceOf.
	selectSinceOf = `
	SELECT ` + columns + `, notice_id FROM notifications
	WHERE deleted = FALSE AND (created_at, id) > ($1, $2) AND user_id IN (`

	endSinceOf = `)
	ORDER BY created_at, id
	LIMIT $3`
)

// storedCopy is a notification with the event that it belongs to.
type storedCopy struct {
	Listed
	noticeID string
}

func scanStored(row store.Scanner) (storedCopy, error) {
	var c storedCopy
	var err error
	c.Listed, err = scanListed(appended{row, []any{&c.noticeID}})
	return c, err
}

// publishStored passes stored notifications to the open streams of their recipients: those of the item's time or later. It
// returns the time up to which the streams have everything. Some notifications are passed on before their own announcement
// comes, which does no harm: events become visible in the order of their times.
func (s *Service) publishStored(ctx context.Context, item feedItem) (passed store.Time, err error) {
	users := s.hub.Users()
	if !item.all && !item.missed {
		users = s.connected(item.users)
	}
	passed = item.to
	from := sse.Position{At: int64(item.at)} // before all ids of that time
	for len(users) > 0 {
		page, err := s.storedSince(ctx, from, users)
		if err != nil {
			return passed, err
		}
		if err := s.publishPage(ctx, page); err != nil {
			return passed, err
		}
		if len(page) > 0 {
			last := page[len(page)-1]
			from = sse.Position{At: int64(*last.CreatedAt), ID: last.ID}
			if item.missed {
				passed = *last.CreatedAt
			}
		}
		if len(page) < feedPage {
			break
		}
	}
	return passed, nil
}

// connected returns those of the users who have a stream on this node.
func (s *Service) connected(users []string) []string {
	return slices.DeleteFunc(unique(users), func(user string) bool { return s.hub.Count(user) == 0 })
}

// storedSince reads notifications after a position, of the users or of all.
func (s *Service) storedSince(ctx context.Context, from sse.Position, users []string) ([]storedCopy, error) {
	statement, args := selectSince, []any{from.At, from.ID, feedPage}
	if len(users) <= feedUsers {
		statement = selectSinceOf + store.In(4, len(users)) + endSinceOf
		args = store.AppendIn(args, users)
	}
	copies, err := store.All(ctx, s.db, scanStored, statement, args...)
	if err != nil {
		return nil, fmt.Errorf("read notifications since %d: %w", from.At, err)
	}
	return copies, nil
}

// publishPage passes stored notifications to the open streams of their recipients.
func (s *Service) publishPage(ctx context.Context, page []storedCopy) error {
	users := make([]string, len(page))
	for i := range page {
		users[i] = page[i].UserID
	}
	messages, err := s.storedMessages(ctx, page)
	if err != nil {
		return err
	}
	type rendered struct {
		notice string
		read   bool
		audience
	}
	ends := map[rendered][]byte{}
	now := s.db.Now()
	s.hub.Publish(users, func(i int, stream *sse.Stream) sse.Frame {
		n := &page[i]
		m := messages.of(n)
		key := rendered{n.noticeID, n.Read, s.audienceOf(stream, m != nil)}
		end, known := ends[key]
		if !known {
			listed := n.Listed
			end = s.frameEnd(key.audience, &listed, m, now)
			ends[key] = end
		}
		return sse.Frame{Position: sse.Position{At: int64(*n.CreatedAt), ID: n.ID}, Own: appendFrameStart(nil, n.ID, n.UserID), Shared: end}
	})
	return nil
}

// messagesOfCopies are the chat messages that notifications are about, by id, with their readers.
type messagesOfCopies struct {
	messages map[string]event.ReadableMessage
	people   peopleByID
}

// of returns the message that a notification is about. It returns nil without one, or if the recipient has left the chat.
func (m messagesOfCopies) of(n *storedCopy) *frameMessage {
	message, known := m.messages[n.chatMessageID]
	if !known || !message.Readers[n.UserID] {
		return nil
	}
	return &frameMessage{ChatMessage: message.ChatMessage, people: m.people}
}

// storedMessages reads the messages that notifications are about, if one of the recipients has a stream here.
func (s *Service) storedMessages(ctx context.Context, page []storedCopy) (found messagesOfCopies, err error) {
	if s.Peers.Chats == nil || s.Peers.Directory == nil {
		return found, nil
	}
	var ids []string
	for i := range page {
		if n := &page[i]; n.chatMessageID != "" && s.hub.Count(n.UserID) > 0 {
			ids = append(ids, n.chatMessageID)
		}
	}
	if len(ids) == 0 {
		return found, nil
	}
	if found.messages, err = s.Peers.Chats.ReadableMessages(ctx, s.db, unique(ids)); err != nil {
		return found, err
	}
	authors := make([]string, 0, len(found.messages))
	for _, m := range found.messages {
		authors = append(authors, m.CreatedBy)
	}
	if found.people, err = s.peopleForStaff(ctx, unique(authors)...); err != nil {
		return found, fmt.Errorf("look up the authors of messages: %w", err)
	}
	return found, nil
}

// appended reads further columns after those of a scanner.
type appended struct {
	list.Row
	more []any
}

func (a appended) Scan(dest ...any) error { return a.Row.Scan(append(dest, a.more...)...) }
