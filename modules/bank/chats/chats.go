// Package chats keeps chats between users: their participants, their messages, and how far each participant has read.
//
// The messages of a chat are numbered from 1 without gaps. Each participant has a read position, the number of the last
// message that they have read. Unread counts and readBy are derived from it on each request.
//
// The type of a chat is derived at its creation and does not change: support if metadata.support is true, direct for two
// participants, group for more. In a support chat the bank takes part: customers begin one with staff only, and bring in no others. Two
// users have at most one direct chat for each metadata, and its participants are fixed. In
// other chats each participant may add users and may leave; the creator may remove others. Former participants, including the creator, lose
// access. New participants may read all earlier messages. Only participants write messages. Users who may read all chats can
// get any chat by its id, but their list contains only chats in which they take part.
package chats

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/kit/event"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
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

// Create creates a chat of the caller with others. For a direct chat that exists, Create returns that chat with status 200
// instead of 201: without metadata the first one of the two users, otherwise the one with the same metadata. It returns
// apierr.InvalidInput for participants who do not exist or are not active, and for those of a support chat who are not staff, unless the
// caller answers customers.
func (s *Service) Create(ctx context.Context, in CreateInput) (endpoint.Result, error) {
	caller := access.From(ctx).UserID
	members := append([]string{caller}, uniqueExcept(in.participants, caller)...)
	if err := checkParticipantCount(len(members)); err != nil {
		return endpoint.Result{}, err
	}
	c := newChat{id: store.NewID(), kind: Group, metadata: in.metadata, createdBy: caller, at: s.db.Now()}
	switch {
	case in.support:
		if err := s.checkSupport(ctx, in.participants); err != nil {
			return endpoint.Result{}, err
		}
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
		c := c.copied() // the transaction may run twice
		known, err := s.existing(ctx, tx, &c)
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

// checkSupport returns apierr.InvalidInput for a support chat of people who do not work for the bank: such a chat would look like one with
// the bank. Staff may begin one with anybody, others only with staff.
func (s *Service) checkSupport(ctx context.Context, with []string) error {
	if checkTeam(ctx) == nil {
		return nil
	}
	people, err := s.directory.People(ctx, with)
	if err != nil {
		return err
	}
	var problems apierr.Fields
	for i, id := range with {
		if id != access.From(ctx).UserID && !people[id].Staff {
			problems.Add("participants."+strconv.Itoa(i), "chats.not_staff")
		}
	}
	return problems.Err()
}

// existing returns the direct chat that exists instead of a new one, or nil. It sets the key of the new one. There is one writer, so that
// no chat is created before the transaction ends.
func (s *Service) existing(ctx context.Context, tx *store.Tx, c *newChat) (*Chat, error) {
	if c.pair == nil {
		return nil, nil
	}
	id, metadata, err := selectDirect(ctx, tx, *c.pair)
	if err != nil || id == "" { // the first chat of the two users
		return nil, err
	}
	if digest := digestOf(c.metadata); string(c.metadata) != noMetadata && digest != digestOf(metadata) {
		*c.pair += " " + digest
		if id, _, err = selectDirect(ctx, tx, *c.pair); err != nil || id == "" {
			return nil, err
		}
	}
	chat, err := s.view(ctx, tx, id)
	return &chat, err
}

// selectDirect returns the direct chat with a key, or an empty id.
func selectDirect(ctx context.Context, tx *store.Tx, pair string) (id string, metadata jsontext.Value, err error) {
	err = tx.QueryRow(ctx, selectPair, pair).Scan(&id, (*[]byte)(&metadata))
	if errors.Is(err, store.ErrNotFound) {
		return "", nil, nil
	}
	return id, metadata, err
}

// noMetadata is the stored form of absent metadata.
const noMetadata = "{}"

// digestOf returns the digest of metadata: equal for objects that differ in the order of members or the notation of values alone.
func digestOf(metadata jsontext.Value) string {
	canonical := metadata.Clone()
	if err := canonical.Canonicalize(jsontext.CanonicalizeRawInts(false)); err != nil {
		canonical = metadata // stored metadata is valid
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:])
}

// copied returns a copy with a key of its own.
func (c newChat) copied() newChat {
	if c.pair != nil {
		pair := *c.pair
		c.pair = &pair
	}
	return c
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

// pairOf returns the key of the first direct chat of two users, which is the same for both orders. Those of further chats have
// the digest of their metadata in addition.
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

// Endpoints returns the rows of the module.
func (s *Service) Endpoints() []endpoint.Endpoint {
	create := endpoint.JSON(http.StatusCreated, s.Create)
	create.Out = reflect.TypeFor[Chat]()
	list := endpoint.JSON(http.StatusOK, s.List)
	list.Out = reflect.TypeFor[[]ListedChat]()
	messages := endpoint.JSON(http.StatusOK, s.Messages)
	messages.Out = reflect.TypeFor[[]ListedMessage]()
	rows := []endpoint.Endpoint{
		{Name: "chats.create", Method: http.MethodPost, Path: "/v1/chats", Subject: access.NoSubject("the creator gives rights to a chat of their own"),
			Access: access.On(access.Chats, access.Create), Summary: "Create a chat.",
			Doc: endpoint.Doc{Answers: []endpoint.Answer{
				{Status: http.StatusCreated, Says: "The new chat."},
				{Status: http.StatusOK, Says: "The existing direct chat of the two users: without metadata the first one, otherwise the one " +
					"with the same metadata."},
			}},
			Handle: create},
		{Name: "chats.list", Method: http.MethodGet, Path: "/v1/chats",
			Access: access.On(access.Chats, access.Read), Summary: "List chats, the latest activity first.",
			Doc: endpoint.Doc{Linked: true}, Handle: list},
		{Name: "chats.get", Method: http.MethodGet, Path: "/v1/chats/{id}",
			Access: access.On(access.Chats, access.Read), Summary: "Get a chat.",
			Faults: []apierr.Kind{apierr.ChatNotFound}, Handle: endpoint.JSON(http.StatusOK, s.Get)},
		{Name: "chats.messages", Method: http.MethodGet, Path: "/v1/chats/{id}/messages",
			Access: access.On(access.Chats, access.Read), Summary: "List the messages of a chat, the newest first.",
			Faults: []apierr.Kind{apierr.ChatNotFound}, Doc: endpoint.Doc{Linked: true}, Handle: messages},
		{Name: "chats.post", Method: http.MethodPost, Path: "/v1/chats/{id}/messages",
			Access: access.On(access.Chats, access.Update), Summary: "Post a message.",
			Faults: []apierr.Kind{apierr.ChatNotFound}, Handle: endpoint.JSON(http.StatusCreated, s.Post)},
		{Name: "chats.read", Method: http.MethodPost, Path: "/v1/chats/{id}/read",
			Access: access.On(access.Chats, access.Read), Summary: "Mark a chat and its notifications as read.",
			Faults: []apierr.Kind{apierr.ChatNotFound}, Handle: endpoint.JSON(http.StatusOK, s.MarkRead)},
		{Name: "chats.add_participants", Method: http.MethodPost, Path: "/v1/chats/{id}/participants", Subject: access.NoSubject("callers give what they hold: reading and writing the chat"),
			Access: access.On(access.Chats, access.Update), Summary: "Add participants to a chat.",
			Faults: []apierr.Kind{apierr.ChatNotFound, apierr.ChatFixedParticipants, apierr.ChatParticipantExists, apierr.ChatFull},
			Handle: endpoint.JSON(http.StatusCreated, s.AddParticipants)},
		{Name: "chats.remove_participant", Method: http.MethodDelete, Path: "/v1/chats/{id}/participants/{user_id}", Subject: access.NoSubject("the creator of a chat decides who takes part"),
			Access: access.On(access.Chats, access.Update), Summary: "Remove a participant from a chat, or leave it.",
			Faults: []apierr.Kind{apierr.ChatNotFound, apierr.ChatFixedParticipants, apierr.ChatParticipantNotFound},
			Handle: endpoint.JSON(http.StatusOK, s.RemoveParticipant)},
	}
	rows = append(rows, s.inboxEndpoints()...)
	for i := range rows {
		if m := rows[i].Method; m == http.MethodPost || m == http.MethodPut { // these store more for the owner
			rows[i].Faults = append(rows[i].Faults, apierr.QuotaExceeded)
		}
		rows[i].Tag, rows[i].Limit = "Chats", ratelimit.Private
		if rows[i].Roles == nil {
			rows[i].Roles = []string{access.Advisor, access.Customer}
		}
	}
	return rows
}

// inboxEndpoints returns the rows of the inbox. The staff alone get them; the service checks that they read all customers.
func (s *Service) inboxEndpoints() []endpoint.Endpoint {
	write := endpoint.JSON(http.StatusCreated, s.WriteToBank)
	write.Out = reflect.TypeFor[Chat]()
	messages := endpoint.JSON(http.StatusOK, s.ThreadMessages)
	messages.Out = reflect.TypeFor[[]ListedMessage]()
	noSubject := access.NoSubject("an answer, a note and the state of a thread give no rights; an assignee already answers customers")
	unknown := []apierr.Kind{apierr.ThreadNotFound}
	rows := []endpoint.Endpoint{
		{Name: "inbox.list", Method: http.MethodGet, Path: "/v1/inbox", Summary: "List the threads of the team inbox.",
			Doc: endpoint.Doc{Search: threadList.Search()}, Handle: endpoint.JSON(http.StatusOK, s.Inbox)},
		{Name: "inbox.templates", Method: http.MethodGet, Path: "/v1/inbox/templates", Summary: "List the templates for answers, in all languages.",
			Handle: endpoint.JSON(http.StatusOK, s.Templates)},
		{Name: "inbox.get", Method: http.MethodGet, Path: "/v1/inbox/{id}", Summary: "Get a thread of the team inbox.",
			Faults: unknown, Handle: endpoint.JSON(http.StatusOK, s.Thread)},
		{Name: "inbox.update", Method: http.MethodPatch, Path: "/v1/inbox/{id}", Subject: noSubject,
			Summary: "Change the state, the assignee or the pause of a thread.",
			Faults:  []apierr.Kind{apierr.ThreadNotFound, apierr.ChatFull, apierr.PreconditionFailed}, Handle: endpoint.JSON(http.StatusOK, s.Update)},
		{Name: "inbox.messages", Method: http.MethodGet, Path: "/v1/inbox/{id}/messages", Summary: "List the messages of a thread, the newest first.",
			Faults: unknown, Doc: endpoint.Doc{Linked: true}, Handle: messages},
		{Name: "inbox.answer", Method: http.MethodPost, Path: "/v1/inbox/{id}/messages", Subject: noSubject, Summary: "Answer a customer.",
			Faults: []apierr.Kind{apierr.ThreadNotFound, apierr.ChatFull}, Handle: endpoint.JSON(http.StatusCreated, s.Answer)},
		{Name: "inbox.notes.list", Method: http.MethodGet, Path: "/v1/inbox/{id}/notes", Summary: "List the internal notes about a thread.",
			Faults: unknown, Doc: endpoint.Doc{Search: noteList.Search()}, Handle: endpoint.JSON(http.StatusOK, s.Notes)},
		{Name: "inbox.notes.add", Method: http.MethodPost, Path: "/v1/inbox/{id}/notes", Subject: noSubject, Summary: "Add an internal note to a thread.",
			Faults: unknown, Handle: endpoint.JSON(http.StatusCreated, s.AddNote)},
	}
	for i := range rows {
		rows[i].Access, rows[i].Roles = access.SignedIn, []string{access.Advisor}
	}
	return append(rows, endpoint.Endpoint{Name: "chats.write_to_bank", Method: http.MethodPost, Path: "/v1/chats/bank",
		Subject: access.NoSubject("the creator gives rights to a chat of their own"), Access: access.On(access.Chats, access.Create),
		PeopleOnly: true, Summary: "Open the caller's chat with the bank.",
		Doc: endpoint.Doc{Answers: []endpoint.Answer{
			{Status: http.StatusCreated, Says: "The new chat."}, {Status: http.StatusOK, Says: "The chat that the caller has with the bank already."},
		}},
		Faults: []apierr.Kind{apierr.ChatFull}, Handle: write})
}

// ReplyTemplate is a text that staff can start an answer from.
type ReplyTemplate struct {
	ID    string            `json:"id" format:"-" example:"received"`
	Texts map[string]string `json:"texts" doc:"By language: en, de, fr, it."`
}

// ReplyTemplates are all templates.
type ReplyTemplates struct {
	Templates []ReplyTemplate `json:"templates"`
}

// replyIDs are the templates. Their texts have the keys chats.reply.<id>.
var replyIDs = []string{"received", "need_document", "photo_unreadable", "verified", "appointment", "call_back", "more_information", "solved"}

// Templates returns the templates for answers in all languages: staff write in the language of the customer.
func (s *Service) Templates(ctx context.Context, _ endpoint.None) (ReplyTemplates, error) {
	out := ReplyTemplates{Templates: []ReplyTemplate{}}
	if err := checkTeam(ctx); err != nil {
		return out, err
	}
	for _, id := range replyIDs {
		texts := map[string]string{}
		for _, language := range []types.Language{types.English, types.German, types.French, types.Italian} {
			texts[language.String()] = s.texts.Text(language.String(), "chats.reply."+id, nil)
		}
		out.Templates = append(out.Templates, ReplyTemplate{ID: id, Texts: texts})
	}
	return out, nil
}
