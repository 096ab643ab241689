package webhooks

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"kontor/modules/kit/outbound"
	"kontor/server/access"
	"kontor/store"
)

const (
	// probeAfter is the number of failures in a row after which a webhook is called once at a time.
	probeAfter = 3
	// maxProbePause is the longest pause between such calls, and maxRetryAfter the longest that a receiver may request.
	maxProbePause = 5 * time.Minute
	maxRetryAfter = day
	// recordTries is how often the outcome of an attempt is written before its lease decides.
	recordTries = 5
	recordPause = 100 * time.Millisecond
)

// pauses are the pauses after failed attempts, each varied by up to a fifth: ten attempts over three days.
var pauses = []time.Duration{5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 18 * time.Hour,
	22 * time.Hour}

// outcome is the result of an attempt.
type outcome struct {
	withheld bool
	answer   outbound.Answer
	took     time.Duration
	err      error // nil: accepted or withheld
}

// deliver makes one attempt and records its outcome.
func (s *Service) deliver(w Webhook, d Delivery, owner string) {
	if !s.db.Remembers() {
		return // rights may have ended unnoticed: the lease expires, and the leading node sends it
	}
	began := time.Now()
	o := s.attempt(w, d)
	o.took = time.Since(began)
	if errors.Is(o.err, context.Canceled) {
		return // the service closes: the lease expires
	}
	s.record(w, d, owner, o)
}

// attempt sends a delivery, if the account may read the record now. A panic is a failed attempt of this delivery and of no other.
func (s *Service) attempt(w Webhook, d Delivery) (o outcome) {
	defer func() {
		if cause := recover(); cause != nil {
			s.Log.Error("panic while calling a webhook", "delivery", d.ID, "cause", cause, "stack", string(debug.Stack()))
			o.err = errors.New("an error of the server")
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), leaseTime/2)
	defer cancel()
	e := d.event()
	if d.Type != testType {
		caller, ok, err := s.accounts.CallerOf(ctx, s.db, w.AccountID)
		if err != nil {
			return outcome{err: s.unreadable(err)}
		}
		if ok {
			ctx = access.With(ctx, caller.WithPolicy(s.Policy.Load()))
			ok, err = s.feed.MayRead(ctx, e)
			ok = ok && s.feed.MayFollow(access.From(ctx))
		}
		if err != nil {
			return outcome{err: s.unreadable(err)}
		}
		if !ok {
			return outcome{withheld: true}
		}
		if w.IncludeRecord {
			if e.Record, err = s.feed.Record(ctx, e); err != nil {
				return outcome{err: s.unreadable(err)}
			}
		}
	}
	body, err := e.Payload()
	if err != nil {
		return outcome{err: fmt.Errorf("encode an event: %w", err)}
	}
	header, err := s.headers(ctx, w.ID, d.EventID, body)
	if err != nil {
		return outcome{err: s.unreadable(err)}
	}
	o.answer, o.err = s.client.Post(ctx, w.URL, header, body)
	if o.err == nil {
		o.err = checkStatus(o.answer.Status)
	}
	return o
}

// unreadable returns the error of an attempt that failed because the database could not be read.
func (s *Service) unreadable(cause error) error {
	s.Log.Warn("could not read the data of a webhook", "cause", cause)
	return errors.New("the server could not read its data")
}

func (s *Service) headers(ctx context.Context, webhookID, eventID string, body []byte) (http.Header, error) {
	now := s.db.Now()
	keys, err := s.secrets(ctx, s.db, webhookID, now)
	if err != nil {
		return nil, err
	}
	seconds := int64(now) / 1000
	return http.Header{
		"Content-Type": {"application/json"}, "User-Agent": {s.Product},
		"Webhook-Id": {eventID}, "Webhook-Timestamp": {strconv.FormatInt(seconds, 10)},
		"Webhook-Signature": {Signatures(eventID, seconds, body, keys.newest, keys.former)},
	}, nil
}

// checkStatus returns why an answer is a failure.
func checkStatus(status int) error {
	switch {
	case status >= 200 && status < 300:
		return nil
	case status >= 300 && status < 400:
		return fmt.Errorf("the receiver answered %d; redirects are not followed", status)
	}
	return fmt.Errorf("the receiver answered %d", status)
}

// record records an outcome. If it cannot be written, the lease expires and the event is sent again.
func (s *Service) record(w Webhook, d Delivery, owner string, o outcome) {
	ctx := context.Background()
	var err error
	for try := range recordTries {
		err = s.db.InTx(ctx, func(tx *store.Tx) error { return s.recordIn(ctx, tx, w.ID, d, owner, o) })
		if err == nil || !store.Temporary(err) {
			break
		}
		<-time.After(time.Duration(try+1) * recordPause)
	}
	if err != nil {
		s.Log.Error("could not record a call of a webhook", "delivery", d.ID, "cause", err)
	}
}

const (
	// whereLeased excludes deliveries whose lease has expired and that another attempt took over.
	whereLeased = ` WHERE id = $1 AND status = 'sending' AND leased_by = $2 AND attempts = $3`

	finish = `
		UPDATE webhook_deliveries
		SET status = $4, response_status = $5, last_error = $6, duration_ms = $7, next_attempt_at = NULL, finished_at = $8, lease_until = 0, leased_by = ''` + whereLeased

	postpone = `
		UPDATE webhook_deliveries
		SET status = 'retrying', response_status = $4, last_error = $5, duration_ms = $6, next_attempt_at = $7, lease_until = 0, leased_by = ''` + whereLeased

	selectProgress = `SELECT failures, failing_since FROM webhook_progress WHERE webhook_id = $1`

	updateSuccess = `UPDATE webhook_progress SET failures = 0, failing_since = NULL, not_before = 0, delivered_at = $2 WHERE webhook_id = $1`

	updateFailure = `
		UPDATE webhook_progress SET failures = failures + 1, failing_since = COALESCE(failing_since, $2), not_before = $3 WHERE webhook_id = $1`
)

func (s *Service) recordIn(ctx context.Context, tx *store.Tx, webhookID string, d Delivery, owner string, o outcome) error {
	var status *int64
	if o.answer.Status != 0 {
		n := int64(o.answer.Status)
		status = &n
	}
	took := o.took.Milliseconds()
	leased := []any{d.ID, owner, d.Attempts}
	switch {
	case o.withheld:
		_, err := tx.Exec(ctx, finish, append(leased, withheld, status, "", took, tx.Now())...)
		return err
	case o.err == nil:
		changed, err := tx.Exec(ctx, finish, append(leased, delivered, status, "", took, tx.Now())...)
		if err != nil || changed == 0 {
			return err
		}
		return s.recordSuccess(ctx, tx, webhookID)
	}
	var changed int64
	var err error
	if int(d.Attempts) > len(s.Pauses) {
		changed, err = tx.Exec(ctx, finish, append(leased, dead, status, o.err.Error(), took, tx.Now())...)
	} else {
		pause := max(vary(s.Pauses[d.Attempts-1]), min(o.answer.RetryAfter, maxRetryAfter))
		changed, err = tx.Exec(ctx, postpone, append(leased, status, o.err.Error(), took, tx.Now().Add(pause))...)
	}
	if err != nil || changed == 0 {
		return err
	}
	return s.recordFailure(ctx, tx, webhookID, o.answer)
}

// vary returns a pause varied by up to a fifth, so that deliveries that failed together are not repeated together.
func vary(pause time.Duration) time.Duration {
	return time.Duration(float64(pause) * (0.8 + 0.4*rand.Float64())) //nolint:gosec // jitter, not a secret
}

// recordSuccess ends an outage: what waits for a later attempt becomes due.
func (s *Service) recordSuccess(ctx context.Context, tx *store.Tx, webhookID string) error {
	var failures int64
	var since *store.Time
	if err := tx.QueryRow(ctx, selectProgress, webhookID).Scan(&failures, &since); err != nil {
		return ignoreDeleted(err)
	}
	if _, err := tx.Exec(ctx, updateSuccess, webhookID, tx.Now()); err != nil || failures < probeAfter {
		return err
	}
	_, err := tx.Exec(ctx, makeDue, webhookID, tx.Now())
	return err
}

// recordFailure counts a failure, and pauses or disables the webhook when it is time to.
func (s *Service) recordFailure(ctx context.Context, tx *store.Tx, webhookID string, a outbound.Answer) error {
	var failures int64
	var since *store.Time
	if err := tx.QueryRow(ctx, selectProgress, webhookID).Scan(&failures, &since); err != nil {
		return ignoreDeleted(err)
	}
	wait := time.Duration(0)
	if failures+1 >= probeAfter {
		wait = maxProbePause
		if shift := failures + 1 - probeAfter; shift < 9 {
			wait = min(maxProbePause, time.Second<<shift)
		}
	}
	if a.Status == http.StatusTooManyRequests || a.Status == http.StatusServiceUnavailable {
		wait = max(wait, min(a.RetryAfter, maxRetryAfter))
	}
	if _, err := tx.Exec(ctx, updateFailure, webhookID, tx.Now(), tx.Now().Add(wait)); err != nil {
		return err
	}
	switch {
	case a.Status == http.StatusGone:
		return s.halt(ctx, tx, webhookID, disabled, reasonGone)
	case since != nil && tx.Now() >= since.Add(s.PauseAfter):
		return s.halt(ctx, tx, webhookID, paused, reasonFailing)
	}
	return nil
}

func ignoreDeleted(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}
