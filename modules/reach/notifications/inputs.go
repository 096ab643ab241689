package notifications

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/modules/kit/validate"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// ListInput holds the parameters of the list. CustomerID only selects the language.
type ListInput struct {
	Query      list.Params `query:"*"`
	CustomerID string      `query:"customer_id"`

	customerID string
}

// Validate checks the customer's id.
func (in *ListInput) Validate(v *apierr.Fields) {
	if in.CustomerID == "" {
		return
	}
	in.customerID = validate.Parsed(v, "customer_id", in.CustomerID, types.ParseID)
}

// OneInput identifies a notification, or for deletion the parent row of its event.
type OneInput struct {
	ID string `path:"notification_id"`
}

// ReadInput marks a notification as read if the member read has any value but null.
type ReadInput struct {
	ID   string                            `path:"notification_id"`
	Read endpoint.Optional[jsontext.Value] `json:"read" type:"any" example:"true" doc:"Any value but null marks the notification as read."`
}

// RecordInput identifies the record whose notifications are to be marked as read.
type RecordInput struct {
	RecType string `json:"rec_type"`
	RecID   string `json:"rec_id"`
}

// Validate checks type and id.
func (in *RecordInput) Validate(v *apierr.Fields) {
	in.RecType = validate.Required(v, "rec_type", in.RecType, maxRecType)
	if in.RecID == "" {
		v.Add("rec_id", "invalid.required")
	}
	in.RecID = validate.Parsed(v, "rec_id", in.RecID, types.ParseID)
}

const maxRecType = 100

// TriggerInput is the data of a test notification. It is not validated: values of the wrong type count as missing.
type TriggerInput struct {
	Type       lenientText `json:"type" example:"customers" doc:"Name of a record type; used unless rec_type and rec_id are both given."`
	Event      lenientText `json:"event" example:"customer_status_changed"`
	TitleKey   lenientText `json:"title_key" example:"notice.customer_status_changed.title"`
	Content    lenientText `json:"content"`
	CustomerID lenientID   `json:"customer_id"`
	UserIDs    lenientIDs  `json:"user_ids" maxItems:"1000"`
	RecType    lenientText `json:"rec_type"`
	RecID      lenientID   `json:"rec_id"`
}

// lenientText is a text. Any other JSON value is read as an empty text.
type lenientText string

// UnmarshalJSON accepts any value.
func (l *lenientText) UnmarshalJSON(data []byte) error {
	var text string
	_ = json.Unmarshal(data, &text) // another value leaves it empty
	*l = lenientText(text)
	return nil
}

// lenientID is a UUID. Any other JSON value is read as an empty text.
type lenientID string

// UnmarshalJSON accepts any value.
func (l *lenientID) UnmarshalJSON(data []byte) error {
	var text lenientText
	_ = text.UnmarshalJSON(data) // never fails
	if id, err := types.ParseID(string(text)); err == nil {
		*l = lenientID(id)
	}
	return nil
}

// lenientIDs are the UUIDs of an array. Its other elements are ignored.
type lenientIDs []string

// UnmarshalJSON accepts any value.
func (l *lenientIDs) UnmarshalJSON(data []byte) error {
	var all []lenientID
	_ = json.Unmarshal(data, &all) // another value leaves it empty
	for _, id := range all {
		if id != "" {
			*l = append(*l, string(id))
		}
	}
	return nil
}

// Notification is one recipient's copy of an event. The four lists of channels are always empty: the module does not keep
// what they stand for.
type Notification struct {
	ID                string      `json:"id"`
	UserID            string      `json:"user_id" doc:"The recipient."`
	CustomerID        string      `json:"customer_id" doc:"The customer that it concerns; the nil UUID for none."`
	Event             string      `json:"event" example:"customer_status_changed"`
	Title             string      `json:"title" example:"Customer verified"`
	Content           string      `json:"content" example:"Anna Keller is now verified."`
	RecID             string      `json:"rec_id" doc:"The record that it refers to."`
	RecType           string      `json:"rec_type"`
	CreatedAt         *store.Time `json:"created_at"`
	SentAt            *store.Time `json:"sent_at" doc:"When it was first written to a stream; null until then."`
	ReadAt            *store.Time `json:"read_at"`
	Read              bool        `json:"read"`
	Test              bool        `json:"test,omitzero" doc:"Created by the trigger for test notifications; missing from all others."`
	ChannelsAttempted []string    `json:"channels_attempted" example:""`
	ChannelsSent      []string    `json:"channels_sent" example:""`
	ChannelsDelivered []string    `json:"channels_delivered" example:""`
	ChannelsFailed    []string    `json:"channels_failed" example:""`

	// Not shown by the API:
	titleKey, contentKey string
	metadata             string
	deleted              bool
	chatMessageID        string // of the message that a stream frame carries; empty for none
	version              int64
	language             string // of title and content
}

// EachUser calls add with the recipient.
func (n Notification) EachUser(add func(id string)) {
	if n.UserID != store.NilID {
		add(n.UserID)
	}
}

// Listed is a notification as lists show it, with a link to the record that it refers to.
type Listed struct {
	Notification
	LinkURL  string `json:"link_url"`
	LinkText string `json:"link_text"`
}

// ETag returns the version of the row with the language of its texts.
func (n *Notification) ETag() string {
	if n == nil || n.version == 0 {
		return ""
	}
	return endpoint.VersionTag(n.version) + "-" + n.language
}

const columns = `
	id, user_id, customer_id, event, title_key, content_key, content, rec_id, rec_type, metadata,
	chat_message_id, created_at, sent_at, read_at, read, deleted, version`

func scanNotification(row records.Row) (Notification, error) {
	var n Notification
	var createdAt store.Time
	err := row.Scan(&n.ID, &n.UserID, &n.CustomerID, &n.Event, &n.titleKey, &n.contentKey, &n.Content, &n.RecID, &n.RecType,
		&n.metadata, &n.chatMessageID, &createdAt, &n.SentAt, &n.ReadAt, &n.Read, &n.deleted, &n.version)
	n.CreatedAt, n.Test = &createdAt, n.metadata == testMetadata
	return n, err
}

func scanListed(row records.Row) (Listed, error) {
	n, err := scanNotification(row)
	return Listed{Notification: n}, err
}

const notificationsTable = "notifications"

// table declares notifications as records: the recipient may read one, others by a grant on it or on the type.
var table = &records.Table[Notification]{
	Type: access.Notifications, From: notificationsTable, Columns: columns, Scan: scanNotification,
	Relations: []records.Relation{{Name: access.RelationHolder, Allows: access.Read, SQL: "user_id = $1"}}, Missing: apierr.NotificationNotFound,
}

var notificationList = list.New(list.Source[Listed]{
	From: notificationsTable, Columns: columns, ID: "id", Created: "created_at", Tables: []string{notificationsTable},
	Base: list.Where{SQL: "deleted = FALSE"}, Hidden: "deleted = TRUE", Scan: scanListed,
	Fields: list.Fields{
		{Name: "id", Type: list.UUID, Column: "id"},
		{Name: "customer_id", Type: list.UUID, Column: "customer_id", Index: list.ThenCreated},
		{Name: "user_id", Type: list.UUID, Column: "user_id", Index: list.First},
		{Name: "event", Type: list.Text, Column: "event", Key: "event", Index: list.ThenCreated, Few: true},
		{Name: "title", Type: list.Blank},
		{Name: "content", Type: list.Text, Column: "content", Key: "content_low", Index: list.EmptyApart},
		{Name: "rec_id", Type: list.UUID, Column: "rec_id", Index: list.First},
		{Name: "rec_type", Type: list.Text, Column: "rec_type", Key: "rec_type", Few: true},
		{Name: "created_at", Type: list.Time, Column: "created_at"},
		{Name: "sent_at", Type: list.Time, Column: "sent_at", Null: true, Index: list.NullsApart},
		{Name: "read", Type: list.Bool, Column: "read", Few: true},
		{Name: "read_at", Type: list.Time, Column: "read_at", Null: true, Index: list.NullsApart},
	},
})

// List returns a page of the notifications that the caller may read, their own and those of others, rendered by the
// templates of their events.
func (s *Service) List(ctx context.Context, in ListInput) (list.Page[Listed], error) {
	language, err := s.language(ctx, in.customerID)
	if err != nil {
		return list.Page[Listed]{}, err
	}
	page, err := notificationList.Page(ctx, s.db, in.Query, table.Visible(access.From(ctx)))
	for i := range page.Data.Rows {
		s.templates.renderListed(language, &page.Data.Rows[i])
	}
	return page, err
}

// Get returns one notification, rendered by its keys. It returns apierr.NotificationNotFound, also for a notification that
// the caller may not read.
func (s *Service) Get(ctx context.Context, in OneInput) (*Notification, error) {
	n, err := table.Get(ctx, s.db, in.ID, access.Read)
	if errors.Is(err, apierr.NoAccess) || err == nil && n.deleted {
		return nil, apierr.NotificationNotFound
	}
	if err != nil {
		return nil, err
	}
	s.templates.renderByKeys(endpoint.Language(ctx), &n)
	return &n, nil
}

const selectCustomerLanguage = `SELECT language FROM customer_languages WHERE id = $1`

// language returns the language of the customer, or that of the request if no customer is given or it has none.
func (s *Service) language(ctx context.Context, customerID string) (string, error) {
	if customerID == "" || customerID == store.NilID {
		return endpoint.Language(ctx), nil
	}
	var language string
	err := s.db.QueryRow(ctx, selectCustomerLanguage, customerID).Scan(&language)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return "", fmt.Errorf("read the language of a customer: %w", err)
	}
	if language == "" {
		return endpoint.Language(ctx), nil
	}
	return language, nil
}
