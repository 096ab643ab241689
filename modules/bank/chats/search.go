package chats

import (
	"context"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/kit/find"
	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/store"
)

// The kinds of documents that find chats.
const (
	chatSource    = "chats"
	messageSource = "chat_messages"
)

const selectContents = `SELECT id, content FROM chat_messages WHERE id IN (%s)`

// TextSources returns what finds chats: their titles and ids, and the messages that people have written.
func (s *Service) TextSources() []find.Source {
	return []find.Source{
		{From: chatSource, Columns: "id, metadata", Scan: func(row list.Row, d *store.TextDocument) error {
			var metadata string
			err := row.Scan(&d.ID, &metadata)
			d.Record, d.Title, d.Body = d.ID, find.Words(title(jsontext.Value(metadata))), types.IDWords(d.ID)
			return err
		}},
		{From: messageSource, Columns: "id, chat_id, content", Where: "type = 'text'", Scan: func(row list.Row, d *store.TextDocument) error {
			var content string
			err := row.Scan(&d.ID, &d.Record, &content)
			d.Body = find.Words(content)
			return err
		}},
	}
}

// title returns the title in the metadata of a chat, or an empty text.
func title(metadata jsontext.Value) string {
	var known struct {
		Title jsontext.Value `json:"title"`
	}
	var text string
	if json.Unmarshal(metadata, &known) != nil || json.Unmarshal(known.Title, &text) != nil {
		return ""
	}
	return text
}

// foundChat is a chat as a search shows it.
type foundChat struct{ title string }

var foundChats = list.New(list.Source[foundChat]{
	From: "chats", Columns: "metadata", ID: "id", Created: "updated_at", Tables: []string{"chats"},
	Scan: func(row list.Row) (c foundChat, err error) {
		var metadata string
		err = row.Scan(&metadata)
		c.title = title(jsontext.Value(metadata))
		return c, err
	},
})

// FindText returns the chats that match a text best, of those in which the caller takes part or that they may read by a grant. That a
// chat of others was read by a message is reported, as by reading its messages.
func (s *Service) FindText(ctx context.Context, text list.Words, limit int) ([]find.Hit, error) {
	caller := access.From(ctx)
	granted, tables := records.GrantedIDs(access.Chats, access.Read)
	found, err := foundChats.Find(ctx, s.db, text.Search(chatSource, messageSource), limit, list.Where{
		Any:     []string{"id IN (SELECT t.chat_id FROM chat_participants t WHERE t.user_id = $1)"},
		Granted: granted, Args: []any{caller.UserID}, Tables: append([]string{"chat_participants"}, tables...),
	})
	if err != nil {
		return nil, err
	}
	return s.chatHits(ctx, found)
}

// chatHits adds the messages that were found.
func (s *Service) chatHits(ctx context.Context, found []list.Found[foundChat]) ([]find.Hit, error) {
	hits := find.Hits(found, func(c foundChat) find.Hit { return find.Hit{Title: c.title} })
	var messages []string
	for i, one := range found {
		if one.Match.Source == messageSource {
			hits[i].Message = one.Match.ID
			messages = append(messages, one.Match.ID)
		}
	}
	contents, err := store.Pairs(ctx, s.db, selectContents, messages)
	if err != nil {
		return nil, err
	}
	for i := range hits {
		if hits[i].Message == "" {
			continue
		}
		hits[i].Line = contents[hits[i].Message]
		if err := s.reportFound(ctx, hits[i].ID); err != nil {
			return nil, err
		}
	}
	return hits, nil
}

const selectTakesPart = `SELECT EXISTS (SELECT 1 FROM chat_participants WHERE chat_id = $1 AND user_id = $2)`

// reportFound reports to the audit trail that a message of a chat of others was shown.
func (s *Service) reportFound(ctx context.Context, chatID string) error {
	var takesPart bool
	err := s.db.QueryRow(ctx, selectTakesPart, chatID, access.From(ctx).UserID).Scan(&takesPart)
	if err == nil && !takesPart {
		reportReading(ctx, chatID)
	}
	return err
}
