package notifications

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"kontor/modules/kit/event"
	"kontor/modules/kit/list"
	"kontor/server/endpoint"
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
	users := s.streams.Users()
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
	return slices.DeleteFunc(unique(users), func(user string) bool { return s.streams.Count(user) == 0 })
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
	s.streams.Publish(users, func(i int, stream *sse.Stream) sse.Frame {
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
		if n := &page[i]; n.chatMessageID != "" && s.streams.Count(n.UserID) > 0 {
			ids = append(ids, n.chatMessageID)
		}
	}
	if len(ids) == 0 {
		return found, nil
	}
	return s.messagesWithAuthors(ctx, ids)
}

// messagesWithAuthors reads messages and looks up their authors.
func (s *Service) messagesWithAuthors(ctx context.Context, ids []string) (found messagesOfCopies, err error) {
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

// frameData is the part of a frame's JSON that is the same for all copies of an event, for one audience. The id and the
// recipient precede it in each frame.
type frameData struct {
	CustomerID        string      `json:"customer_id"`
	Event             string      `json:"event"`
	Title             string      `json:"title"`
	Content           string      `json:"content"`
	RecType           string      `json:"rec_type"`
	LinkURL           string      `json:"link_url"`
	LinkText          string      `json:"link_text"`
	Read              bool        `json:"read"`
	Test              bool        `json:"test,omitzero"`
	CreatedAt         *store.Time `json:"created_at"`
	SentAt            *store.Time `json:"sent_at"`
	ChannelsAttempted *[]string   `json:"channels_attempted"` // null on streams
	ChannelsSent      *[]string   `json:"channels_sent"`
	ChannelsDelivered *[]string   `json:"channels_delivered"`
	ChannelsFailed    *[]string   `json:"channels_failed"`
	Chat              *chatMember `json:"chat,omitzero"`
	People            peopleByID  `json:"people,omitzero"`
}

// notificationFrame is the data of a frame with a notification, for the API document.
type notificationFrame struct {
	ID     string `json:"id"`
	UserID string `json:"user_id"`
	frameData
}

// openedFrame is the data of the first frame.
type openedFrame struct {
	Message string `json:"message" example:"Connection established"`
}

// closedFrame is the data of the last frame before a shutdown: clients reconnect later.
type closedFrame struct {
	Reason string `json:"reason" example:"server_shutdown"`
}

// resetFrameData is the data of a frame that reports an unknown Last-Event-ID: notifications may be missing.
type resetFrameData struct {
	Reason string `json:"reason" example:"unknown_event_id"`
}

// streamFrames are the events of the stream, for the API document.
var streamFrames = []endpoint.Frame{
	{Event: "open", Body: openedFrame{}}, {Event: "message", Body: notificationFrame{}},
	{Event: "close", Body: closedFrame{}}, {Event: "reset", Body: resetFrameData{}},
}

// frameEnd returns the end of a frame: a comma, the members of frameData, and the end of the frame. m is the chat message
// that the notification is about, or nil.
func (s *Service) frameEnd(a audience, n *Listed, m *frameMessage, sentAt store.Time) []byte {
	s.templates.renderListed(a.language, n)
	if n.SentAt != nil {
		sentAt = *n.SentAt
	}
	data := frameData{
		CustomerID: n.CustomerID, Event: n.Event, Title: n.Title, Content: n.Content, RecType: n.RecType,
		LinkURL: n.LinkURL, LinkText: n.LinkText, Read: n.Read, Test: n.Test, CreatedAt: n.CreatedAt, SentAt: &sentAt,
	}
	s.addMessage(&data, m, a)
	b, err := json.Marshal(data)
	if err != nil {
		s.options.Log.Error("a notification cannot be encoded", "cause", err)
		b = []byte(`{"event":""}`)
	}
	b[0] = ','
	return append(b, sse.End...)
}

// appendFrameStart appends the beginning of a frame: the members that differ from copy to copy. Ids need no escaping.
func appendFrameStart(b []byte, id, userID string) []byte {
	b = sse.Begin(b, id, "message")
	b = append(append(b, `{"id":"`...), id...)
	b = append(append(b, `","user_id":"`...), userID...)
	return append(b, '"')
}

// appendFrames appends the frames of copies that are read from the table, and returns the ids of the copies.
func (s *Service) appendFrames(ctx context.Context, b []byte, stream *sse.Stream, copies []Listed) (frames []byte, ids []string, err error) {
	messages, err := s.replayedMessages(ctx, stream, copies)
	if err != nil {
		return b, nil, err
	}
	ids = make([]string, len(copies))
	for i := range copies {
		n := &copies[i]
		m := messages[n.chatMessageID]
		b = appendFrameStart(b, n.ID, n.UserID)
		b = append(b, s.frameEnd(s.audienceOf(stream, m != nil), n, m, s.db.Now())...)
		ids[i] = n.ID
	}
	return b, ids, nil
}

// publish passes the copies of an event to the open streams of their recipients. Call it after the commit.
func (s *Service) publish(parent parentEvent, copies []recipientCopy) {
	users := make([]string, len(copies))
	for i, c := range copies {
		users[i] = c.userID
	}
	now := s.db.Now()
	message := s.liveMessage(parent, users)
	ends := map[audience][]byte{}
	var start []byte // of the frames of one copy: users often have several streams
	startOf := -1
	s.streams.Publish(users, func(i int, stream *sse.Stream) sse.Frame {
		a := s.audienceOf(stream, parent.chatMessage != nil)
		end, known := ends[a]
		if !known {
			n := Listed{Notification: Notification{
				CustomerID: parent.customerID, Event: parent.event, Content: parent.content, RecType: parent.recType, RecID: parent.recID,
				CreatedAt: &parent.createdAt, Test: parent.metadata == testMetadata, titleKey: parent.titleKey, contentKey: parent.contentKey, metadata: parent.metadata,
			}}
			end = s.frameEnd(a, &n, message, now)
			ends[a] = end
		}
		c := copies[i]
		if startOf != i {
			start, startOf = appendFrameStart(nil, c.id, c.userID), i
		}
		return sse.Frame{Position: sse.Position{At: int64(parent.createdAt), ID: c.id}, Own: start, Shared: end}
	})
}
