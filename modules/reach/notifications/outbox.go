package notifications

import (
	"context"
	"fmt"
	"maps"

	"kontor/modules/kit/outbox"
	"kontor/modules/kit/types"
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
