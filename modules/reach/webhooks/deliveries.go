package webhooks

import (
	"context"
	"errors"
	"fmt"

	"kontor/modules/kit/change"
	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// The states of a finished delivery, besides those of [outbox.Outbox].
const (
	delivered = "delivered"
	withheld  = "withheld"
)

// testType is the type of test events.
const testType = "webhooks.test"

// Delivery is one event for one webhook.
type Delivery struct {
	ID             string      `json:"id"`
	WebhookID      string      `json:"webhook_id"`
	EventID        string      `json:"event_id" doc:"The header webhook-id of every attempt."`
	Type           string      `json:"type" example:"customers.updated"`
	RecType        string      `json:"rec_type" example:"customers" doc:"Empty if the caller may not read the record."`
	RecID          string      `json:"rec_id" format:"-" doc:"Empty if the caller may not read the record."`
	Status         string      `json:"status" enum:"queued,sending,retrying,delivered,dead,withheld" doc:"dead: given up after all attempts; withheld: the account could no longer read the record."`
	Attempts       int64       `json:"attempts"`
	ResponseStatus *int64      `json:"response_status" example:"200" doc:"The status of the last answer; null without one."`
	LastError      string      `json:"last_error" doc:"Why the last attempt failed."`
	ErrorCode      string      `json:"error_code" enum:"answer,redirect,forbidden,unencrypted,unknown_host,invalid_address,certificate,timeout,refused,closed,unreachable,server,other," doc:"The same for programs; empty without an error."`
	Duration       *int64      `json:"duration_ms" example:"120" doc:"How long the last attempt took."`
	NextAttemptAt  *store.Time `json:"next_attempt_at"`
	EventAt        store.Time  `json:"event_at" doc:"When the change was made."`
	CreatedAt      store.Time  `json:"created_at"`
	FinishedAt     *store.Time `json:"finished_at"`

	version       int64
	action, actor string
}

// event returns the event of the delivery.
func (d Delivery) event() change.Event {
	return change.Event{ID: d.EventID, Type: d.Type, Timestamp: d.EventAt, RecType: d.RecType, RecID: d.RecID, Version: d.version, Action: d.action, Actor: d.actor}
}

const deliveryColumns = `
	id, webhook_id, event_id, type, rec_type, rec_id, rec_version, action, actor, event_at, status, attempts, response_status, last_error, duration_ms,
	next_attempt_at, created_at, finished_at`

func scanDelivery(row records.Row) (Delivery, error) {
	var d Delivery
	err := row.Scan(&d.ID, &d.WebhookID, &d.EventID, &d.Type, &d.RecType, &d.RecID, &d.version, &d.action, &d.actor, &d.EventAt, &d.Status, &d.Attempts,
		&d.ResponseStatus, &d.LastError, &d.Duration, &d.NextAttemptAt, &d.CreatedAt, &d.FinishedAt)
	d.ErrorCode = errorCode(d.LastError)
	return d, err
}

var deliveryList = list.New(list.Source[Delivery]{
	From: "webhook_deliveries", Columns: deliveryColumns, ID: "id", Created: "created_at", Tables: []string{"webhook_deliveries"}, Scan: scanDelivery,
	Fields: list.Fields{
		{Name: "id", Type: list.UUID, Column: "id"},
		{Name: "event_id", Type: list.UUID, Column: "event_id"},
		{Name: "type", Type: list.Text, Column: "type", Key: "type"},
		{Name: "status", Type: list.Text, Column: "status", Key: "status"},
		{Name: "attempts", Type: list.Number, Column: "attempts"},
		{Name: "created_at", Type: list.Time, Column: "created_at"},
		{Name: "finished_at", Type: list.Time, Column: "finished_at", Null: true},
	},
})

// deliveries lists the deliveries of a webhook. It hides the records that the caller may not read.
func (s *Service) deliveries(ctx context.Context, in list.OfInput) (list.Page[Delivery], error) {
	if _, err := table.Get(ctx, s.db, in.ID, access.Read); err != nil {
		return list.Page[Delivery]{}, err
	}
	page, err := deliveryList.Page(ctx, s.db, in.Query, list.Where{SQL: "webhook_id = $1", Args: []any{in.ID}})
	if err != nil {
		return page, err
	}
	for i := range page.Data.Rows {
		if page.Data.Rows[i], err = s.hidden(ctx, page.Data.Rows[i]); err != nil {
			return page, err
		}
	}
	return page, nil
}

// hidden returns a delivery without its record, if the caller may not read it.
func (s *Service) hidden(ctx context.Context, d Delivery) (Delivery, error) {
	if d.RecType == "" {
		return d, nil
	}
	may, err := s.feed.MayRead(ctx, d.event())
	if !may {
		d.RecType, d.RecID = "", ""
	}
	return d, err
}

const (
	insertDelivery = `
		INSERT INTO webhook_deliveries
			(id, webhook_id, event_id, type, rec_type, rec_id, rec_version, action, actor, event_at, status, next_attempt_at, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 'queued', $11, $11)
		ON CONFLICT (webhook_id, event_id) DO UPDATE SET
			status = 'queued', attempts = 0, next_attempt_at = excluded.next_attempt_at, finished_at = NULL, lease_until = 0, leased_by = '',
			rec_type = excluded.rec_type, rec_id = excluded.rec_id
		WHERE webhook_deliveries.next_attempt_at IS NULL`

	selectDelivery = `SELECT ` + deliveryColumns + ` FROM webhook_deliveries WHERE id = $1 AND webhook_id = $2`

	requeue = `
		UPDATE webhook_deliveries SET status = 'queued', attempts = 0, next_attempt_at = $2, finished_at = NULL, lease_until = 0, leased_by = ''
		WHERE id = $1`

	// An outage is over: what waits for a later attempt becomes due.
	makeDue = `UPDATE webhook_deliveries SET next_attempt_at = $2 WHERE webhook_id = $1 AND status = 'retrying' AND next_attempt_at > $2`

	resetProgress = `UPDATE webhook_progress SET failures = 0, failing_since = NULL, not_before = 0 WHERE webhook_id = $1`

	updateCursor = `UPDATE webhook_progress SET cursor = $2 WHERE webhook_id = $1`
	moveCursor   = `UPDATE webhook_progress SET cursor = $3 WHERE webhook_id = $1 AND cursor = $2`
)

// resume lets a webhook that was paused continue at once.
func resume(ctx context.Context, tx *store.Tx, id string) error {
	if _, err := tx.Exec(ctx, resetProgress, id); err != nil {
		return err
	}
	return tx.Run(ctx, makeDue, id, tx.Now())
}

func queue(ctx context.Context, tx *store.Tx, webhookID string, e change.Event) (id string, err error) {
	id = store.NewID()
	_, err = tx.Exec(ctx, insertDelivery, id, webhookID, e.ID, e.Type, e.RecType, e.RecID, e.Version, e.Action, e.Actor, e.Timestamp, tx.Now())
	if err != nil {
		return "", fmt.Errorf("queue an event for a webhook: %w", err)
	}
	return id, nil
}

// Test queues an event of the type webhooks.test. It is sent also to a webhook that is paused or disabled. It returns
// apierr.WebhookNotFound and apierr.NoAccess.
func (s *Service) Test(ctx context.Context, in endpoint.ByID) (Delivery, error) {
	var made Delivery
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		if _, err := table.Get(ctx, tx, in.ID, access.Update); err != nil {
			return err
		}
		event := change.Event{ID: store.NewID(), Type: testType, Timestamp: tx.Now(), Action: testType, Actor: records.Actor(ctx)}
		id, err := queue(ctx, tx, in.ID, event)
		if err != nil {
			return err
		}
		if made, err = scanDelivery(tx.QueryRow(ctx, selectDelivery, id, in.ID)); err != nil {
			return err
		}
		tx.Audit(store.AuditEntry{Actor: records.Actor(ctx), Action: testType, RecType: table.Type.Name, RecID: in.ID})
		tx.Respond(made)
		tx.AfterCommit(s.worker.outbox.WakeUp)
		return nil
	})
	return made, err
}

// replay sends the events since a time again. It returns apierr.WebhookNotFound and apierr.NoAccess.
func (s *Service) replay(ctx context.Context, in ReplayInput) (endpoint.Message, error) {
	before, err := s.feed.Before(ctx, in.Since)
	if err != nil {
		return endpoint.Message{}, err
	}
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		if _, err := table.Get(ctx, tx, in.ID, access.Update); err != nil {
			return err
		}
		var present string
		if err := tx.QueryRow(ctx, selectCursor, in.ID).Scan(&present); err != nil {
			return err
		}
		if present > before.ID() { // ids sort in the order of the events
			if _, err := tx.Exec(ctx, updateCursor, in.ID, before.ID()); err != nil {
				return err
			}
		}
		tx.Audit(store.AuditEntry{Actor: records.Actor(ctx), Action: "webhooks.replay", RecType: table.Type.Name, RecID: in.ID})
		tx.AfterCommit(s.worker.outbox.WakeUp)
		return nil
	})
	return endpoint.Confirm(ctx, s.Texts, "webhooks.replayed"), err
}

const selectCursor = `SELECT cursor FROM webhook_progress WHERE webhook_id = $1`

type deliveryInput struct {
	ID         string `path:"id"`
	DeliveryID string `path:"delivery_id"`
}

// ReplayOne sends a finished delivery again. It returns apierr.WebhookNotFound, apierr.NoAccess, apierr.WebhookDelivery and
// apierr.WebhookNotFinished.
func (s *Service) ReplayOne(ctx context.Context, in deliveryInput) (Delivery, error) {
	var d Delivery
	err := s.db.InTx(ctx, func(tx *store.Tx) (err error) {
		if _, err := table.Get(ctx, tx, in.ID, access.Update); err != nil {
			return err
		}
		d, err = scanDelivery(tx.QueryRow(ctx, selectDelivery, in.DeliveryID, in.ID))
		switch {
		case errors.Is(err, store.ErrNotFound):
			return apierr.WebhookDelivery
		case err != nil:
			return err
		case d.FinishedAt == nil:
			return apierr.WebhookNotFinished
		}
		if _, err := tx.Exec(ctx, requeue, d.ID, tx.Now()); err != nil {
			return err
		}
		if d, err = scanDelivery(tx.QueryRow(ctx, selectDelivery, d.ID, in.ID)); err != nil {
			return err
		}
		tx.Audit(store.AuditEntry{Actor: records.Actor(ctx), Action: "webhooks.replay", RecType: table.Type.Name, RecID: in.ID})
		tx.AfterCommit(s.worker.outbox.WakeUp)
		return nil
	})
	if err != nil {
		return Delivery{}, err
	}
	return s.hidden(ctx, d)
}

const (
	purgeFinished = `
		DELETE FROM webhook_deliveries WHERE id IN (
			SELECT id FROM webhook_deliveries WHERE finished_at < $1 ORDER BY finished_at LIMIT $2)`
	// purgeBatch is the number of deliveries that one transaction deletes.
	purgeBatch = 500
)

// Purge deletes deliveries that finished long ago. Call it about once an hour.
func (s *Service) Purge(ctx context.Context) error {
	err := s.db.InBatches(ctx, purgeBatch, func(tx *store.Tx) (int64, error) {
		return tx.Exec(ctx, purgeFinished, tx.Now().Add(-s.Keep), purgeBatch)
	})
	if err != nil {
		return fmt.Errorf("delete old deliveries of webhooks: %w", err)
	}
	return nil
}
