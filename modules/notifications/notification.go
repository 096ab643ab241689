package notifications

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// Notification is the copy of one recipient. What the four lists of channels stand for is not kept: they are empty.
type Notification struct {
	ID                string      `json:"id"`
	UserID            string      `json:"user_id"`                                                     // the recipient
	CustomerID        string      `json:"customer_id" doc:"The nil id where it concerns no customer."` // the nil id where it concerns no customer
	Event             string      `json:"event" example:"customer_status_changed"`
	Title             string      `json:"title" example:"Customer verified"`
	Content           string      `json:"content" example:"Anna Keller is now verified."`
	RecID             string      `json:"rec_id"` // the record it refers to
	RecType           string      `json:"rec_type"`
	CreatedAt         *store.Time `json:"created_at"`
	SentAt            *store.Time `json:"sent_at" doc:"When it was first written to a stream."` // first written to a stream
	ReadAt            *store.Time `json:"read_at"`
	Read              bool        `json:"read"`
	Test              bool        `json:"test,omitzero" doc:"Made by the trigger for tests; missing from all others."`
	ChannelsAttempted []string    `json:"channels_attempted" example:""`
	ChannelsSent      []string    `json:"channels_sent" example:""`
	ChannelsDelivered []string    `json:"channels_delivered" example:""`
	ChannelsFailed    []string    `json:"channels_failed" example:""`

	// What the API does not show.
	titleKey, contentKey string
	metadata             string
	deleted              bool
	version              int64
	language             string // in which it is worded
}

// Listed is a notification as lists show it, with a link to what it is about.
type Listed struct {
	Notification
	LinkURL  string `json:"link_url"`
	LinkText string `json:"link_text"`
}

// ETag is the version of the row and the language in which it is worded.
func (n *Notification) ETag() string {
	if n == nil || n.version == 0 {
		return ""
	}
	return endpoint.VersionTag(n.version) + "-" + n.language
}

// nothing is what marking read answers for a row that the caller does not have.
func nothing() *Notification {
	return &Notification{ID: store.NilID, UserID: store.NilID, CustomerID: store.NilID, RecID: store.NilID}
}

const columns = `
	id, user_id, customer_id, event, title_key, content_key, content, rec_id, rec_type, metadata,
	created_at, sent_at, read_at, read, deleted, version`

func scanNotification(row records.Row) (Notification, error) {
	var n Notification
	var createdAt store.Time
	err := row.Scan(&n.ID, &n.UserID, &n.CustomerID, &n.Event, &n.titleKey, &n.contentKey, &n.Content, &n.RecID, &n.RecType,
		&n.metadata, &createdAt, &n.SentAt, &n.ReadAt, &n.Read, &n.deleted, &n.version)
	n.CreatedAt, n.Test = &createdAt, n.metadata == testMetadata
	return n, err
}

func scanListed(row records.Row) (Listed, error) {
	n, err := scanNotification(row)
	return Listed{Notification: n}, err
}

const notificationsTable = "notifications"

// table reads one row. Its recipient reads it; a grant on the row or on the type lets others.
var table = &records.Table[Notification]{
	Type: access.Notifications, From: notificationsTable, Columns: columns, Scan: scanNotification,
	Relations: []records.Relation{{Allows: access.Read, SQL: "user_id = $1"}}, Missing: apierr.NotificationNotFound,
}

var notificationList = list.New(list.Source[Listed]{
	From: notificationsTable, Columns: columns, ID: "id", Created: "created_at", Tables: []string{notificationsTable},
	Base: list.Where{SQL: "deleted = FALSE"}, Scan: scanListed,
	Fields: list.Fields{
		{Name: "id", Type: list.UUID, Column: "id"},
		{Name: "customer_id", Type: list.UUID, Column: "customer_id"},
		{Name: "user_id", Type: list.UUID, Column: "user_id"},
		{Name: "event", Type: list.Text, Column: "event"},
		{Name: "title", Type: list.Blank},
		{Name: "content", Type: list.Text, Column: "content", Key: "content_low"},
		{Name: "rec_id", Type: list.UUID, Column: "rec_id"},
		{Name: "rec_type", Type: list.Text, Column: "rec_type"},
		{Name: "created_at", Type: list.Time, Column: "created_at"},
		{Name: "sent_at", Type: list.Time, Column: "sent_at", Null: true},
		{Name: "read", Type: list.Bool, Column: "read"},
		{Name: "read_at", Type: list.Time, Column: "read_at", Null: true},
	},
})

// List gives the notifications that the caller may see, of whomever, worded by the template of their event.
func (s *Service) List(ctx context.Context, in ListInput) (list.Page[Listed], error) {
	language, err := s.language(ctx, in.customerID)
	if err != nil {
		return list.Page[Listed]{}, err
	}
	page, err := notificationList.Page(ctx, s.db, in.Query, table.Visible(access.From(ctx)))
	for i := range page.Data.Rows {
		s.words.render(language, &page.Data.Rows[i])
	}
	return page, err
}

// Get gives one notification, worded by its keys. It returns apierr.NotificationNotFound also for one that the caller
// may not see.
func (s *Service) Get(ctx context.Context, in OneInput) (*Notification, error) {
	n, err := table.Get(ctx, s.db, in.ID, access.Read)
	if errors.Is(err, apierr.NoAccess) || err == nil && n.deleted {
		return nil, apierr.NotificationNotFound
	}
	if err != nil {
		return nil, err
	}
	s.words.resolve(requestLanguage(ctx), &n)
	return &n, nil
}

// render words a notification for lists and streams: by the template of its event where that resolves, else by its keys.
func (w words) render(language string, n *Listed) {
	n.LinkURL = linkPath(n.RecType, n.RecID, n.CustomerID)
	args := map[string]any{}
	if err := json.Unmarshal([]byte(n.metadata), &args); err != nil {
		args = nil // written by us; a damaged row is worded by its keys
	}
	args = w.localized(language, args)
	title, ok := w.template(language, n.Event, "push.title", args)
	if !ok {
		title = w.key(language, n.titleKey)
	}
	content, ok := w.template(language, n.Event, "push.content", args)
	if !ok {
		content = n.Content
		if content == "" {
			content = w.key(language, n.contentKey)
		}
	}
	n.Title, n.Content = title, content
	if n.LinkURL != "" {
		n.LinkText, _ = w.template(language, n.Event, "push.link_text", args) // a link may do without
	}
}

// resolve words a notification by its keys. A text that somebody wrote stays.
func (w words) resolve(language string, n *Notification) {
	n.language = language
	n.Title = w.key(language, n.titleKey)
	if n.Content == "" {
		n.Content = w.key(language, n.contentKey)
	}
}

const selectCustomerLanguage = `SELECT language FROM customers WHERE id = $1`

// language is that of the customer, where one is named and has one, else that of the request.
func (s *Service) language(ctx context.Context, customerID string) (string, error) {
	if customerID == "" || customerID == store.NilID {
		return requestLanguage(ctx), nil
	}
	var language string
	err := s.db.QueryRow(ctx, selectCustomerLanguage, customerID).Scan(&language)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return "", fmt.Errorf("read the language of a customer: %w", err)
	}
	if language == "" {
		return requestLanguage(ctx), nil
	}
	return language, nil
}

// Standings answers permission checks: the recipient of a notification reads it.
func (s *Service) Standings(ctx context.Context, userID string, ids []string) (map[string]access.Standing, error) {
	return table.Standings(ctx, s.db, userID, ids)
}
