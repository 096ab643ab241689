package notifications

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"kontor/modules/kit/outbox"
	"kontor/modules/kit/types"
	"kontor/server/metrics"
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
	NotificationID *string     `json:"notification_id"`
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

// enqueueAll writes the deliveries of an event to the outbox, each in the language of its recipient. It omits channels for
// which the event has no template.
func (s *Service) enqueueAll(ctx context.Context, tx *store.Tx, parent parentEvent, recipients []string) error {
	if len(parent.channels) == 0 {
		return nil
	}
	addresses, err := s.addresses(ctx, tx, recipients, parent.channels, parent.everywhere)
	if err != nil {
		return err
	}
	rendered := maps.Clone(parent.rendered)
	if rendered == nil {
		rendered = map[messageKey]*message{}
	}
	deliveries := make([]Delivery, 0, len(addresses))
	for _, a := range addresses {
		if parent.undo != "" && a.OnTrial {
			continue // the link is for those who had the account before
		}
		key := messageKey{a.Language, a.Channel}
		m, known := rendered[key]
		if !known {
			s.db.Heavy("template")
			m = s.message(a.Language, a.Channel, parent)
			rendered[key] = m
		}
		if m == nil {
			continue
		}
		deliveries = append(deliveries, Delivery{NotificationID: &parent.id, UserID: a.UserID, Channel: a.Channel, Recipient: a.Value,
			Subject: m.subject, Text: m.text, HTML: m.html, Secret: parent.undo != ""})
	}
	return s.enqueue(ctx, tx, deliveries)
}

// enqueue writes deliveries in few statements. The caller sets recipient, channel and texts; enqueue sets the rest.
func (s *Service) enqueue(ctx context.Context, tx *store.Tx, deliveries []Delivery) error {
	now := tx.Now()
	for i := range deliveries {
		d := &deliveries[i]
		if d.CreatedAt = now; d.ID == "" {
			d.ID = store.NewID()
		}
		if err := s.sealIn(tx, d); err != nil {
			return err
		}
		if s.queues[d.Channel] == nil {
			d.Status, d.SentAt, d.Attempts = Sent, &now, 1 // Keeping it in the local outbox is the attempt.
		} else {
			d.Status, d.NextAttemptAt = outbox.Queued, &now
		}
	}
	if len(deliveries) > 0 {
		tx.AfterCommit(s.wakeUp)
	}
	for part := range batches(deliveries) {
		args := make([]any, 0, deliveryArgs*len(part))
		for _, d := range part {
			args = append(args, d.ID, d.NotificationID, d.UserID, d.Channel, d.Recipient, types.Fold(d.Recipient),
				d.Subject, d.Text, d.HTML, d.sealed, d.Secret, d.Status, d.Attempts, d.NextAttemptAt, d.CreatedAt, d.SentAt)
		}
		if _, err := tx.Exec(ctx, insertDeliveriesStatement(len(part)), args...); err != nil {
			return fmt.Errorf("write to the outbox: %w", err)
		}
	}
	return nil
}

const (
	// parallelSends is how many deliveries of a channel are sent at the same time.
	parallelSends = 8
	// sendTime is how long a gateway may take for one delivery.
	sendTime = 45 * time.Second
)

// queue sends the deliveries of one channel.
type queue = outbox.Outbox[Delivery]

// newQueue returns the queue of a channel. owner is that of the leases: the id of this node.
func (s *Service) newQueue(channel string, gateway Gateway, owner string) *queue {
	return outbox.New(outbox.Options[Delivery]{
		DB: s.db, Log: s.options.Log, Name: channel, Help: "deliveries." + channel,
		Table: deliveriesTable, Scope: "channel = '" + channel + "'", Due: selectDue, Columns: claimedColumns,
		Scan:  func(row store.Scanner) (Delivery, error) { return scanClaimed(row) },
		Owner: owner, Parallel: parallelSends, Timeout: sendTime,
		Send: func(ctx context.Context, d Delivery) error {
			if err := unseal(s.db, &d); err != nil {
				return err
			}
			return gateway.Send(ctx, d)
		},
		Round: func(ctx context.Context) (bool, error) {
			n, err := s.queues[channel].Claim(ctx, parallelSends, channel)
			return n > 0, err
		},
		Pause: s.pause, MaxPause: s.options.MaxPause, Record: s.recordAttempt,
	})
}

// Lease returns the id and the number of attempts, see [outbox.Row].
func (d Delivery) Lease() (id string, attempts int) { return d.ID, d.Attempts }

// pause returns the pause after the n-th failed attempt. It doubles each time. A random factor of a half to one spreads
// deliveries that failed together.
func (s *Service) pause(n int) (time.Duration, bool) {
	pause := s.options.BasePause
	for i := n; i > 1 && pause < s.options.MaxPause; i-- {
		pause *= 2
	}
	pause = min(pause, s.options.MaxPause)
	return time.Duration(float64(pause) * (0.5 + rand.Float64()/2)), n < s.options.MaxAttempts //nolint:gosec // jitter, not a secret
}

// recordAttempt stores an outcome. The gateway has the text of a delivery that was sent; only the fact is kept.
func (s *Service) recordAttempt(ctx context.Context, tx *store.Tx, d Delivery, o outbox.Outcome) (err error) {
	if o.Err == nil {
		_, err = s.queues[d.Channel].Finish(ctx, tx, d, setSent, tx.Now())
	} else {
		_, err = s.queues[d.Channel].Finish(ctx, tx, d, setFailed, o.Status, outbox.ErrorText(o.Err), o.Next)
	}
	return err
}

// selectDue selects the ids of at most $2 deliveries of a channel that are due at $1, or whose lease has expired then. Each state is read
// from the beginning of its own index.
const selectDue = `
	SELECT id FROM (
		SELECT * FROM (SELECT id, next_attempt_at AS at FROM deliveries
			WHERE channel = $3 AND status = 'queued' AND next_attempt_at <= $1 ORDER BY next_attempt_at, id LIMIT $2) AS fresh
		UNION ALL
		SELECT * FROM (SELECT id, next_attempt_at AS at FROM deliveries
			WHERE channel = $3 AND status = 'retrying' AND next_attempt_at <= $1 ORDER BY next_attempt_at, id LIMIT $2) AS failed
		UNION ALL
		SELECT * FROM (SELECT id, lease_until AS at FROM deliveries
			WHERE channel = $3 AND status = 'sending' AND lease_until <= $1 ORDER BY lease_until, id LIMIT $2) AS abandoned
	) AS due
	ORDER BY at, id
	LIMIT $2`

const (
	setSent = `status = 'sent', sent_at = $1, text = '', html = '', sealed = '', subject = CASE WHEN secret THEN '' ELSE subject END,
		last_error = NULL, next_attempt_at = NULL`

	setFailed = `status = $1, last_error = $2, next_attempt_at = $3`

	// Without a gateway the waiting deliveries of a channel stay in the local outbox.
	moveToLocalOutbox = `
	UPDATE deliveries
	SET status = 'sent', attempts = attempts + 1, sent_at = $1, next_attempt_at = NULL
	WHERE channel = $2 AND status IN ('queued', 'retrying')`

	retryDead = `
	UPDATE deliveries
	SET status = 'queued', attempts = 0, next_attempt_at = $2
	WHERE id = $1 AND status = 'dead'
	RETURNING ` + deliveryColumns

	retryDeadLocally = `
	UPDATE deliveries
	SET status = 'sent', attempts = 1, sent_at = $2, next_attempt_at = NULL
	WHERE id = $1 AND status = 'dead'
	RETURNING ` + deliveryColumns

	selectDelivery = `SELECT ` + deliveryColumns + ` FROM deliveries WHERE id = $1`

	countWaiting = `
	SELECT COUNT(*), COALESCE(MIN(created_at), 0) FROM deliveries
	WHERE channel = $1 AND status IN ('queued', 'retrying', 'sending')`

	countDead = `SELECT COUNT(*) FROM deliveries WHERE channel = $1 AND status = 'dead'`
)

// NextAttempt returns when the next delivery is tried after a time; nil: none is planned.
func (s *Service) NextAttempt(ctx context.Context, after store.Time) (next *store.Time, err error) {
	for _, q := range s.queues {
		at, err := q.Next(ctx, after)
		if err != nil {
			return nil, err
		}
		if at != nil && (next == nil || *at < *next) {
			next = at
		}
	}
	return next, nil
}

// Settle waits until what is due was tried.
func (s *Service) Settle(ctx context.Context) (err error) {
	for _, q := range s.queues {
		err = errors.Join(err, q.Settle(ctx))
	}
	return err
}

const countNotices = `SELECT event, COUNT(*) FROM notices WHERE created_at >= $1 GROUP BY event ORDER BY event`

// CountSince calls use with each event of the notices since a time, and their number.
func (s *Service) CountSince(ctx context.Context, since store.Time, use func(event string, n int64)) error {
	_, err := store.All(ctx, s.db, func(row store.Scanner) (n int64, err error) {
		var event string
		if err = row.Scan(&event, &n); err == nil {
			use(event, n)
		}
		return n, err
	}, countNotices, since)
	return err
}

const (
	// sentInterval is how long ids are gathered before they are recorded.
	sentInterval = 200 * time.Millisecond
	// sentBatch is how many rows one statement updates.
	sentBatch = 64
	// sentTransaction is how many rows one transaction updates, so that other writes wait briefly.
	sentTransaction = 1024
	// maxSentIDs bounds the ids that are kept while the database rejects writes. Notifications beyond it are replayed.
	maxSentIDs = 100_000
)

// markSent is followed by the ids and a closing bracket.
const markSent = `UPDATE notifications SET sent_at = $1 WHERE sent_at IS NULL AND id IN (`

// sentRecorder records which notifications were written to a stream, after a short time and many at once. A crash before
// that makes streams repeat some of them, which is better than losing them.
type sentRecorder struct {
	db  *store.DB
	log *slog.Logger

	mu      sync.Mutex
	ids     map[string]struct{}
	wake    chan struct{}
	done    chan struct{}
	ended   chan struct{}
	running bool
}

func newSentRecorder(db *store.DB, log *slog.Logger) *sentRecorder {
	return &sentRecorder{db: db, log: log, ids: map[string]struct{}{}, wake: make(chan struct{}, 1), done: make(chan struct{}), ended: make(chan struct{})}
}

func (r *sentRecorder) add(ids []string) {
	if len(ids) == 0 {
		return
	}
	r.mu.Lock()
	for _, id := range ids {
		if len(r.ids) < maxSentIDs {
			r.ids[id] = struct{}{}
		}
	}
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *sentRecorder) start() {
	r.mu.Lock()
	r.running = true
	r.mu.Unlock()
	go r.loop()
}

// stop records the remaining ids and ends the loop.
func (r *sentRecorder) stop() {
	r.mu.Lock()
	running := r.running
	r.running = false
	r.mu.Unlock()
	if running {
		close(r.done)
		<-r.ended
	}
}

func (r *sentRecorder) loop() {
	defer close(r.ended)
	for {
		select {
		case <-r.wake:
		case <-r.done:
			r.flush()
			return
		}
		interval := time.NewTimer(sentInterval)
		select {
		case <-interval.C:
		case <-r.done:
			interval.Stop()
		}
		r.flush()
	}
}

// flush records the gathered ids. It keeps those that the database rejects for the next time.
func (r *sentRecorder) flush() {
	r.mu.Lock()
	ids := slices.Collect(maps.Keys(r.ids))
	r.ids = map[string]struct{}{}
	r.mu.Unlock()
	slices.Sort(ids) // neighbouring rows are on the same pages
	for len(ids) > 0 {
		n := min(len(ids), sentTransaction)
		if err := r.record(ids[:n]); err != nil {
			r.log.Warn("could not record which notifications were sent", "cause", err)
			r.add(ids)
			return
		}
		ids = ids[n:]
	}
}

func (r *sentRecorder) record(ids []string) error {
	ctx := context.Background()
	return r.db.InTx(ctx, func(tx *store.Tx) error {
		for part := range slices.Chunk(ids, sentBatch) {
			if _, err := tx.Exec(ctx, markSent+store.In(2, len(part))+")", store.AppendIn([]any{tx.Now()}, part)...); err != nil {
				return err
			}
		}
		return nil
	})
}

// AddMetrics adds the metrics of streams and queues to a scrape. The series of all channels exist, also of those without a gateway.
func (s *Service) AddMetrics(scrape *metrics.Scrape) {
	gauge := func(name, help string, value float64, labels ...string) {
		scrape.Gauge("kontor_"+name, help, value, labels...)
	}
	counter := func(name, help string, value uint64, labels ...string) {
		scrape.Counter("kontor_"+name, help, float64(value), labels...)
	}
	streams := s.streams.Stats()
	gauge("streams_open", "Open event streams.", float64(streams.Open))
	counter("stream_frames_total", "Frames written to event streams.", streams.Frames)
	counter("streams_refused_total", "Event streams refused because their user had too many.", streams.Refused)
	ended := func(reason string, n uint64) {
		counter("streams_ended_total", "Ended event streams by reason.", n, "reason", reason)
	}
	ended("left", streams.Left)
	ended("slow", streams.Slow)
	ended("revoked", streams.Revoked)
	for _, channel := range []string{Email, SMS} {
		var attempts, failures, dead uint64
		var depth, age float64
		if q := s.queues[channel]; q != nil { // without a gateway, messages stay in the outbox and do not wait
			attempts, failures, dead = q.Counts()
			depth, age = s.waiting(channel)
		}
		gauge("queue_depth", "Deliveries that wait, by channel.", depth, "channel", channel)
		gauge("queue_oldest_seconds", "Age of the oldest delivery that waits, by channel.", age, "channel", channel)
		counter("queue_attempts_total", "Attempts to deliver, by channel.", attempts, "channel", channel)
		counter("queue_failures_total", "Failed attempts to deliver, by channel.", failures, "channel", channel)
		counter("queue_dead_total", "Deliveries that became dead letters since the start, by channel.", dead, "channel", channel)
		gauge("queue_dead_letters", "Dead letters in the database, by channel.", s.deadLetters(channel), "channel", channel)
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
