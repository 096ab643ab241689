package chats

import (
	"context"
	"net/url"
	"strconv"

	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/store"
)

// List returns the chats that the caller takes part in, and those that they may read by a grant on them, the latest
// activity first: as many as fit into [endpoint.PageBytes]. The rest is where the answer's Next says.
func (s *Service) List(ctx context.Context, in ListInput) (endpoint.Result, error) {
	chats := []Chat{}
	var next string
	err := s.db.View(ctx, func(v *store.View) error { // One state: a chat must not move between its place and its reading.
		places, err := readPlaces(ctx, v, access.From(ctx).UserID, in.limit+1, in.offset, in.before)
		if err != nil {
			return err
		}
		chats, err = s.fill(ctx, v, places[:min(len(places), in.limit)])
		if n := len(chats); n > 0 && n < len(places) {
			next = in.rest(places[n-1])
		}
		return err
	})
	if err != nil {
		return endpoint.Result{}, err
	}
	listed, err := s.listChats(ctx, chats)
	return endpoint.Result{Body: listed, Next: next}, err
}

// rest is the address of the chats after a place.
func (in ListInput) rest(last place) string {
	query := url.Values{"before": {last.String()}}
	if in.Limit != nil {
		query.Set("limit", strconv.Itoa(in.limit))
	}
	return "/v1/chats?" + query.Encode()
}

// fill reads chats in full until an answer is full.
func (s *Service) fill(ctx context.Context, q store.Querier, places []place) ([]Chat, error) {
	chats, room := []Chat{}, endpoint.PageBytes
	for len(places) > 0 {
		n := min(len(places), chatsAtOnce)
		part, err := selectChats(ctx, q, access.From(ctx).UserID, places[:n])
		if err != nil {
			return nil, err
		}
		for i := range part {
			s.word(ctx, &part[i])
			if room -= part[i].size(); room < 0 && len(chats) > 0 {
				return chats, nil
			}
			chats = append(chats, part[i])
		}
		places = places[n:]
	}
	return chats, nil
}

const (
	chatBytes    = 260 // of a chat as JSON, but for what varies
	messageBytes = 260 // of a message likewise
	idBytes      = idLength + len(`"",`)
)

// size is at least what the chat takes as JSON.
func (c *Chat) size() int {
	size := chatBytes + len(c.Metadata) + len(c.Participants)*idBytes
	if c.LastMessage != nil {
		size += c.LastMessage.size()
	}
	return size
}

// size is at least what the message takes as JSON.
func (m *Message) size() int {
	return messageBytes + endpoint.JSONSize(m.Content) + len(m.Metadata) + len(m.ReadBy)*idBytes
}
