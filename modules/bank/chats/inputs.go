package chats

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/kit/list"
	"kontor/modules/kit/types"
	"kontor/modules/kit/validate"
	"kontor/server/apierr"
	"kontor/store"
)

const (
	maxContent = 10_000 // characters of a message
	maxChats   = 1000   // on a page
	allChats   = 1 << 30
	// maxMetadata is the maximum size in bytes of the metadata of a chat or message. Lists contain the metadata.
	maxMetadata = 4 << 10
	// Messages in one answer.
	defaultMessages = 50
	maxMessages     = 100
)

// OneInput identifies a chat.
type OneInput struct {
	ID string `path:"id"`
}

// ListInput holds the parameters of the list.
type ListInput struct {
	Limit  *int       `query:"limit" example:"20"`
	Offset *int       `query:"offset" minimum:"0" example:"0"`
	Before string     `query:"before" example:"1769847330123.0193a000-0000-7000-8000-000000000001" doc:"Only chats after this cursor, which is taken from the header Link of the previous page."`
	Text   list.Words `query:"q"`

	limit, offset int
	before        cursor
}

// cursor is the position of a chat in the list: the time of its latest activity, then its id. The zero cursor is before all.
type cursor struct {
	at store.Time
	id string
}

// String returns the cursor as the parameter before has it.
func (p cursor) String() string { return strconv.FormatInt(int64(p.at), 10) + "." + p.id }

// parseCursor parses the parameter before.
func parseCursor(text string) (cursor, bool) {
	at, id, _ := strings.Cut(text, ".")
	millis, err := strconv.ParseInt(at, 10, 64)
	if err != nil || millis < 0 {
		return cursor{}, false
	}
	id, err = types.ParseID(id)
	return cursor{store.Time(millis), id}, err == nil
}

// Validate checks the parameters.
func (in *ListInput) Validate(v *apierr.Fields) {
	in.Text.Validate(v)
	in.limit = allChats
	if in.Limit != nil {
		if in.limit = *in.Limit; in.limit < 1 || in.limit > maxChats {
			v.Add("limit", "invalid.range", apierr.Args{"Min": 1, "Max": maxChats})
		}
	}
	if in.Offset != nil {
		if in.offset = *in.Offset; in.offset < 0 {
			v.Add("offset", "invalid.min", apierr.Args{"Min": 0})
		}
	}
	if in.Before != "" {
		var ok bool
		if in.before, ok = parseCursor(in.Before); !ok {
			v.Add("before", "chats.place")
		}
	}
}

// CreateInput is the data of a new chat. The caller always takes part.
type CreateInput struct {
	Participants []string       `json:"participants" maxItems:"256"`
	Metadata     jsontext.Value `json:"metadata"`

	participants []string
	metadata     jsontext.Value
	support      bool
}

// Validate checks ids and metadata. Whether the users exist is checked in the transaction.
func (in *CreateInput) Validate(v *apierr.Fields) {
	in.participants = validate.IDs(v, "participants", in.Participants, MaxParticipants)
	in.metadata = jsontext.Value(validate.MetadataUpTo(v, "metadata", in.Metadata, maxMetadata))
	var known struct {
		Support jsontext.Value `json:"support"`
	}
	in.support = json.Unmarshal(in.metadata, &known) == nil && string(known.Support) == "true"
}

// AddInput identifies users to add: several as participants, or a single one as userId or, as the path of a removal, user_id.
type AddInput struct {
	ID           string   `path:"id"`
	Participants []string `json:"participants" required:"false" maxItems:"256" doc:"Users to add; userId adds a single one."`
	UserID       string   `json:"userId" doc:"A single user to add."`
	PathUserID   string   `json:"user_id" hidden:"true"` // another spelling

	participants []string
}

// Validate checks the ids.
func (in *AddInput) Validate(v *apierr.Fields) {
	for _, id := range []string{in.UserID, in.PathUserID} {
		if id != "" {
			in.Participants = append(in.Participants, id)
		}
	}
	in.participants = validate.IDs(v, "participants", in.Participants, MaxParticipants)
}

// RemoveInput identifies a participant of a chat.
type RemoveInput struct {
	ID     string `path:"id"`
	UserID string `path:"user_id"`
}

// PostInput is the data of a new message.
type PostInput struct {
	ID       string         `path:"id"`
	Content  string         `json:"content" minLength:"1" maxLength:"10000"`
	Metadata jsontext.Value `json:"metadata"`

	metadata jsontext.Value
}

// Validate checks the text.
func (in *PostInput) Validate(v *apierr.Fields) {
	in.Content = validate.RequiredText(v, "content", in.Content, maxContent)
	in.metadata = jsontext.Value(validate.MetadataUpTo(v, "metadata", in.Metadata, maxMetadata))
}

// MessagesInput holds the parameters of the list of messages. Before is the id of a message or a time. Without it the list
// starts with the newest message. A limit out of range is replaced by the nearest bound, as in all lists.
type MessagesInput struct {
	ID     string `path:"id"`
	Before string `query:"before" format:"uuid" doc:"Only messages older than the one with this id."`
	Limit  *int   `query:"limit" example:"20"`

	limit      int
	beforeID   string
	beforeTime store.Time
}

// Validate reads the parameters.
func (in *MessagesInput) Validate(v *apierr.Fields) {
	in.limit = defaultMessages
	if in.Limit != nil && *in.Limit > 0 {
		in.limit = min(*in.Limit, maxMessages)
	}
	if in.Before == "" {
		return
	}
	id, err := types.ParseID(in.Before)
	if err == nil {
		in.beforeID = id
		return
	}
	if in.beforeTime, err = store.ParseTime(in.Before); err != nil {
		v.Add("before", "chats.before")
	}
}

// end returns the number before which the messages are wanted.
func (in MessagesInput) end(ctx context.Context, q store.Querier) (int64, error) {
	var seq int64
	var err error
	switch {
	case in.Before == "":
		return afterLastMessage, nil
	case in.beforeID == "":
		err = q.QueryRow(ctx, selectSeqByTime, in.ID, in.beforeTime).Scan(&seq)
	default:
		err = q.QueryRow(ctx, selectSeq, in.beforeID, in.ID).Scan(&seq)
	}
	if errors.Is(err, store.ErrNotFound) {
		return 0, apierr.Invalid("before", "invalid.unknown_record")
	}
	return seq, err
}
