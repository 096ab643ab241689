package webhooks

import (
	"context"

	"kontor/store"
)

// NextAttempt returns when the next delivery is tried after a time; nil: none is planned.
func (s *Service) NextAttempt(ctx context.Context, after store.Time) (*store.Time, error) {
	return s.worker.outbox.Next(ctx, after)
}

// Settle waits until the events so far became deliveries and what is due was tried.
func (s *Service) Settle(ctx context.Context) error { return s.worker.outbox.Settle(ctx) }
