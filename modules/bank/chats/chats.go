// Package chats keeps chats between users: their participants, their messages, and how far each participant has read.
//
// The messages of a chat are numbered from 1 without gaps. Each participant has a read position, the number of the last
// message that they have read. Unread counts and readBy are derived from it on each request.
//
// The type of a chat is derived at its creation and does not change: support if metadata.support is true, direct for two
// participants, group for more. Two users have at most one direct chat, and its participants are fixed. In other chats each
// participant may add users and may leave; the creator may remove others. Former participants, including the creator, lose
// access. New participants may read all earlier messages. Only participants write messages. Users who may read all chats can
// get any chat by its id, but their list contains only chats in which they take part.
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
	Participants []string       `json:"participants" doc:"Ids of the users who take part, ordered."`
	LastMessage  *Message       `json:"lastMessage"`
	UnreadCount  int64          `json:"unreadCount" example:"0" doc:"Number of messages of others that the caller has not read."`
	Metadata     jsontext.Value `json:"metadata"`
	CreatedAt    store.Time     `json:"createdAt"`
	UpdatedAt    store.Time     `json:"updatedAt" doc:"Time of the latest activity."`

	takesPart bool
	readSeq   int64
	version   int64
	language  string // of a last message that is a system message
}

// Type is the kind of a chat.
type Type string

// The types of chats.
const (
	Direct  Type = "direct"
	Group   Type = "group"
	Support Type = "support"
)

// ETag changes with everything that the user sees of the chat.
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

// notifications is what chats need of the module notifications.
type notifications interface {
	// Notify notifies the recipients of an event, in the transaction of the event.
	Notify(ctx context.Context, tx *store.Tx, n event.Event) error
	// MarkRead marks the notifications of a user about a record as read.
	MarkRead(ctx context.Context, tx *store.Tx, userID string, t access.RecordType, recordID string) error
}

// directory is what chats need to know about users.
type directory interface {
	// Active reports which of the users exist and are active.
	Active(ctx context.Context, q store.Querier, userIDs ...string) (map[string]bool, error)
	// People returns those of the users that exist, by id.
	People(ctx context.Context, userIDs []string) (map[string]endpoint.Person, error)
}

// Service is the module. Create one with [New].
type Service struct {
	access.Records // answers permission checks from the relations of the table

	db            *store.DB
	notifications notifications
	directory     directory
	texts         endpoint.Texts
	quota         records.Quota
}

// New returns the module on a database.
func New(db *store.DB, notifications notifications, directory directory, texts endpoint.Texts) *Service {
	return &Service{Records: records.Of(db, chatTable), db: db, notifications: notifications, directory: directory, texts: texts}
}

// SetQuota limits what one user may store. Without a quota nothing is counted.
func (s *Service) SetQuota(q records.Quota) { s.quota = q }

// MaxParticipants is the maximum number of participants of a chat.
const MaxParticipants = 256

// Create creates a chat of the caller with others. If it would be a direct chat that exists, Create returns that chat with
// status 200 instead of 201. It returns apierr.InvalidInput for participants who do not exist or are not active.
func (s *Service) Create(ctx context.Context, in CreateInput) (endpoint.Result, error) {
	caller := access.From(ctx).UserID
	members := append([]string{caller}, uniqueExcept(in.participants, caller)...)
	if err := checkParticipantCount(len(members)); err != nil {
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
	var result endpoint.Result
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		if err := s.requireActive(ctx, tx, caller); err != nil {
			return err
		}
		if err := s.checkActive(ctx, tx, in.participants); err != nil {
			return err
		}
		known, err := s.existing(ctx, tx, c)
		if err != nil {
			return err
		}
		if known != nil {
			result = endpoint.Result{Status: http.StatusOK, Body: *known}
			tx.Respond(result)
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
		result = endpoint.Result{Body: chat}
		tx.Respond(result)
		return nil
	})
	return result, err
}

// existing returns the direct chat of the same two users if there is one, or nil.
func (s *Service) existing(ctx context.Context, tx *store.Tx, c newChat) (*Chat, error) {
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

// view returns the new chat as its creator sees it.
func (c newChat) view(members []string) Chat {
	return Chat{ID: c.id, Type: c.kind, Participants: slices.Sorted(slices.Values(members)), Metadata: c.metadata, CreatedAt: c.at, UpdatedAt: c.at,
		takesPart: true, version: 1}
}

// weight returns what the chat counts against the quota of its creator.
func (c newChat) weight(members []string) int64 {
	return records.Weight(string(c.metadata)) + int64(len(members))*participantBytes
}

// participantBytes is the approximate size of a participant, and of a notification about a message.
const participantBytes = 128

// uniqueExcept returns the distinct ids except one.
func uniqueExcept(ids []string, one string) []string {
	kept := make([]string, 0, len(ids))
	for _, id := range ids {
		if id != one && !slices.Contains(kept, id) {
			kept = append(kept, id)
		}
	}
	return kept
}

func checkParticipantCount(n int) error {
	switch {
	case n < 2:
		return apierr.Invalid("participants", "chats.nobody_else")
	case n > MaxParticipants:
		return apierr.Invalid("participants", "invalid.max_items", apierr.Args{"Max": MaxParticipants})
	}
	return nil
}

// pairOf returns the key of the direct chat of two users, which is the same for both orders.
func pairOf(one, other string) *string {
	pair := min(one, other) + " " + max(one, other)
	return &pair
}

// Get returns one chat as the caller sees it. It returns apierr.ChatNotFound and apierr.NoAccess.
func (s *Service) Get(ctx context.Context, in OneInput) (Chat, error) {
	chat, err := s.view(ctx, s.db, in.ID)
	if err != nil || chat.takesPart {
		return chat, err
	}
	// Others need a grant. It is read only here, because nearly all readers of a chat take part in it.
	if _, err := chatTable.Get(ctx, s.db, in.ID, access.Read); err != nil {
		return Chat{}, err
	}
	reportReading(ctx, in.ID)
	return chat, nil
}

// reportReading reports to the audit trail that the caller reads a chat of others by a grant.
func reportReading(ctx context.Context, chatID string) {
	endpoint.Report(ctx, endpoint.Event{Kind: endpoint.Reading, Action: "chats.read_of_others", RecType: access.Chats.Name, RecID: chatID})
}

// view reads a chat as the caller sees it, without a check of access.
func (s *Service) view(ctx context.Context, q store.Querier, id string) (Chat, error) {
	chat, err := selectChat(ctx, q, access.From(ctx).UserID, id)
	s.renderLastMessage(ctx, &chat)
	return chat, err
}

// renderLastMessage renders a last message that is a system message in the language of the reader.
func (s *Service) renderLastMessage(ctx context.Context, c *Chat) {
	if c.LastMessage != nil && c.LastMessage.Type == System {
		c.language = endpoint.Language(ctx)
		s.renderMessage(ctx, c.LastMessage)
	}
}
