// Package notifications brings what happened to the people whom it concerns.
//
// A module that changes something tells of it by [Service.Notify], in the transaction of the change, so that neither is
// there without the other: a notice, a copy of it in the inbox of each recipient, and a [Delivery] for each channel of
// the event. After the commit the copies go to the open streams of their recipients, and the queue brings the
// deliveries to the gateways. Without a gateway for a channel the row of the delivery itself is the local outbox: it
// counts as sent at once, and administrators read its text.
//
// Delivery is at least once: a crash between the gateway's answer and the note of it sends a mail again, under the same
// id. Streams are fed after the commit and resume from the table, so that each copy reaches a client that resumes once
// and in order. The order needs one process that writes.
package notifications

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"

	"kontor/modules/kit/event"
	"kontor/server/access"
	"kontor/server/sse"
	"kontor/store"
)

// Sessions know whether a session that was let in may go on.
type Sessions interface {
	// Session gives the caller as he stands now. It returns an error when his session has ended or cannot be read.
	Session(ctx context.Context, caller *access.Caller) (*access.Caller, error)
	// Expiry tells when the bearer token of a request ends.
	Expiry(c *fiber.Ctx) (store.Time, bool)
}

// Options are the settings of the module. What is zero has the default of the setting.
type Options struct {
	BaseURL            string        // of the console, for links in mails
	Heartbeat          time.Duration // between two signs of life on a stream
	ConnectionsPerUser int
	NoTrigger          bool // leaves the route for test notifications out

	MaxAttempts int           // of a delivery
	BasePause   time.Duration // after the first failed attempt
	MaxPause    time.Duration
	Email       Gateway // nil: the local outbox
	SMS         Gateway // nil: the local outbox

	Policy *access.Current
	Log    *slog.Logger
}

func (o *Options) fill() {
	setDefault(&o.Heartbeat, 25*time.Second)
	setDefault(&o.ConnectionsPerUser, 10)
	setDefault(&o.MaxAttempts, 8)
	setDefault(&o.BasePause, 2*time.Second)
	setDefault(&o.MaxPause, time.Hour)
	if o.Policy == nil {
		o.Policy = &access.Current{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
}

func setDefault[T comparable](value *T, standard T) {
	var zero T
	if *value == zero {
		*value = standard
	}
}

// Service keeps notifications and their deliveries. Make one with [New].
type Service struct {
	db       *store.DB
	options  Options
	texts    Texts
	words    words
	order    order
	sessions Sessions
	hub      *sse.Hub
	sent     *sentMarks
	queues   map[string]*queue // channel → its queue, where there is a gateway
	metrics  *gauges

	closeOnce sync.Once
}

// New makes the module on a database. Nothing moves before [Service.Start].
func New(db *store.DB, texts Texts, o Options) *Service {
	o.fill()
	s := &Service{db: db, options: o, texts: texts, words: words{texts}, queues: map[string]*queue{}}
	s.sent = newSentMarks(db, o.Log)
	s.hub = sse.New(sse.Options{
		Heartbeat: o.Heartbeat, PerUser: o.ConnectionsPerUser, Now: db.Clock().Now, Check: s.mayGoOn, Wrote: s.wrote,
		CloseFrame: closeFrame, Log: o.Log,
	})
	o.Policy.OnChange(s.policyChanged)
	owner := store.NewID()
	for channel, gateway := range map[string]Gateway{Email: o.Email, SMS: o.SMS} {
		if gateway != nil {
			s.queues[channel] = newQueue(db, o, channel, gateway, owner)
		}
	}
	return s
}

// SetSessions says who knows about sessions. Call it before the first stream is opened.
func (s *Service) SetSessions(sessions Sessions) { s.sessions = sessions }

// Start sets the queues going. What an earlier process had begun and not finished is taken up again.
func (s *Service) Start(ctx context.Context) error {
	if err := s.recover(ctx); err != nil {
		return err
	}
	for _, q := range s.queues {
		q.start()
	}
	s.sent.start()
	s.metrics = newGauges(s)
	return nil
}

// Drain says good-bye on all streams. New ones are refused. It does not wait.
func (s *Service) Drain() { s.hub.Drain() }

// drainTime is how long the streams may take to be told good-bye.
const drainTime = 2 * time.Second

// Close ends streams and queues. Deliveries that are on their way are finished, unless the context ends before. The
// database stays open.
func (s *Service) Close(ctx context.Context) error {
	s.closeOnce.Do(func() {
		s.hub.Drain()
		patience := time.NewTimer(drainTime)
		defer patience.Stop()
		select {
		case <-s.hub.Drained():
		case <-patience.C:
		case <-ctx.Done():
		}
		s.hub.Close()
		var stopping sync.WaitGroup
		for _, q := range s.queues {
			stopping.Go(func() { q.stop(ctx) })
		}
		stopping.Wait()
		s.sent.stop()
		s.metrics.stop()
	})
	return nil
}

// SignedIn hears of sign-ins, in their transaction, and tells the user of one from a new device.
func (s *Service) SignedIn(ctx context.Context, tx *store.Tx, userID, _ string, isNew bool) error {
	if !isNew {
		return nil
	}
	return s.Notify(ctx, tx, event.Event{
		Kind: event.NewDeviceLogin, Type: access.Users, RecordID: userID, Recipients: []string{userID},
		Args: map[string]any{"Time": tx.Now().Std().Format(time.RFC3339)},
	})
}

// PasswordChanged tells a user that his password was changed, in the transaction that does.
func (s *Service) PasswordChanged(ctx context.Context, tx *store.Tx, userID string) error {
	return s.Notify(ctx, tx, event.Event{Kind: event.PasswordChanged, Type: access.Users, RecordID: userID, Recipients: []string{userID}})
}

// CredentialAdded notifies a user at all validated addresses that a credential was added. value hints at it. Call it before
// the credential is validated, so that only the others get the message.
func (s *Service) CredentialAdded(ctx context.Context, tx *store.Tx, userID, value string) error {
	return s.credentialChanged(ctx, tx, event.CredentialAdded, userID, value)
}

// CredentialRemoved notifies a user at all validated addresses that one of them is deleted. value hints at it. Call it before
// the deletion, so that the deleted address gets the message, too.
func (s *Service) CredentialRemoved(ctx context.Context, tx *store.Tx, userID, value string) error {
	return s.credentialChanged(ctx, tx, event.CredentialRemoved, userID, value)
}

func (s *Service) credentialChanged(ctx context.Context, tx *store.Tx, kind event.Kind, userID, value string) error {
	return s.Notify(ctx, tx, event.Event{Kind: kind, Type: access.Users, RecordID: userID, Recipients: []string{userID},
		Args: map[string]any{"Value": value}})
}
