package chats

import (
	"context"
	"net/url"
	"strconv"

	"kontor/modules/kit/list"
	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/store"
)

// List returns the chats in which the caller takes part, and those that they may read by a grant on them, the latest
// activity first. A page ends after [endpoint.PageBytes], names of users aside; the answer's Next is the address of the next
// page.
func (s *Service) List(ctx context.Context, in ListInput) (endpoint.Result, error) {
	chats := []Chat{}
	var next string
	matching, err := list.ByText(ctx, s.db, in.Text.Search(chatSource, messageSource), "f.id")
	if err != nil {
		return endpoint.Result{}, err
	}
	err = s.db.View(ctx, func(v *store.View) error { // One snapshot: a chat must not move in the list between the two statements.
		cursors, err := selectCursors(ctx, v, access.From(ctx).UserID, in.limit+1, in.offset, in.before, matching)
		if err != nil {
			return err
		}
		chats, err = s.readChats(ctx, v, cursors[:min(len(cursors), in.limit)])
		if n := len(chats); n > 0 && n < len(cursors) {
			next = in.nextPage(cursors[n-1])
		}
		return err
	})
	if err != nil {
		return endpoint.Result{}, err
	}
	listed, err := s.listChats(ctx, chats)
	return endpoint.Result{Body: listed, Next: next}, err
}

// nextPage returns the address of the chats after a cursor.
func (in ListInput) nextPage(last cursor) string {
	query := url.Values{"before": {last.String()}}
	if in.Text != "" {
		query.Set("q", string(in.Text))
	}
	if in.Limit != nil {
		query.Set("limit", strconv.Itoa(in.limit))
	}
	return "/v1/chats?" + query.Encode()
}

// readChats reads chats in full until the page is full.
func (s *Service) readChats(ctx context.Context, q store.Querier, cursors []cursor) ([]Chat, error) {
	chats, room := []Chat{}, endpoint.PageBytes
	for len(cursors) > 0 {
		n := min(len(cursors), chatsAtOnce)
		part, err := selectChats(ctx, q, access.From(ctx).UserID, cursors[:n])
		if err != nil {
			return nil, err
		}
		for i := range part {
			s.renderLastMessage(ctx, &part[i])
			if room -= part[i].size(); room < 0 && len(chats) > 0 {
				return chats, nil
			}
			chats = append(chats, part[i])
		}
		cursors = cursors[n:]
	}
	return chats, nil
}

const (
	chatBytes    = 260 // of a chat as JSON, without its variable parts
	messageBytes = 260 // of a message likewise
	idBytes      = idLength + len(`"",`)
)

// size returns an upper bound of the size of the chat as JSON.
func (c *Chat) size() int {
	size := chatBytes + len(c.Metadata) + len(c.Participants)*idBytes
	if c.LastMessage != nil {
		size += c.LastMessage.size()
	}
	return size
}

// size returns an upper bound of the size of the message as JSON.
func (m *Message) size() int {
	return messageBytes + endpoint.JSONSize(m.Content) + len(m.Metadata) + len(m.ReadBy)*idBytes
}
