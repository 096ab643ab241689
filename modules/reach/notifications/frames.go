package notifications

import (
	"context"

	"github.com/go-json-experiment/json"

	"kontor/server/endpoint"
	"kontor/server/sse"
	"kontor/store"
)

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
	s.hub.Publish(users, func(i int, stream *sse.Stream) sse.Frame {
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
