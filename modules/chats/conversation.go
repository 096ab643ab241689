package chats

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kontor/modules/kit/records"
	"kontor/server/access"
	"kontor/server/apierr"
)

// conversation is what the rules about a chat are decided by.
type conversation struct {
	id        string
	kind      Type
	createdBy string
	lastSeq   int64
	positions []position
}

// position is how far a participant has read.
type position struct {
	userID  string
	readSeq int64
}

var conversations = &records.Table[conversation]{
	Type: access.Chats, From: "chats",
	Columns: "id, type, created_by, last_seq, " + fmt.Sprintf(positionsColumn, "chats"),
	Scan: func(row records.Row) (conversation, error) {
		var c conversation
		var positions string
		err := row.Scan(&c.id, &c.kind, &c.createdBy, &c.lastSeq, &positions)
		c.positions = parsePositions(positions)
		return c, err
	},
	Relations: []records.Relation{{
		Allows: access.Read | access.Update, Tables: []string{"chat_participants"},
		SQL: "EXISTS (SELECT 1 FROM chat_participants t WHERE t.chat_id = chats.id AND t.user_id = $1)",
	}},
	Missing: apierr.ChatNotFound,
}

const idLength = 36 // of a UUID

// parsePositions reads the column and puts the participants in the order of their ids.
func parsePositions(text string) []position {
	positions := make([]position, 0, strings.Count(text, " ")/2+1)
	for len(text) > idLength {
		number, rest, _ := strings.Cut(text[idLength+1:], " ")
		seq, _ := strconv.ParseInt(number, 10, 64) // the column is a number
		positions = append(positions, position{userID: text[:idLength], readSeq: seq})
		text = rest
	}
	slices.SortFunc(positions, func(a, b position) int { return strings.Compare(a.userID, b.userID) })
	return positions
}

func (c conversation) position(userID string) position {
	for _, p := range c.positions {
		if p.userID == userID {
			return p
		}
	}
	return position{}
}

func (c conversation) has(userID string) bool {
	return userID != "" && c.position(userID).userID == userID
}

// others are the participants but one.
func (c conversation) others(userID string) []position {
	others := make([]position, 0, len(c.positions))
	for _, p := range c.positions {
		if p.userID != userID {
			others = append(others, p)
		}
	}
	return others
}

func members(positions []position) []string {
	ids := make([]string, len(positions))
	for i, p := range positions {
		ids[i] = p.userID
	}
	return ids
}

// readers are the participants who have read the message with the number.
func (c conversation) readers(seq int64) []string { return readers(c.positions, seq) }

func readers(positions []position, seq int64) []string {
	ids := make([]string, 0, len(positions))
	for _, p := range positions {
		if p.readSeq >= seq {
			ids = append(ids, p.userID)
		}
	}
	return ids
}
