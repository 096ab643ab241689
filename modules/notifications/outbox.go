package notifications

import (
	"context"
	"fmt"

	"kontor/modules/value"
	"kontor/store"
)

// The channels that leave Kontor.
const (
	Email = "email"
	SMS   = "sms"
)

// The states of a delivery.
const (
	Queued   = "queued"   // waits for its first attempt
	Sending  = "sending"  // somebody holds the lease
	Sent     = "sent"     // the gateway has it, or the local outbox keeps it
	Retrying = "retrying" // an attempt failed, another will follow
	Dead     = "dead"     // given up
)

// Delivery is one message to one recipient by one channel.
type Delivery struct {
	ID             string      `json:"id"`
	NotificationID *string     `json:"notification_id"`
	UserID         string      `json:"user_id"`
	Channel        string      `json:"channel"`
	Recipient      string      `json:"to"`
	Subject        string      `json:"subject"`
	Text           string      `json:"text"`
	Status         string      `json:"status"`
	Attempts       int         `json:"attempts"`
	LastError      *string     `json:"last_error"`
	NextAttemptAt  *store.Time `json:"next_attempt_at"`
	CreatedAt      store.Time  `json:"created_at"`
	SentAt         *store.Time `json:"sent_at"`

	HTML   string `json:"-"`
	Secret bool   `json:"-"` // the text holds what only the recipient may know, and is blanked once a gateway has it
}

// Enqueue leaves a delivery in the outbox, with the transaction of what it tells of. The caller fills in recipient,
// channel and texts; the rest is set here.
func (s *Service) Enqueue(ctx context.Context, tx *store.Tx, d Delivery) (Delivery, error) {
	now := tx.Now()
	d.ID, d.CreatedAt = store.NewID(), now
	d.Status, d.SentAt = Sent, &now // the local outbox
	_, err := tx.Exec(ctx, insertDelivery, d.ID, d.NotificationID, d.UserID, d.Channel, d.Recipient, value.Fold(d.Recipient),
		d.Subject, d.Text, d.HTML, d.Secret, d.Status, d.NextAttemptAt, d.CreatedAt, d.SentAt)
	if err != nil {
		return Delivery{}, fmt.Errorf("write to the outbox: %w", err)
	}
	return d, nil
}
