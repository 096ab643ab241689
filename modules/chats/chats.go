// Package chats keeps conversations between users: who takes part, what was written, and how far each has read.
//
// Messages of a chat are numbered from 1 without gaps. Each participant has a read position, the number of the last
// message that he has read; unread counts and readBy are derived from it whenever they are asked for.
//
// The type of a chat is derived when it is made and stays: support when metadata.support is true, direct for two
// participants, group for more. There is one direct chat of the same two users. Its participants are fixed; in the other
// chats every participant may add users and may leave, and its creator may remove others. Who has left reads nothing any
// more, whoever made the chat; who joins reads all that was written before. Only participants write. Whoever may read
// all chats reads any of them by its id, but his list has those that he takes part in.
package chats

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/kit/event"
	"kontor/modules/kit/records"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// Chat is a chat as the API shows it to one user.
type Chat struct {
	ID           string         `json:"id"`
	Type         Type           `json:"type" enum:"direct,group,support"`
	Participants []string       `json:"participants"` // in the order of their ids
	LastMessage  *Message       `json:"lastMessage"`
	UnreadCount  int64          `json:"unreadCount" example:"0" doc:"Messages of others that the caller has not read."` // messages of others after the user's read position
	Metadata     jsontext.Value `json:"metadata"`
	CreatedAt    store.Time     `json:"createdAt"`
	UpdatedAt    store.Time     `json:"updatedAt" doc:"The latest activity."` // the latest activity

	takesPart bool
	readSeq   int64
	version   int64
	language  string // of the last message, where it is worded for the reader
}

// Type says what kind of chat it is.
type Type string

// The types of chats.
const (
	Direct  Type = "direct"
	Group   Type = "group"
	Support Type = "support"
)

// ETag changes with whatever the user sees of the chat.
func (c Chat) ETag() string {
	tag := endpoint.VersionTag(c.version)
	if c.takesPart {
		tag += "-" + strconv.FormatInt(c.readSeq, 10)
	}
	if c.language != "" {
		tag += "-" + c.language
	}
	return tag
}

// notifications is what chats need of the module of that name.
type notifications interface {
	// Notify tells people what happened, in the transaction in which it did.
	Notify(ctx context.Context, tx *store.Tx, n event.Event) error
	// MarkRead marks the notifications of a user that refer to a record as read.
	MarkRead(ctx context.Context, tx *store.Tx, userID string, t access.RecordType, recordID string) error
}

// Service is the module. Make one with [New].
type Service struct {
	db            *store.DB
	notifications notifications
	texts         endpoint.Texts
	quota         records.Quota
}

// New makes the module on a database.
func New(db *store.DB, notifications notifications, texts endpoint.Texts) *Service {
	return &Service{db: db, notifications: notifications, texts: texts}
}

// SetQuota bounds what one user may store. Without it nothing is counted.
func (s *Service) SetQuota(q records.Quota) { s.quota = q }

// MaxParticipants is how many users can take part in a chat.
const MaxParticipants = 256

// Create opens a chat of the caller with others. For two who have a direct chat already it gives that one, with 200
// instead of 201. It returns apierr.InvalidInput for participants who do not exist or are not active.
func (s *Service) Create(ctx context.Context, in CreateInput) (endpoint.Result, error) {
	caller := access.From(ctx).UserID
	members := append([]string{caller}, without(in.participants, caller)...)
	if err := checkNumber(len(members)); err != nil {
		return endpoint.Result{}, err
	}
	c := newChat{id: store.NewID(), kind: Group, metadata: in.metadata, createdBy: caller, at: s.db.Now()}
	switch {
	case in.support:
		c.kind = Support
	case len(members) == 2:
		c.kind, c.pair = Direct, pairOf(members[0], members[1])
	}
	chat := c.view(members)
	result := endpoint.Result{Status: http.StatusCreated}
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		if err := checkActive(ctx, tx, in.participants); err != nil {
			return err
		}
		known, err := s.known(ctx, tx, c)
		if err != nil {
			return err
		}
		if known != nil {
			result.Status, result.Body = http.StatusOK, *known
			tx.Respond(result.Status, *known)
			return nil
		}
		if err := s.quota.Charge(ctx, tx, access.Chats, caller, 1, c.weight(members)); err != nil {
			return err
		}
		if err := insertChat(ctx, tx, c, members); err != nil {
			return err
		}
		if err := chatProof.Audit(ctx, tx, "chats.create", c.id, nil); err != nil {
			return err
		}
		result.Body = chat
		tx.Respond(result.Status, chat)
		return nil
	})
	return result, err
}

// known returns the direct chat that the same two have already, or nil.
func (s *Service) known(ctx context.Context, tx *store.Tx, c newChat) (*Chat, error) {
	if c.pair == nil {
		return nil, nil
	}
	id, err := findPair(ctx, tx, *c.pair)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	chat, err := s.view(ctx, tx, id)
	return &chat, err
}

// view is the new chat as its creator sees it.
func (c newChat) view(members []string) Chat {
	return Chat{ID: c.id, Type: c.kind, Participants: slices.Sorted(slices.Values(members)), Metadata: c.metadata, CreatedAt: c.at, UpdatedAt: c.at,
		takesPart: true, version: 1}
}

// weight is what the chat takes of the quota of its creator, the participants among it.
func (c newChat) weight(members []string) int64 {
	return records.Weight(string(c.metadata)) + int64(len(members))*participantBytes
}

// participantBytes is what a participant of a chat, or a copy of the notification of a message, takes about.
const participantBytes = 128

// without gives the ids but one, each once.
func without(ids []string, one string) []string {
	kept := make([]string, 0, len(ids))
	for _, id := range ids {
		if id != one && !slices.Contains(kept, id) {
			kept = append(kept, id)
		}
	}
	return kept
}

func checkNumber(members int) error {
	switch {
	case members < 2:
		return apierr.Invalid("participants", "chats.nobody_else")
	case members > MaxParticipants:
		return apierr.Invalid("participants", "invalid.max_items", apierr.Args{"Max": MaxParticipants})
	}
	return nil
}

// pairOf names two users, whoever of them comes first.
func pairOf(one, other string) *string {
	pair := min(one, other) + " " + max(one, other)
	return &pair
}

// Get gives one chat as the caller sees it. It returns apierr.ChatNotFound and apierr.NoAccess.
func (s *Service) Get(ctx context.Context, in OneInput) (Chat, error) {
	chat, err := s.view(ctx, s.db, in.ID)
	if err != nil || chat.takesPart {
		return chat, err
	}
	// Others need a grant, which is asked for only here: nearly everybody who reads a chat takes part in it.
	if _, err := conversations.Get(ctx, s.db, in.ID, access.Read); err != nil {
		return Chat{}, err
	}
	reportLook(ctx, in.ID)
	return chat, nil
}

// reportLook reports to the audit trail that a caller reads a chat of others by a grant.
func reportLook(ctx context.Context, chatID string) {
	endpoint.Report(ctx, endpoint.Event{Kind: endpoint.Reading, Action: "chats.read_of_others", RecType: access.Chats.Name, RecID: chatID})
}

// view reads a chat as the caller sees it, whoever he is.
func (s *Service) view(ctx context.Context, q store.Querier, id string) (Chat, error) {
	chat, err := selectChat(ctx, q, access.From(ctx).UserID, id)
	s.word(ctx, &chat)
	return chat, err
}

// word puts a last message that is Kontor's own into the words of the reader.
func (s *Service) word(ctx context.Context, c *Chat) {
	if c.LastMessage != nil && c.LastMessage.Type == System {
		c.language = endpoint.Language(ctx)
		s.wordMessage(ctx, c.LastMessage)
	}
}

// Standings answers permission checks: participants read a chat and write in it.
func (s *Service) Standings(ctx context.Context, userID string, ids []string) (map[string]access.Standing, error) {
	return conversations.Standings(ctx, s.db, userID, ids)
}
