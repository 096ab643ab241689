// Package notifications notifies users of events.
//
// A module that changes something calls [Service.Notify] in the transaction of the change, so that a change and its
// notifications are committed together or not at all. An event is stored as one parent row, one notification for each
// recipient, and one [deliveries.Delivery] for each channel and address. After the commit the notifications go to the open streams
// of their recipients.
//
// Streams send after the commit and resume from the table: a client that resumes gets each notification once and
// in order. Times and ids of notifications are the order of the
// commits, also of those of several nodes.
package notifications

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"kontor/modules/kit/outbox"
	"kontor/modules/kit/records"
	"kontor/modules/kit/streams"
	"kontor/modules/kit/types"
	"kontor/modules/reach/deliveries"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
	"kontor/server/sse"
	"kontor/store"
)

// Directory provides what the module needs to know about users.
type Directory interface {
	// Addresses returns the validated addresses of those of the users who are active, the oldest of each user first.
	Addresses(ctx context.Context, q store.Querier, userIDs ...string) ([]types.Address, error)
	// People returns those of the users that exist, by id.
	People(ctx context.Context, userIDs []string) (map[string]endpoint.Person, error)
}

// Options are the settings of the module. A zero value stands for the default of the setting.
type Options struct {
	BaseURL            string        // of the console, for links in e-mails
	BankName           string        // in e-mails and SMS
	Heartbeat          time.Duration // of a stream
	ConnectionsPerUser int
	NoTrigger          bool // omits the endpoint for test notifications

	Policy *access.Current
	// TermsDue reports whether a right has begun or ended that the tables do not show yet; nil: none does. Streams wait meanwhile.
	TermsDue func() bool
	Log      *slog.Logger
}

// setDefaults replaces zero values.
func (o *Options) setDefaults() {
	o.BankName = cmp.Or(o.BankName, "Kontor")
	o.Heartbeat = cmp.Or(o.Heartbeat, 25*time.Second)
	o.ConnectionsPerUser = cmp.Or(o.ConnectionsPerUser, 10)
	o.Policy = cmp.Or(o.Policy, &access.Current{})
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.TermsDue == nil {
		o.TermsDue = func() bool { return false }
	}
}

// Service keeps notifications and their deliveries. Create one with [New].
type Service struct {
	access.Records // answers permission checks from the relations of the table

	db         *store.DB
	options    Options
	texts      Texts
	templates  templates
	timestamps timestamps
	deliveries *deliveries.Service

	Peers Peers // set before the first event and stream

	streams *streams.Streams
	feed    *feed
	counts  *streamCounts
	sent    *sentRecorder

	missing map[string]time.Time // nodes that ReleaseNodes has not found since a time

	closeOnce sync.Once
}

// Peers are what notifications need of modules that are built later.
type Peers struct {
	Sessions  streams.Sessions
	Directory Directory // nil: no user has an address
	Chats     Chats     // nil: frames carry no messages
}

// New returns the module on a database, whose e-mails and SMS the deliveries send. Nothing is recorded before [Service.Start].
func New(db *store.DB, texts Texts, sender *deliveries.Service, o Options) *Service {
	o.setDefaults()
	texts = bankTexts{texts, o.BankName}
	s := &Service{Records: records.Of(db, table), db: db, options: o, texts: texts, templates: templates{texts}, deliveries: sender}
	s.sent = newSentRecorder(db, o.Log)
	s.streams = streams.New(streams.Options{
		Hub: sse.Options{Heartbeat: o.Heartbeat, PerUser: o.ConnectionsPerUser, Now: db.Clock().Now, Wrote: s.recordSent,
			CloseFrame: closeFrame, Log: o.Log, MayWrite: s.mayWrite, Ended: s.streamEnded},
		Sessions: func() streams.Sessions { return s.Peers.Sessions }, Policy: o.Policy, MayOpen: mayOpen, Certain: s.mayWrite,
	})
	s.feed = newFeed(s)
	s.counts = &streamCounts{service: s, node: outbox.ThisNode(db), changed: map[string]struct{}{}}
	return s
}

// Start begins to record which notifications were sent.
func (s *Service) Start() { s.sent.start() }

// Drain sends the close frame on all streams and rejects new ones. It does not wait.
func (s *Service) Drain() { s.streams.Drain() }

// Close ends the streams. The database stays open.
func (s *Service) Close(ctx context.Context) error {
	s.closeOnce.Do(func() {
		s.streams.EndAll(ctx)
		s.feed.close()
		s.streams.Close()
		s.counts.close(ctx)
		s.sent.stop()
	})
	return nil
}

// Endpoints returns the rows of the module.
func (s *Service) Endpoints() []endpoint.Endpoint {
	all := []string{access.Everyone}
	rows := []endpoint.Endpoint{
		{Name: "notifications.list", Method: http.MethodGet, Path: "/v1/notifications", Roles: all,
			Access: access.On(access.Notifications, access.Read), Summary: "List notifications.",
			Doc:    endpoint.Doc{Search: notificationList.Search()},
			Handle: endpoint.JSON(http.StatusOK, s.List)},
		{Name: "notifications.get", Method: http.MethodGet, Path: "/v1/notifications/{notification_id}", Roles: all,
			Access: access.On(access.Notifications, access.Read), Summary: "Get a notification.",
			Faults: []apierr.Kind{apierr.NotificationNotFound}, Handle: endpoint.JSON(http.StatusOK, s.Get)},
		{Name: "notifications.mark_read", Method: http.MethodPatch, Path: "/v1/notifications/{notification_id}/read", Roles: all,
			Access: access.SignedIn, Summary: "Mark a notification as read.",
			Faults: []apierr.Kind{apierr.PreconditionFailed}, Handle: endpoint.JSON(http.StatusOK, s.MarkRead)},
		{Name: "notifications.mark_record", Method: http.MethodPost, Path: "/v1/notifications/read", Roles: all,
			Access: access.SignedIn, Summary: "Mark the notifications about a record as read.",
			Handle: endpoint.JSON(http.StatusOK, s.MarkRecord)},
		{Name: "notifications.mark_all", Method: http.MethodPost, Path: "/v1/notifications/read-all", Roles: all,
			Access: access.SignedIn, Summary: "Mark all of the caller's notifications that match a search as read.",
			Doc:    endpoint.Doc{Search: notificationList.Search()},
			Handle: endpoint.JSON(http.StatusOK, s.MarkAll)},
		{Name: "notifications.unread_count", Method: http.MethodGet, Path: "/v1/notifications/unread-count", Roles: all,
			Access: access.SignedIn, Summary: "Count unread notifications.",
			Handle: endpoint.JSON(http.StatusOK, s.CountUnread)},
		{Name: "notifications.delete", Method: http.MethodDelete, Path: "/v1/notifications/{notification_id}", Roles: all,
			Access: access.SignedIn, Summary: "Delete an event for all recipients.", SecretID: true,
			Doc: endpoint.Doc{Description: "The id is that of the event, which only the trigger for test notifications returns. Every caller " +
				"with the grant on this endpoint may delete an event whose id they know. The id of a notification finds no event."},
			Faults: []apierr.Kind{apierr.DatabaseError}, Handle: endpoint.JSON(http.StatusOK, s.Delete)},
		{Name: "notifications.hide", Method: http.MethodPost, Path: "/v1/notifications/{notification_id}/hide", Roles: all,
			Access: access.SignedIn, Summary: "Hide one of the caller's notifications.",
			Doc:    endpoint.Doc{Description: "It disappears from the caller's list, count and streams. Other recipients of the event keep theirs."},
			Faults: []apierr.Kind{apierr.NotificationNotFound}, Handle: endpoint.JSON(http.StatusOK, s.Hide)},
		{Name: "notifications.preferences", Method: http.MethodGet, Path: "/v1/notifications/preferences", Roles: all,
			Access: access.SignedIn, Summary: "Get notification preferences (not implemented).",
			Handle: endpoint.JSON(http.StatusOK, s.Preferences)},
		{Name: "notifications.set_preferences", Method: http.MethodPut, Path: "/v1/notifications/preferences", Roles: all,
			Access: access.SignedIn, Summary: "Set notification preferences (not implemented).",
			Handle: endpoint.JSON(http.StatusOK, s.Preferences)},
	}
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		name := map[string]string{http.MethodGet: "notifications.stream", http.MethodPost: "notifications.stream_post"}[method]
		rows = append(rows, endpoint.Endpoint{Name: name, Method: method, Path: streamPath, Roles: all,
			Access: access.SignedIn, Summary: "Open the notification stream.", Draining: drainingText,
			Faults: []apierr.Kind{apierr.TooManyStreams, apierr.AuthUnavailable},
			Doc: endpoint.Doc{Description: streamDescription, Headers: []string{"Last-Event-ID"}, Answers: []endpoint.Answer{
				{Status: http.StatusOK, Media: "text/event-stream", Says: "The stream; it stays open.", Example: streamExample, Frames: streamFrames},
			}},
			Handle: endpoint.Raw(nil, s.openStream)})
	}
	if !s.options.NoTrigger {
		rows = append(rows, endpoint.Endpoint{Name: "notifications.trigger", Method: http.MethodPost, Path: "/v1/notifications/trigger",
			Access: access.APIKey, Summary: "Send a test notification.", MaxBody: maxTrigger, Handle: endpoint.JSON(http.StatusOK, s.Trigger)})
	}
	return endpoint.Group("Notifications", ratelimit.Private, rows)
}

// maxTrigger bounds the content of a notification, and so a page of the list.
const maxTrigger = 256 << 10

// streamDescription describes the stream in the API document.
const streamDescription = "The frames are `open` (once, with a `message`), `message` (a notification; its `id` is that of the frame), `reset` (the " +
	"`Last-Event-ID` is unknown: load the list again) and `close` (the service shuts down: reconnect after a pause). A comment keeps " +
	"the connection alive. Missed notifications follow a known `Last-Event-ID`; without one, system notifications that never reached a " +
	"stream of this user come first. GET and POST both open a stream.\n\n" +
	"A notification about a chat message has the member `chat`: `chat_id`, `message_id`, `type` (`text` or `system`), `text`, `created_by` and " +
	"`created_at`. `text` holds at most 2000 characters; `truncated` is true if the message is longer. The member `people` names the " +
	"author. Both are missing if the user has left the chat or may not read its messages."

const streamExample = "event: open\ndata: {\"message\":\"Connection established\"}\n\n" +
	"id: 0193a7c4-5e2f-7b1a-9c3d-8f6e2a4b7c10\nevent: message\ndata: {\"id\":\"0193a7c4-5e2f-7b1a-9c3d-8f6e2a4b7c10\",\"user_id\":\"0193a7c4-5e2f-7b1a-9c3d-8f6e2a4b7c14\"," +
	"\"customer_id\":\"00000000-0000-0000-0000-000000000000\",\"event\":\"message_received\",\"title\":\"New message\",\"content\":\"Anna Keller has written to you.\"," +
	"\"rec_type\":\"chats\",\"link_url\":\"/chats/0193a7c4-5e2f-7b1a-9c3d-8f6e2a4b7c11\",\"link_text\":\"Open the chat\",\"read\":false," +
	"\"created_at\":\"2026-01-31T08:15:30.123Z\",\"sent_at\":\"2026-01-31T08:15:30.123Z\",\"channels_attempted\":[\"stream\"]," +
	"\"channels_sent\":[\"stream\"],\"channels_delivered\":[\"stream\"],\"channels_failed\":[]," +
	"\"chat\":{\"chat_id\":\"0193a7c4-5e2f-7b1a-9c3d-8f6e2a4b7c11\",\"message_id\":\"0193a7c4-5e2f-7b1a-9c3d-8f6e2a4b7c12\",\"type\":\"text\"," +
	"\"text\":\"Good morning\",\"created_by\":\"0193a7c4-5e2f-7b1a-9c3d-8f6e2a4b7c13\",\"created_at\":\"2026-01-31T08:15:30.123Z\"}," +
	"\"people\":{\"0193a7c4-5e2f-7b1a-9c3d-8f6e2a4b7c13\":{\"display_name\":\"Anna Keller\",\"staff\":true}}}\n\n" +
	": keepalive\n\n"
