package notifications

import (
	"context"
	"fmt"
	"maps"

	"kontor/modules/kit/types"
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
	Channel        string      `json:"channel" enum:"email,sms"`
	Recipient      string      `json:"to"`
	Subject        string      `json:"subject"`
	Text           string      `json:"text"`
	Status         string      `json:"status" enum:"queued,sending,sent,retrying,dead"`
	Attempts       int         `json:"attempts"`
	LastError      *string     `json:"last_error" example:"connection refused"`
	NextAttemptAt  *store.Time `json:"next_attempt_at"`
	CreatedAt      store.Time  `json:"created_at"`
	SentAt         *store.Time `json:"sent_at"`

	HTML   string `json:"-"`
	Secret bool   `json:"-"` // the text holds what only the recipient may know, and is blanked once a gateway has it
}

// Enqueue leaves a delivery in the outbox, with the transaction of what it tells of. The caller fills in recipient,
// channel and texts; the rest is set here.
func (s *Service) Enqueue(ctx context.Context, tx *store.Tx, d Delivery) (Delivery, error) {
	deliveries := []Delivery{d}
	err := s.enqueue(ctx, tx, deliveries)
	return deliveries[0], err
}

// enqueueAll leaves the mails and messages of a notice in the outbox, each in the language of its recipient. A channel
// for which the event has no template is left out.
func (s *Service) enqueueAll(ctx context.Context, tx *store.Tx, src source, recipients []string) error {
	if len(src.channels) == 0 {
		return nil
	}
	reached, err := addresses(ctx, tx, recipients, src.channels, src.everywhere)
	if err != nil {
		return err
	}
	worded := maps.Clone(src.worded)
	if worded == nil {
		worded = map[wording]*message{}
	}
	deliveries := make([]Delivery, 0, len(reached))
	for _, a := range reached {
		key := wording{a.language, a.channel}
		m, known := worded[key]
		if !known {
			s.db.Heavy("template")
			m = s.message(a.language, a.channel, src)
			worded[key] = m
		}
		if m == nil {
			continue
		}
		deliveries = append(deliveries, Delivery{NotificationID: &src.id, UserID: a.userID, Channel: a.channel, Recipient: a.value,
			Subject: m.subject, Text: m.text, HTML: m.html})
	}
	return s.enqueue(ctx, tx, deliveries)
}

// enqueue writes deliveries in few statements.
func (s *Service) enqueue(ctx context.Context, tx *store.Tx, deliveries []Delivery) error {
	now := tx.Now()
	for i := range deliveries {
		d := &deliveries[i]
		d.ID, d.CreatedAt = store.NewID(), now
		if s.queues[d.Channel] == nil {
			d.Status, d.SentAt = Sent, &now // the local outbox
		} else {
			d.Status, d.NextAttemptAt = Queued, &now
		}
	}
	if len(deliveries) > 0 {
		tx.AfterCommit(s.nudge)
	}
	for part := range batches(deliveries) {
		args := make([]any, 0, deliveryArgs*len(part))
		for _, d := range part {
			args = append(args, d.ID, d.NotificationID, d.UserID, d.Channel, d.Recipient, types.Fold(d.Recipient),
				d.Subject, d.Text, d.HTML, d.Secret, d.Status, d.NextAttemptAt, d.CreatedAt, d.SentAt)
		}
		if _, err := tx.Exec(ctx, insertDeliveriesStatement(len(part)), args...); err != nil {
			return fmt.Errorf("write to the outbox: %w", err)
		}
	}
	return nil
}
