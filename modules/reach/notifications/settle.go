package notifications

import (
	"context"
	"errors"

	"kontor/store"
)

// NextAttempt returns when the next delivery is tried after a time; nil: none is planned.
func (s *Service) NextAttempt(ctx context.Context, after store.Time) (next *store.Time, err error) {
	for _, q := range s.queues {
		at, err := q.Next(ctx, after)
		if err != nil {
			return nil, err
		}
		if at != nil && (next == nil || *at < *next) {
			next = at
		}
	}
	return next, nil
}

// Settle waits until what is due was tried.
func (s *Service) Settle(ctx context.Context) (err error) {
	for _, q := range s.queues {
		err = errors.Join(err, q.Settle(ctx))
	}
	return err
}

const countNotices = `SELECT event, COUNT(*) FROM notices WHERE created_at >= $1 GROUP BY event ORDER BY event`

// CountSince calls use with each event of the notices since a time, and their number.
func (s *Service) CountSince(ctx context.Context, since store.Time, use func(event string, n int64)) error {
	_, err := store.All(ctx, s.db, func(row store.Scanner) (n int64, err error) {
		var event string
		if err = row.Scan(&event, &n); err == nil {
			use(event, n)
		}
		return n, err
	}, countNotices, since)
	return err
}
