package notifications

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kontor/modules/kit/list"
	"kontor/modules/kit/outbox"
	"kontor/modules/kit/records"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// DeliveriesInput holds the parameters of the list of deliveries.
type DeliveriesInput struct {
	Query list.Params `query:"*"`
}

// DeliveryInput names a delivery.
type DeliveryInput struct {
	ID string `path:"id"`
}

// ListDeliveries returns a page of all deliveries. It returns apierr.NoAccess for callers who may not read all of them.
func (s *Service) ListDeliveries(ctx context.Context, in DeliveriesInput) (list.Page[Delivery], error) {
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
		tx.AfterCommit(s.wakeUp)
		return nil
	})
	if err != nil {
		return d, err
	}
	rows := []Delivery{d}
	err = s.mask(ctx, rows)
	return rows[0], err
}

// wakeUp wakes all queues.
func (s *Service) wakeUp() {
	for _, q := range s.queues {
		q.WakeUp()
	}
}

// recoverOutbox moves the deliveries of channels without a gateway to the local outbox, also those that an earlier process has leased.
// Leases of other nodes stay, see [Service.ReleaseNodes].
func (s *Service) recoverOutbox(ctx context.Context) error {
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		var owners []string
		if s.db.Shared() {
			owners = append(owners, s.counts.node)
		}
		for _, channel := range []string{Email, SMS} {
			if s.queues[channel] != nil {
				continue
			}
			if err := outbox.Release(ctx, tx, deliveriesTable, "channel = '"+channel+"'", owners...); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, moveToLocalOutbox, tx.Now(), channel); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("recover the outbox: %w", err)
	}
	return nil
}

// stalledTime is how long a queue may do nothing while a delivery is due.
const stalledTime = 5 * time.Minute

// Ready returns an error if a queue has stalled: a delivery is due, and the queue has not run for a long time.
func (s *Service) Ready(ctx context.Context) error {
	now := s.db.Now()
	for channel, q := range s.queues {
		if lastRun := q.LastRun(); now >= lastRun && now < lastRun.Add(stalledTime) {
			continue
		}
		var id string
		err := s.db.QueryRow(ctx, selectDue, now.Add(-stalledTime), 1, channel).Scan(&id)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read the queue: %w", err)
		}
		return fmt.Errorf("the queue for %s has stalled", channel)
	}
	return nil
}
