// Package deliveries sends e-mails and SMS.
//
// A module writes a [Delivery] in the transaction of its change ([Service.Enqueue]). After the commit the queue of its channel sends it
// through the gateway. A channel without a gateway has a local outbox: its deliveries count as sent at once, and administrators read
// their texts.
//
// Deliveries are sent at least once. A crash between the gateway's answer and its record repeats a delivery, under the same id.
package deliveries

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"kontor/modules/kit/outbox"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/metrics"
	"kontor/server/ratelimit"
	"kontor/store"
)

// The channels of deliveries.
const (
	Email = "email"
	SMS   = "sms"
)

// Sent is the state of a delivery that the gateway has accepted, or that is kept in the local outbox. The others are those of
// [outbox.Outbox].
const Sent = "sent"

// Delivery is one message to one address.
type Delivery struct {
	ID             string      `json:"id"`
	NotificationID *string     `json:"notification_id" doc:"The recipient's notification; null for a message without one."`
	UserID         string      `json:"user_id"`
	Channel        string      `json:"channel" enum:"email,sms"`
	Recipient      string      `json:"to"`
	Subject        string      `json:"subject"`
	Text           string      `json:"text" doc:"Empty for a code that was sent or waits for its gateway."`
	Masked         bool        `json:"masked,omitzero" doc:"The text has a code or a secret link, and is masked: only people with a recent authentication and every right of the recipient see it."`
	Status         string      `json:"status" enum:"queued,sending,sent,retrying,dead"`
	Attempts       int         `json:"attempts"`
	LastError      *string     `json:"last_error" example:"connection refused"`
	NextAttemptAt  *store.Time `json:"next_attempt_at"`
	CreatedAt      store.Time  `json:"created_at"`
	SentAt         *store.Time `json:"sent_at"`

	HTML   string `json:"-"`
	Secret bool   `json:"-"` // the text is for the recipient alone, and is removed once it was sent

	sealed string // the texts of a secret delivery; empty: they are in Text and HTML
}

// EachUser calls add with the recipient.
func (d Delivery) EachUser(add func(id string)) { add(d.UserID) }

// Options are the settings of the module. A zero value stands for the default of the setting.
type Options struct {
	MaxAttempts int           // of a delivery
	BasePause   time.Duration // after the first failed attempt
	MaxPause    time.Duration
	Email       Gateway // nil: the local outbox
	SMS         Gateway // nil: the local outbox
	Log         *slog.Logger

	// CheckHolds returns apierr.GrantNotHeld unless the caller holds every right of a user; nil: administrators hold them.
	CheckHolds func(ctx context.Context, q store.Querier, userID string) error
}

// Service keeps and sends deliveries. Create one with [New].
type Service struct {
	db      *store.DB
	options Options
	node    string                              // owns the leases
	queues  map[string]*outbox.Outbox[Delivery] // by channel, for those with a gateway
}

// New returns the module on a database. Nothing is sent before [Service.Start].
func New(db *store.DB, o Options) *Service {
	o.MaxAttempts = cmp.Or(o.MaxAttempts, 8)
	o.BasePause = cmp.Or(o.BasePause, 2*time.Second)
	o.MaxPause = cmp.Or(o.MaxPause, time.Hour)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	s := &Service{db: db, options: o, node: outbox.ThisNode(db), queues: map[string]*outbox.Outbox[Delivery]{}}
	db.RegisterSealed(sealedDeliveries)
	for channel, gateway := range map[string]Gateway{Email: o.Email, SMS: o.SMS} {
		if gateway != nil {
			s.queues[channel] = s.newQueue(channel, gateway)
		}
	}
	return s
}

// Start starts the queues. They resume the deliveries that an earlier process did not finish.
func (s *Service) Start(ctx context.Context) error {
	if err := errors.Join(s.recover(ctx), s.SealTexts(ctx)); err != nil {
		return err
	}
	for _, q := range s.queues {
		if err := q.Start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Close ends the queues. It waits for deliveries that are being sent, until the context ends. The database stays open.
func (s *Service) Close(ctx context.Context) error {
	var stopping sync.WaitGroup
	for _, q := range s.queues {
		stopping.Go(func() { q.Stop(ctx) })
	}
	stopping.Wait()
	return nil
}

// Endpoints returns the rows of the module.
func (s *Service) Endpoints() []endpoint.Endpoint {
	return []endpoint.Endpoint{
		{Name: "notifications.deliveries", Method: http.MethodGet, Path: "/v1/notifications/deliveries", Tag: "Notifications", Limit: ratelimit.Private,
			Subject: access.NoSubject("secrets of recipients who hold more than the caller are masked"),
			Access:  access.On(access.Deliveries, access.ReadAll), Assurance: seesSecrets, Summary: "List e-mail and SMS deliveries.",
			Compression: endpoint.Uncompressed, // texts contain one-time codes
			Doc:         endpoint.Doc{Search: deliveryList.Search()}, Reports: endpoint.Event{Kind: endpoint.Reading, Action: "notifications.outbox_read"},
			Handle: endpoint.JSON(http.StatusOK, s.List)},
		{Name: "notifications.retry_delivery", Method: http.MethodPost, Path: "/v1/notifications/deliveries/{id}/retry", Tag: "Notifications", Limit: ratelimit.Private,
			Subject: access.NoSubject("the message goes to the same recipient"),
			Access:  access.On(access.Deliveries, access.Update), Assurance: seesSecrets, Summary: "Retry a dead delivery.",
			Faults: []apierr.Kind{apierr.DeliveryNotFound, apierr.DeliveryNotDead}, Handle: endpoint.JSON(http.StatusOK, s.Retry)},
	}
}

// stalledTime is how long a queue may do nothing while a delivery is due.
const stalledTime = 5 * time.Minute

// Ready returns an error if a queue has stalled: a delivery is due, and the queue has not run for a long time.
func (s *Service) Ready(ctx context.Context) error {
	now := s.db.Now()
	for channel, q := range s.queues {
		if lastRun := q.LastRun(); now >= lastRun && now < lastRun.Add(stalledTime) {
			continue
		}
		var id string
		err := s.db.QueryRow(ctx, selectDue, now.Add(-stalledTime), 1, channel).Scan(&id)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read the queue: %w", err)
		}
		return fmt.Errorf("the queue for %s has stalled", channel)
	}
	return nil
}

// AddMetrics adds the metrics of the queues to a scrape. The series of all channels exist, also of those without a gateway.
func (s *Service) AddMetrics(scrape *metrics.Scrape) {
	for _, channel := range []string{Email, SMS} {
		var attempts, failures, dead uint64
		var depth, age float64
		if q := s.queues[channel]; q != nil { // without a gateway, messages stay in the outbox and do not wait
			attempts, failures, dead = q.Counts()
			depth, age = s.waiting(channel)
		}
		scrape.Gauge("kontor_queue_depth", "Deliveries that wait, by channel.", depth, "channel", channel)
		scrape.Gauge("kontor_queue_oldest_seconds", "Age of the oldest delivery that waits, by channel.", age, "channel", channel)
		scrape.Counter("kontor_queue_attempts_total", "Attempts to deliver, by channel.", float64(attempts), "channel", channel)
		scrape.Counter("kontor_queue_failures_total", "Failed attempts to deliver, by channel.", float64(failures), "channel", channel)
		scrape.Counter("kontor_queue_dead_total", "Deliveries that became dead letters since the start, by channel.", float64(dead), "channel", channel)
		scrape.Gauge("kontor_queue_dead_letters", "Dead letters in the database, by channel.", s.deadLetters(channel), "channel", channel)
	}
}

// waiting returns how many deliveries of a channel wait, and the age of the oldest in seconds. It returns zeros if they
// cannot be read; /readyz reports that.
func (s *Service) waiting(channel string) (depth, age float64) {
	var n int64
	var oldest store.Time
	if err := s.db.QueryRow(context.Background(), countWaiting, channel).Scan(&n, &oldest); err != nil || n == 0 {
		return 0, 0
	}
	return float64(n), s.db.Now().Std().Sub(oldest.Std()).Seconds()
}

func (s *Service) deadLetters(channel string) float64 {
	var n int64
	if err := s.db.QueryRow(context.Background(), countDead, channel).Scan(&n); err != nil {
		return 0
	}
	return float64(n)
}
