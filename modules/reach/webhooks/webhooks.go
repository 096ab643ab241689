// Package webhooks sends the events of the change feed to addresses that administrators have registered.
//
// A webhook belongs to an account, a service account or an administrator, and receives what this account may read when it is sent.
// Requests are as Standard Webhooks describes them: webhook-id, webhook-timestamp and webhook-signature, the last with two
// signatures while a secret is being replaced.
//
// Each webhook has a cursor in the feed. The events after it become deliveries, a bounded number at a time; the rest waits in the
// feed itself, for any time. Deliveries are claimed with a lease, sent, and repeated over days.
//
// Guarantees: every event that the account may read is sent at least once, always under the same id. The events of one record are
// sent in their order: the next one not before the one before has been accepted or given up.
//
// The module owns the tables webhooks, webhook_progress and webhook_deliveries.
package webhooks

import (
	"cmp"
	"context"
	"crypto/x509"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"kontor/modules/kit/change"
	"kontor/modules/kit/event"
	"kontor/modules/kit/list"
	"kontor/modules/kit/outbound"
	"kontor/modules/kit/personal"
	"kontor/modules/kit/records"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
	"kontor/store"
)

// Feed is what the module needs from the change feed.
type Feed interface {
	// After returns at most limit events after a position that the caller of the context may read, and the position to continue
	// with. It returns apierr.CursorExpired.
	After(ctx context.Context, after change.Position, types []string, limit int) (events []change.Event, last change.Position, err error)
	Latest(ctx context.Context) (change.Position, error)
	Earliest(ctx context.Context) (change.Position, error)
	Before(ctx context.Context, at store.Time) (change.Position, error)
	// MayRead reports whether the caller of the context may read the record of an event now.
	MayRead(ctx context.Context, e change.Event) (bool, error)
	// Record returns the record of an event for the caller of the context, or nil.
	Record(ctx context.Context, e change.Event) (any, error)
	// Changed returns a channel that is closed at the next change.
	Changed() <-chan struct{}
	// PollInterval is the longest time between two reads: changes of other nodes come without a signal.
	PollInterval() time.Duration
	// ValidPattern reports whether a text is a type of events or a pattern for several.
	ValidPattern(text string) bool
	// MayFollow reports whether the caller may read the feed.
	MayFollow(caller *access.Caller) bool
}

// Accounts is what the module needs to know about the owners of webhooks.
type Accounts interface {
	// CallerOf returns an active user with their roles; ok is false for a user who is not active.
	CallerOf(ctx context.Context, q store.Querier, id string) (caller *access.Caller, ok bool, err error)
	// CheckMayActAs returns apierr.ServiceAccountNotFound, and apierr.GrantNotHeld unless the caller may act as the service account.
	CheckMayActAs(ctx context.Context, tx *store.Tx, id string) error
	// ActivePeople returns which of the users are active people.
	ActivePeople(ctx context.Context, q store.Querier, ids ...string) (map[string]bool, error)
	// Administrators returns the ids of the active people with the role Administrator.
	Administrators(ctx context.Context, q store.Querier) ([]string, error)
}

// Notifier is what the module needs from notifications.
type Notifier interface {
	Notify(ctx context.Context, tx *store.Tx, e event.Event) error
}

// Options are the settings of the module. A zero value stands for the default of the setting.
type Options struct {
	AllowedNetworks []netip.Prefix
	Timeout         time.Duration // of one call
	PauseAfter      time.Duration // without a success
	Keep            time.Duration // finished deliveries
	Product         string        // name and version, for the header User-Agent

	Policy   *access.Current
	TermsDue func() bool // reports whether a right has begun or ended that the tables do not show yet: nothing is sent meanwhile
	Texts    endpoint.Texts
	Log      *slog.Logger

	Roots   *x509.CertPool                                               // nil: those of the system
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error) // nil: the resolver of the system
	Pauses  []time.Duration                                              // between attempts; nil: over three days
}

// Service is the module.
type Service struct {
	personal.Nothing
	Options
	db       *store.DB
	feed     Feed
	accounts Accounts
	notifier Notifier
	client   *outbound.Client
	worker   *worker
	tries    *ratelimit.Limiter // of test calls, by user
}

const day = 24 * time.Hour

// New returns the module on a database. Nothing is sent before [Service.Start].
func New(db *store.DB, feed Feed, accounts Accounts, notifier Notifier, o Options) *Service {
	o.Timeout = cmp.Or(o.Timeout, 15*time.Second)
	o.PauseAfter = cmp.Or(o.PauseAfter, 5*day)
	o.Keep = cmp.Or(o.Keep, 30*day)
	o.Product = cmp.Or(o.Product, "Kontor")
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Pauses == nil {
		o.Pauses = pauses
	}
	s := &Service{Options: o, db: db, feed: feed, accounts: accounts, notifier: notifier}
	s.client = outbound.New(outbound.Options{Allowed: o.AllowedNetworks, Timeout: o.Timeout, Roots: o.Roots, Resolve: o.Resolve, Now: db.Clock().Now})
	s.worker, s.tries = newWorker(s), ratelimit.New(db.Clock().Now)
	for column := range secretColumns {
		db.RegisterSealed(store.SealedColumn{Table: webhooksTable, Column: column, Select: secretColumns[column].selectOld, Update: secretColumns[column].update})
	}
	return s
}

// Start starts the deliveries.
func (s *Service) Start(ctx context.Context) error { return s.worker.outbox.Start(ctx) }

// Close waits for the calls that are being made, until the context ends.
func (s *Service) Close(ctx context.Context) error {
	s.worker.outbox.Stop(ctx)
	s.client.Close()
	return nil
}

// Records returns the relations of users to webhooks.
func (s *Service) Records() map[access.RecordType]access.Records {
	return map[access.RecordType]access.Records{access.Webhooks: records.Of(s.db, &table)}
}

// Endpoints returns the rows of the module. No built-in role but Administrator has grants on them. Only people who have shown a
// second factor create and change webhooks: they decide where data goes. Service accounts can see their own, test and replay.
func (s *Service) Endpoints() []endpoint.Endpoint {
	const one = "/v1/webhooks/{id}"
	found := []apierr.Kind{apierr.WebhookNotFound}
	changes := []apierr.Kind{apierr.WebhookNotFound, apierr.GrantNotHeld, apierr.PreconditionFailed}
	return endpoint.Group("Webhooks", ratelimit.Private, []endpoint.Endpoint{
		{Name: "webhooks.create", Method: http.MethodPost, Path: "/v1/webhooks", Subject: access.NoSubject("the rights of the account are compared"), Access: access.On(access.Webhooks, access.Create), Assurance: endpoint.SecondFactor,
			Summary: "Create a webhook.", Doc: endpoint.Doc{Description: callDescription}, Faults: []apierr.Kind{apierr.GrantNotHeld, apierr.TooManyWebhooks},
			Handle: endpoint.JSON(http.StatusCreated, s.Create)},
		{Name: "webhooks.try", Method: http.MethodPost, Path: "/v1/webhooks/test", Subject: access.NoSubject("it sends nothing that an account may read"), Access: access.On(access.Webhooks, access.Create), Assurance: endpoint.SecondFactor,
			Summary: "Send a test event to an address before a webhook is created.",
			Doc:     endpoint.Doc{Description: "The server waits for at most five seconds for the answer. The event of the type `webhooks.test` is signed with a secret that is not kept."},
			Faults:  []apierr.Kind{apierr.RateLimited}, Handle: endpoint.JSON(http.StatusOK, s.Try)},
		{Name: "webhooks.list", Method: http.MethodGet, Path: "/v1/webhooks", Access: access.On(access.Webhooks, access.Read),
			Summary: "List webhooks.", Compression: endpoint.Uncompressed, // addresses of receivers may contain secrets
			Doc: endpoint.Doc{Search: webhookList.Search()}, Handle: endpoint.JSON(http.StatusOK, s.list)},
		{Name: "webhooks.get", Method: http.MethodGet, Path: one, Access: access.On(access.Webhooks, access.Read),
			Summary: "Get a webhook.", Compression: endpoint.Uncompressed, Faults: found, Handle: endpoint.JSON(http.StatusOK, s.get)},
		{Name: "webhooks.update", Method: http.MethodPatch, Path: one, Subject: access.NoSubject("the rights of the account are compared"), Access: access.On(access.Webhooks, access.Update),
			Assurance: endpoint.SecondFactor, Find: records.Finder(s.db, &table, access.Update),
			Summary: "Change, pause or resume a webhook.", Faults: changes, Handle: endpoint.JSON(http.StatusOK, s.Update)},
		{Name: "webhooks.delete", Method: http.MethodDelete, Path: one, Subject: access.NoSubject("a webhook is no right"), Access: access.On(access.Webhooks, access.Delete),
			Assurance: endpoint.SecondFactor, Find: records.Finder(s.db, &table, access.Delete),
			Summary: "Delete a webhook and its deliveries.", Faults: []apierr.Kind{apierr.WebhookNotFound, apierr.PreconditionFailed},
			Handle: endpoint.JSON(http.StatusOK, s.delete)},
		{Name: "webhooks.rotate_secret", Method: http.MethodPost, Path: one + "/secret", Subject: access.NoSubject("the rights of the account are compared"), Access: access.On(access.Webhooks, access.Update),
			Assurance: endpoint.SecondFactor, Find: records.Finder(s.db, &table, access.Update),
			Summary: "Replace the secret of a webhook.", Faults: changes, Handle: endpoint.JSON(http.StatusOK, s.Rotate)},
		{Name: "webhooks.test", Method: http.MethodPost, Path: one + "/test", Subject: access.NoSubject("it sends to the same address what the account may read"), Access: access.On(access.Webhooks, access.Update),
			Summary: "Send a test event to a webhook.", Faults: found, Handle: endpoint.JSON(http.StatusCreated, s.Test)},
		{Name: "webhooks.replay", Method: http.MethodPost, Path: one + "/replay", Subject: access.NoSubject("it sends to the same address what the account may read"), Access: access.On(access.Webhooks, access.Update),
			Summary: "Send the events since a time again.", Faults: found, Handle: endpoint.JSON(http.StatusOK, s.replay)},
		{Name: "webhooks.deliveries", Method: http.MethodGet, Path: one + "/deliveries", Access: access.On(access.Webhooks, access.Read),
			Summary: "List the deliveries of a webhook.", Doc: endpoint.Doc{Search: deliveryList.Search()}, Faults: found,
			Handle: endpoint.JSON(http.StatusOK, s.deliveries)},
		{Name: "webhooks.replay_delivery", Method: http.MethodPost, Path: one + "/deliveries/{delivery_id}/replay", Subject: access.NoSubject("it sends to the same address what the account may read"), Access: access.On(access.Webhooks, access.Update),
			Summary: "Send a delivery again.", Faults: []apierr.Kind{apierr.WebhookNotFound, apierr.WebhookDelivery, apierr.WebhookNotFinished},
			Handle: endpoint.JSON(http.StatusOK, s.ReplayOne)},
	})
}

const callDescription = "Each event is a POST with the JSON object `type`, `timestamp` and `data`, signed as [Standard Webhooks](https://www.standardwebhooks.com) " +
	"describes: `webhook-id` is the id of the event and the same for every attempt, `webhook-timestamp` the time of the attempt in seconds, and " +
	"`webhook-signature` a list of `v1` signatures, two while a secret is being replaced.\n\n" +
	"An answer of 2xx within the time limit accepts the event. `410` disables the webhook; every other answer, a redirect too, is a failure: the call is " +
	"repeated ten times over three days, not before `Retry-After`. A receiver must expect repetitions. The events of one record come in their order.\n\n" +
	"The account of the webhook decides which events are sent: those of records that it may read at that moment. It needs the grant on `GET /v1/events`."

func (s *Service) list(ctx context.Context, in list.Input) (list.Page[Webhook], error) {
	return webhookList.Page(ctx, s.db, in.Query, table.Visible(access.From(ctx)))
}

func (s *Service) get(ctx context.Context, in endpoint.ByID) (Webhook, error) {
	return table.Get(ctx, s.db, in.ID, access.Read)
}

// PersonalData lists the tables of the module.
func (s *Service) PersonalData() []personal.Table {
	return []personal.Table{
		{Name: "webhooks", Why: "Webhooks belong to programs; addresses and descriptions are notes of administrators."},
		{Name: "webhook_progress", Why: "It holds how far the delivery of events has come."},
		{Name: "webhook_deliveries", Why: "Events hold ids of records and none of their data. They are deleted after webhooks.keep_days."},
	}
}
