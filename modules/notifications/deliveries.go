package notifications

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

// DeliveriesInput asks for a page of the outbox.
type DeliveriesInput struct {
	Query list.Params `query:"*"`
}

// DeliveryInput names a delivery.
type DeliveryInput struct {
	ID string `path:"id"`
}

// ListDeliveries lists the outbox for callers who may read all of it. It returns apierr.NoAccess.
func (s *Service) ListDeliveries(ctx context.Context, in DeliveriesInput) (list.Page[Delivery], error) {
	if !access.From(ctx).May(access.Deliveries, access.ReadAll) {
		return list.Page[Delivery]{}, apierr.NoAccess
	}
	return deliveryList.Page(ctx, s.db, in.Query)
}

// Retry gives a delivery that was given up all its attempts again. It returns apierr.DeliveryNotFound, and
// apierr.DeliveryNotDead for one that was not given up.
func (s *Service) Retry(ctx context.Context, in DeliveryInput) (Delivery, error) {
	caller := access.From(ctx)
	if !caller.May(access.Deliveries, access.Update) {
		return Delivery{}, apierr.NoAccess
	}
	var d Delivery
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		before, err := scanDelivery(tx.QueryRow(ctx, selectDelivery, in.ID))
		if errors.Is(err, store.ErrNotFound) {
			return apierr.DeliveryNotFound
		}
		if err != nil {
			return err
		}
		if before.Status != Dead {
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
		tx.AfterCommit(s.nudge)
		return nil
	})
	return d, err
}

// nudge wakes all queues.
func (s *Service) nudge() {
	for _, q := range s.queues {
		q.nudge()
	}
}

// recover puts the outbox in order before the queues start: leases of a process that is gone are free, and a channel
// without a gateway has no queue.
func (s *Service) recover(ctx context.Context) error {
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		for _, channel := range []string{Email, SMS} {
			statement := keepLocally
			if s.queues[channel] != nil {
				statement = freeLeases
			}
			if _, err := tx.Exec(ctx, statement, tx.Now(), channel); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, limitWaits, tx.Now(), channel, tx.Now().Add(max(maxRetryAfter, s.options.MaxPause))); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("put the outbox in order: %w", err)
	}
	return nil
}

// stuckTime is how long a queue may stand still while something waits.
const stuckTime = 5 * time.Minute

// Ready reports whether the queues move: whether something is due and the queue has not come round for a long time.
func (s *Service) Ready(ctx context.Context) error {
	now := s.db.Now()
	for channel, q := range s.queues {
		if moved := store.Time(q.moved.Load()); now >= moved && now < moved.Add(stuckTime) {
			continue
		}
		var id string
		err := s.db.QueryRow(ctx, selectDue, channel, now.Add(-stuckTime), 1).Scan(&id)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read the queue: %w", err)
		}
		return fmt.Errorf("the queue for %s stands still", channel)
	}
	return nil
}
