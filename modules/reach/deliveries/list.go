package deliveries

import (
	"context"
	"errors"

	"kontor/modules/kit/list"
	"kontor/modules/kit/outbox"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// List returns a page of all deliveries. It returns apierr.NoAccess for callers who may not read all of them.
func (s *Service) List(ctx context.Context, in list.Input) (list.Page[Delivery], error) {
	if !access.From(ctx).May(access.Deliveries, access.ReadAll) {
		return list.Page[Delivery]{}, apierr.NoAccess
	}
	page, err := deliveryList.Page(ctx, s.db, in.Query)
	if err != nil {
		return page, err
	}
	return page, s.mask(ctx, page.Data.Rows)
}

// textMask replaces a text with a secret.
const textMask = "********"

// seesSecrets is the assurance with which callers see codes in the local outbox.
var seesSecrets = endpoint.Fresh.When("the response shows one-time codes and links; otherwise they are masked")

// mask hides the texts of secrets from all callers but people who have authenticated recently and hold every right of the recipient.
// With the text they could sign in as the recipient. Programs never see it.
func (s *Service) mask(ctx context.Context, rows []Delivery) error {
	stale, holds := endpoint.RequireAssurance(ctx, seesSecrets) != nil, map[string]bool{}
	for i := range rows {
		d := &rows[i]
		if !d.Secret || d.Text == "" && d.sealed == "" {
			continue
		}
		if _, known := holds[d.UserID]; !known && !stale {
			var err error
			if holds[d.UserID], err = s.holdsRightsOf(ctx, d.UserID); err != nil {
				return err
			}
		}
		if !holds[d.UserID] {
			d.Text, d.Masked = textMask, true
		} else if err := unseal(s.db, d); err != nil {
			return err
		}
	}
	return nil
}

// holdsRightsOf reports whether the caller holds every right of a recipient. That of an invitation is no user yet, so that only
// administrators see its link.
func (s *Service) holdsRightsOf(ctx context.Context, userID string) (bool, error) {
	switch {
	case access.From(ctx).Administrator():
		return true, nil
	case userID == store.NilID || s.options.CheckHolds == nil:
		return false, nil
	}
	err := s.options.CheckHolds(ctx, s.db, userID)
	if errors.Is(err, apierr.GrantNotHeld) {
		return false, nil
	}
	return err == nil, err
}

// Retry queues a dead delivery again, with all its attempts. It returns apierr.DeliveryNotFound, and
// apierr.DeliveryNotDead for a delivery in another state.
func (s *Service) Retry(ctx context.Context, in endpoint.ByID) (Delivery, error) {
	caller := access.From(ctx)
	if !caller.May(access.Deliveries, access.Update) {
		return Delivery{}, apierr.NoAccess
	}
	var d Delivery
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		before, err := scanDelivery(tx.QueryRow(ctx, selectDelivery, in.ID))
		if err != nil {
			return records.OrMissing(err, apierr.DeliveryNotFound)
		}
		if before.Status != outbox.Dead {
			return apierr.DeliveryNotDead
		}
		statement := retryDeadLocally
		if s.queues[before.Channel] != nil {
			statement = retryDead
		}
		if d, err = scanDelivery(tx.QueryRow(ctx, statement, in.ID, tx.Now())); err != nil {
			return err
		}
		tx.Audit(store.AuditEntry{Actor: records.Actor(ctx), Action: "notifications.retry", RecType: access.Deliveries.Name, RecID: d.ID})
		tx.AfterCommit(s.WakeUp)
		return nil
	})
	if err != nil {
		return d, err
	}
	rows := []Delivery{d}
	err = s.mask(ctx, rows)
	return rows[0], err
}

const (
	// Administrators must not see a secret that has not been sent yet.
	deliveryColumns = `id, notification_id, user_id, channel, recipient, subject,
	CASE WHEN secret = TRUE AND status <> 'sent' THEN '' ELSE text END,
	status, attempts, last_error, next_attempt_at, created_at, sent_at, secret, CASE WHEN status = 'sent' THEN sealed ELSE '' END`

	claimedColumns = `id, notification_id, user_id, channel, recipient, subject, text,
	status, attempts, last_error, next_attempt_at, created_at, sent_at, html, secret, sealed`
)

func scanDelivery(row list.Row) (Delivery, error) {
	var d Delivery
	err := row.Scan(append(d.fields(), &d.Secret, &d.sealed)...)
	return d, err
}

// scanClaimed reads a delivery with the columns that the API does not show.
func scanClaimed(row list.Row) (Delivery, error) {
	var d Delivery
	err := row.Scan(append(d.fields(), &d.HTML, &d.Secret, &d.sealed)...)
	return d, err
}

// fields returns where to scan the columns that both kinds of statements read.
func (d *Delivery) fields() []any {
	return []any{&d.ID, &d.NotificationID, &d.UserID, &d.Channel, &d.Recipient, &d.Subject, &d.Text, &d.Status,
		&d.Attempts, &d.LastError, &d.NextAttemptAt, &d.CreatedAt, &d.SentAt}
}

var deliveryList = list.New(list.Source[Delivery]{
	From:    "deliveries",
	Columns: deliveryColumns,
	ID:      "id",
	Created: "created_at",
	Tables:  []string{"deliveries"},
	Fields: list.Fields{
		{Name: "id", Type: list.UUID, Column: "id"},
		{Name: "notification_id", Type: list.UUID, Column: "notification_id", Null: true},
		{Name: "user_id", Type: list.UUID, Column: "user_id"},
		{Name: "channel", Type: list.Text, Column: "channel", Key: "channel", Few: true},
		{Name: "to", Type: list.Text, Column: "recipient", Key: "recipient_key", Fold: types.Fold},
		{Name: "status", Type: list.Text, Column: "status", Key: "status", Few: true},
		{Name: "attempts", Type: list.Number, Column: "attempts"},
		{Name: "next_attempt_at", Type: list.Time, Column: "next_attempt_at", Null: true},
		{Name: "created_at", Type: list.Time, Column: "created_at"},
		{Name: "sent_at", Type: list.Time, Column: "sent_at", Null: true},
	},
	Scan: scanDelivery,
})
