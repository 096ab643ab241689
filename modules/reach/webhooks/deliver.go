package webhooks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"kontor/modules/kit/event"
	"kontor/modules/kit/outbound"
	"kontor/modules/kit/outbox"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

const (
	// probeAfter is the number of failures in a row after which a webhook is called once at a time.
	probeAfter = 3
	// maxProbePause is the longest pause between such calls.
	maxProbePause = 5 * time.Minute
)

// pauses are the pauses after failed attempts, each varied by up to a fifth: ten attempts over three days.
var pauses = []time.Duration{5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 18 * time.Hour,
	22 * time.Hour}

// call is an attempt at a delivery.
type call struct {
	Delivery

	withheld bool // the account may no longer read the record
	answer   outbound.Answer
}

func scanCall(row store.Scanner) (*call, error) {
	d, err := scanDelivery(row)
	return &call{Delivery: d}, err
}

// Lease returns the id and the number of attempts, see [outbox.Row].
func (c *call) Lease() (id string, attempts int) { return c.ID, int(c.Attempts) }

// send sends a delivery, if the account may read the record now.
func (s *Service) send(ctx context.Context, c *call) error {
	e := c.event()
	w, err := table.GetUnchecked(ctx, s.db, c.WebhookID)
	if err != nil {
		return s.unreadable(err)
	}
	if c.Type != testType {
		caller, ok, err := s.accounts.CallerOf(ctx, s.db, w.AccountID)
		if err != nil {
			return s.unreadable(err)
		}
		if ok {
			ctx = access.With(ctx, caller.WithPolicy(s.Policy.Load()))
			ok, err = s.feed.MayRead(ctx, e)
			ok = ok && s.feed.MayFollow(access.From(ctx))
		}
		if err != nil {
			return s.unreadable(err)
		}
		if s.TermsDue() { // since the round began: what was read of the rights may be of before
			return outbox.ErrNotBegun
		}
		if c.withheld = !ok; c.withheld {
			return nil
		}
		if w.IncludeRecord {
			if e.Record, err = s.feed.Record(ctx, e); err != nil {
				return s.unreadable(err)
			}
		}
	}
	body, err := e.Payload()
	if err != nil {
		return fmt.Errorf("encode an event: %w", err)
	}
	header, err := s.headers(ctx, w.ID, c.EventID, body)
	if err != nil {
		return s.unreadable(err)
	}
	if c.answer, err = s.client.Post(ctx, w.URL, header, body); err == nil {
		err = checkStatus(c.answer.Status)
	}
	switch {
	case errors.Is(err, context.Canceled):
		return outbox.ErrLeft // the service closes
	case err != nil:
		return &outbox.Error{RetryAfter: c.answer.RetryAfter, Cause: err}
	}
	return nil
}

// unreadable returns the error of an attempt that failed because the database could not be read.
func (s *Service) unreadable(cause error) error {
	s.Log.Warn("could not read the data of a webhook", "cause", cause)
	return errUnreadable
}

func (s *Service) headers(ctx context.Context, webhookID, eventID string, body []byte) (http.Header, error) {
	now := s.db.Now()
	keys, err := s.secrets(ctx, s.db, webhookID, now)
	if err != nil {
		return nil, err
	}
	return s.header(eventID, int64(now)/1000, body, keys.newest, keys.former), nil
}

// checkStatus returns why an answer is a failure.
func checkStatus(status int) error {
	switch {
	case status >= 200 && status < 300:
		return nil
	case status >= 300 && status < 400:
		return fmt.Errorf(answered+"%d"+redirect, status)
	}
	return fmt.Errorf(answered+"%d", status)
}

const (
	answered = "the receiver answered "
	redirect = "; redirects are not followed"
)

var errUnreadable = errors.New("the server could not read its data")

// errorCode returns the code of the text of an error of an attempt, and an empty text for none.
func errorCode(text string) string {
	switch {
	case text == "":
		return ""
	case text == errUnreadable.Error():
		return "server"
	case strings.HasPrefix(text, answered) && strings.HasSuffix(text, redirect):
		return "redirect"
	case strings.HasPrefix(text, answered):
		return "answer"
	}
	return cmp.Or(outbound.Code(text), "other")
}

const (
	setFinished  = `status = $1, response_status = $2, last_error = $3, duration_ms = $4, next_attempt_at = NULL, finished_at = $5`
	setPostponed = `status = 'retrying', response_status = $1, last_error = $2, duration_ms = $3, next_attempt_at = $4`

	selectProgress = `SELECT failures, failing_since FROM webhook_progress WHERE webhook_id = $1`

	updateSuccess = `UPDATE webhook_progress SET failures = 0, failing_since = NULL, not_before = 0, delivered_at = $2 WHERE webhook_id = $1`

	updateFailure = `
		UPDATE webhook_progress SET failures = failures + 1, failing_since = COALESCE(failing_since, $2), not_before = $3 WHERE webhook_id = $1`
)

// record stores the outcome of a call, and what it means for the webhook.
func (s *Service) record(ctx context.Context, tx *store.Tx, c *call, o outbox.Outcome) error {
	var status *int64
	if c.answer.Status != 0 {
		n := int64(c.answer.Status)
		status = &n
	}
	took := o.Took.Milliseconds()
	finish := func(as, cause string) (bool, error) {
		return s.worker.outbox.Finish(ctx, tx, c, setFinished, as, status, cause, took, tx.Now())
	}
	if o.Err == nil && c.withheld {
		_, err := finish(withheld, "")
		return err
	}
	if o.Err == nil {
		if held, err := finish(delivered, ""); err != nil || !held {
			return err
		}
		return s.recordSuccess(ctx, tx, c.WebhookID)
	}
	var held bool
	var err error
	if o.Next == nil {
		held, err = finish(outbox.Dead, o.Err.Error())
	} else {
		held, err = s.worker.outbox.Finish(ctx, tx, c, setPostponed, status, o.Err.Error(), took, o.Next)
	}
	if err != nil || !held {
		return err
	}
	return s.recordFailure(ctx, tx, c.WebhookID, c.answer)
}

// pause returns the pause after the n-th failed attempt, varied by up to a fifth, so that deliveries that failed together are not repeated
// together.
func (s *Service) pause(n int) (time.Duration, bool) {
	if n > len(s.Pauses) {
		return 0, false
	}
	return time.Duration(float64(s.Pauses[n-1]) * (0.8 + 0.4*rand.Float64())), true //nolint:gosec // jitter, not a secret
}

// recordSuccess ends an outage: what waits for a later attempt becomes due.
func (s *Service) recordSuccess(ctx context.Context, tx *store.Tx, webhookID string) error {
	var failures int64
	var since *store.Time
	if err := tx.QueryRow(ctx, selectProgress, webhookID).Scan(&failures, &since); err != nil {
		return store.Optional(err) // the webhook was deleted
	}
	if _, err := tx.Exec(ctx, updateSuccess, webhookID, tx.Now()); err != nil || failures < probeAfter {
		return err
	}
	return tx.Run(ctx, makeDue, webhookID, tx.Now())
}

// recordFailure counts a failure, and pauses or disables the webhook when it is time to.
func (s *Service) recordFailure(ctx context.Context, tx *store.Tx, webhookID string, a outbound.Answer) error {
	var failures int64
	var since *store.Time
	if err := tx.QueryRow(ctx, selectProgress, webhookID).Scan(&failures, &since); err != nil {
		return store.Optional(err) // the webhook was deleted
	}
	wait := time.Duration(0)
	if failures+1 >= probeAfter {
		wait = maxProbePause
		if shift := failures + 1 - probeAfter; shift < 9 {
			wait = min(maxProbePause, time.Second<<shift)
		}
	}
	if a.Status == http.StatusTooManyRequests || a.Status == http.StatusServiceUnavailable {
		wait = max(wait, min(a.RetryAfter, outbox.MaxRetryAfter))
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

// halt pauses or disables an active webhook and notifies its owner.
func (s *Service) halt(ctx context.Context, tx *store.Tx, id, status, reason string) error {
	before, err := table.GetUnchecked(ctx, tx, id)
	if errors.Is(err, apierr.WebhookNotFound) || err == nil && before.Status != active {
		return nil
	}
	if err != nil {
		return err
	}
	after := before
	after.Status, after.Reason = status, reason
	if err := writeWebhook(ctx, tx, before, after); err != nil {
		return err
	}
	if after, err = table.GetUnchecked(ctx, tx, id); err != nil {
		return err
	}
	table.Audit(ctx, tx, actionPause, id, before, after)
	people, err := s.responsible(ctx, tx, before)
	if err != nil {
		return err
	}
	kind := event.WebhookPaused
	if status == disabled {
		kind = event.WebhookDisabled
	}
	return s.notifier.Notify(ctx, tx, event.Event{Kind: kind, Type: access.Webhooks, RecordID: id, Recipients: people,
		Args: map[string]any{"Host": hostOf(before.URL), "Days": int(s.PauseAfter / day)}})
}

// responsible returns the people who are notified about a webhook: its owner and its creator, and without either of them the
// administrators.
func (s *Service) responsible(ctx context.Context, tx *store.Tx, w Webhook) ([]string, error) {
	candidates := slices.Compact([]string{w.AccountID, w.CreatedBy})
	people, err := s.accounts.ActivePeople(ctx, tx, candidates...)
	if err != nil {
		return nil, err
	}
	candidates = slices.DeleteFunc(candidates, func(id string) bool { return !people[id] })
	if len(candidates) > 0 {
		return candidates, nil
	}
	return s.accounts.Administrators(ctx, tx)
}

// hostOf returns the host of an address. The rest may contain what only owners should read.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}

// NextAttempt returns when the next delivery is tried after a time; nil: none is planned.
func (s *Service) NextAttempt(ctx context.Context, after store.Time) (*store.Time, error) {
	return s.worker.outbox.Next(ctx, after)
}

// Settle waits until the events so far became deliveries and what is due was tried.
func (s *Service) Settle(ctx context.Context) error { return s.worker.outbox.Settle(ctx) }
