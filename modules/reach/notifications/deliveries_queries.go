package notifications

import (
	"kontor/modules/kit/list"
	"kontor/modules/kit/types"
)

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

const deliveryArgs = 16

func insertDeliveriesStatement(n int) string {
	return statement("deliveries", n, func() string {
		return `
	INSERT INTO deliveries (id, notification_id, user_id, channel, recipient, recipient_key, subject, text, html, sealed, secret,
		status, attempts, next_attempt_at, created_at, sent_at)
	VALUES ` + placeholders(n, deliveryArgs, 0)
	})
}
