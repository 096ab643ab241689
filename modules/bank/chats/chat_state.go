package chats

import (
	"fmt"
	"sort"
	"strconv"
	"strings"

	"kontor/modules/kit/records"
	"kontor/server/access"
	"kontor/server/apierr"
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
	sort.Slice(participants, func(i, j int) bool { return participants[i].userID < participants[j].userID })
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

// others returns the participants except one.
func (c chatState) others(userID string) []participant {
	others := make([]participant, 0, len(c.participants))
	for _, p := range c.participants {
		if p.userID != userID {
			others = append(others, p)
		}
	}
	return others
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
