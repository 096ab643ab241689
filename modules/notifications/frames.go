package notifications

import (
	"github.com/go-json-experiment/json"

	"kontor/server/sse"
	"kontor/store"
)

// common is what the frames of all copies of a notice say alike, in one language. The id and the recipient come before
// it in each frame.
type common struct {
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
}

// tail is the end of a frame: a comma, the common members, and what closes the frame.
func (s *Service) tail(language string, n *Listed, sentAt store.Time) []byte {
	s.words.render(language, n)
	if n.SentAt != nil {
		sentAt = *n.SentAt
	}
	b, err := json.Marshal(common{
		CustomerID: n.CustomerID, Event: n.Event, Title: n.Title, Content: n.Content, RecType: n.RecType,
		LinkURL: n.LinkURL, LinkText: n.LinkText, Read: n.Read, Test: n.Test, CreatedAt: n.CreatedAt, SentAt: &sentAt,
	})
	if err != nil {
		s.options.Log.Error("a notification cannot be encoded", "cause", err)
		b = []byte(`{"event":""}`)
	}
	b[0] = ','
	return append(b, sse.End...)
}

// appendOwn appends the beginning of a frame, with what differs from copy to copy. Ids need no escaping.
func appendOwn(b []byte, id, userID string) []byte {
	b = sse.Begin(b, id, "message")
	b = append(append(b, `{"id":"`...), id...)
	b = append(append(b, `","user_id":"`...), userID...)
	return append(b, '"')
}

// appendFrame appends the whole frame of one copy.
func (s *Service) appendFrame(b []byte, language string, n *Listed) []byte {
	b = appendOwn(b, n.ID, n.UserID)
	return append(b, s.tail(language, n, s.db.Now())...)
}

// publish hands the copies of a notice to the open streams of their recipients. It is called after the commit.
func (s *Service) publish(src source, copies []copied) {
	users := make([]string, len(copies))
	for i, c := range copies {
		users[i] = c.userID
	}
	now := s.db.Now()
	tails := map[string][]byte{}
	s.hub.Publish(users, func(i int, language string) sse.Frame {
		tail, known := tails[language]
		if !known {
			n := Listed{Notification: Notification{
				CustomerID: src.customerID, Event: src.event, Content: src.content, RecType: src.recType, RecID: src.recID,
				CreatedAt: &src.createdAt, Test: src.metadata == testMetadata, titleKey: src.titleKey, contentKey: src.contentKey, metadata: src.metadata,
			}}
			tail = s.tail(language, &n, now)
			tails[language] = tail
		}
		c := copies[i]
		return sse.Frame{Position: sse.Position{At: int64(src.createdAt), ID: c.id}, Own: appendOwn(nil, c.id, c.userID), Shared: tail}
	})
}
