package chats

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"kontor/modules/kit/event"
	"kontor/modules/kit/records"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

// chatState is the part of a chat that decides what its users may do.
type chatState struct {
	id           string
	kind         Type
	createdBy    string
	lastSeq      int64
	participants []participant
}

// participant is a user who takes part in a chat, and how far they have read.
type participant struct {
	userID  string
	readSeq int64
}

var chatTable = &records.Table[chatState]{
	Type: access.Chats, From: "chats",
	Columns: "id, type, created_by, last_seq, " + fmt.Sprintf(participantsColumn, "chats"),
	Scan: func(row records.Row) (chatState, error) {
		var c chatState
		var participants string
		err := row.Scan(&c.id, &c.kind, &c.createdBy, &c.lastSeq, &participants)
		c.participants = parseParticipants(participants)
		return c, err
	},
	Relations: []records.Relation{{
		Name: access.RelationParticipant, Allows: access.Read | access.Update, Tables: []string{"chat_participants"},
		SQL:   "EXISTS (SELECT 1 FROM chat_participants t WHERE t.chat_id = chats.id AND t.user_id = $1)",
		Users: "SELECT user_id FROM chat_participants WHERE chat_id = $1",
	}},
	Missing: apierr.ChatNotFound,
}

const idLength = 36 // of a UUID

// parseParticipants reads participantsColumn and returns the participants ordered by their ids.
func parseParticipants(text string) []participant {
	participants := make([]participant, 0, strings.Count(text, " ")/2+1)
	for len(text) > idLength {
		number, rest, _ := strings.Cut(text[idLength+1:], " ")
		seq, _ := strconv.ParseInt(number, 10, 64) // the column is a number
		participants = append(participants, participant{userID: text[:idLength], readSeq: seq})
		text = rest
	}
	slices.SortFunc(participants, func(a, b participant) int { return strings.Compare(a.userID, b.userID) })
	return participants
}

// participant returns the participant with the user id, or an empty one.
func (c chatState) participant(userID string) participant {
	for _, p := range c.participants {
		if p.userID == userID {
			return p
		}
	}
	return participant{}
}

func (c chatState) has(userID string) bool {
	return userID != "" && c.participant(userID).userID == userID
}

func userIDs(participants []participant) []string {
	ids := make([]string, len(participants))
	for i, p := range participants {
		ids[i] = p.userID
	}
	return ids
}

// readers returns the ids of the participants who have read the message with a number.
func (c chatState) readers(seq int64) []string { return readers(c.participants, seq) }

func readers(participants []participant, seq int64) []string {
	ids := make([]string, 0, len(participants))
	for _, p := range participants {
		if p.readSeq >= seq {
			ids = append(ids, p.userID)
		}
	}
	return ids
}

const (
	selectMessagesByID = `SELECT id, chat_id, sender_id, type, content, created_at FROM chat_messages WHERE id IN (%s)`

	selectReaders = `SELECT chat_id, user_id FROM chat_participants WHERE chat_id IN (%s)`
)

// ReadableMessages returns the messages by id, with the participants of their chats. Frames of the notification streams carry them.
func (s *Service) ReadableMessages(ctx context.Context, q store.Querier, ids []string) (map[string]event.ReadableMessage, error) {
	found := make(map[string]event.ReadableMessage, len(ids))
	readers := map[string]map[string]bool{} // by chat
	err := store.EachOf(ctx, q, func(row store.Scanner) error {
		var m Message
		err := row.Scan(&m.ID, &m.ChatID, &m.SenderID, &m.Type, &m.Content, &m.CreatedAt)
		if readers[m.ChatID] == nil {
			readers[m.ChatID] = map[string]bool{}
		}
		found[m.ID] = event.ReadableMessage{ChatMessage: m.forFrame(), Readers: readers[m.ChatID]}
		return err
	}, selectMessagesByID, ids)
	if err != nil {
		return nil, fmt.Errorf("read messages for frames: %w", err)
	}
	err = store.EachOf(ctx, q, func(row store.Scanner) error {
		var chat, user string
		err := row.Scan(&chat, &user)
		if err == nil {
			readers[chat][user] = true
		}
		return err
	}, selectReaders, slices.Collect(maps.Keys(readers)))
	if err != nil {
		return nil, fmt.Errorf("read the participants of chats: %w", err)
	}
	return found, nil
}

// forFrame returns the message as stream frames carry it.
func (m *Message) forFrame() event.ChatMessage {
	frame := event.ChatMessage{ID: m.ID, ChatID: m.ChatID, CreatedBy: m.SenderID, CreatedAt: m.CreatedAt.Std()}
	if m.Type == System {
		frame.TextKey = "chats." + m.Content
	} else {
		frame.Text = m.Content
	}
	return frame
}
