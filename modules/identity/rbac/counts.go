package rbac

import (
	"context"
	"encoding/hex"
	"errors"
	"time"

	"kontor/server/ratelimit"
	"kontor/store"
)

// Requests to endpoints with a stored rule are counted in a table when several nodes serve them: the rule is exact, whichever node
// answers. A database of one process counts in memory, see [kontor/server/ratelimit].

const (
	selectCount = `SELECT arrival FROM rate_limit_counts WHERE subject = $1`

	upsertCount = `
		INSERT INTO rate_limit_counts (subject, arrival) VALUES ($1, $2)
		ON CONFLICT (subject) DO UPDATE SET arrival = excluded.arrival`

	refundCount = `UPDATE rate_limit_counts SET arrival = arrival - $2 WHERE subject = $1`

	deleteCounts = `
		DELETE FROM rate_limit_counts WHERE subject IN (
			SELECT subject FROM rate_limit_counts WHERE arrival <= $1 ORDER BY arrival LIMIT $2)`
)

// countPurpose is the purpose of the hashes of subjects. A rotation of the master key starts all counts again.
const countPurpose = "rate limit"

func (s *Service) countSubject(key []byte) string {
	return hex.EncodeToString(s.db.Keyed(countPurpose, key))
}

// Count counts a request of a key against a rule in requests a minute, over all nodes, and decides whether it may proceed. A
// rejected request writes nothing.
func (s *Service) Count(ctx context.Context, key []byte, perMinute int) (v ratelimit.Verdict, err error) {
	subject := s.countSubject(key)
	if v, _, err = s.verdict(ctx, s.db, subject, perMinute); err != nil || !v.Allowed {
		return v, err
	}
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		var next int64
		if v, next, err = s.verdict(ctx, tx, subject, perMinute); err != nil || !v.Allowed {
			return err
		}
		_, err := tx.Exec(ctx, upsertCount, subject, next)
		return err
	})
	return v, err
}

func (s *Service) verdict(ctx context.Context, q store.Querier, subject string, perMinute int) (v ratelimit.Verdict, next int64, err error) {
	now := s.db.Clock().Now().UnixNano()
	arrival := now
	if err := q.QueryRow(ctx, selectCount, subject).Scan(&arrival); err != nil && !errors.Is(err, store.ErrNotFound) {
		return v, 0, err
	}
	v, next = ratelimit.Conform(now, arrival, perMinute)
	return v, next, nil
}

// Refund takes one allowed request of a key out of the count.
func (s *Service) Refund(ctx context.Context, key []byte, perMinute int) error {
	interval := int64(time.Minute) / int64(perMinute)
	return s.db.InTx(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(ctx, refundCount, s.countSubject(key), interval)
		return err
	})
}

// countBatch is the number of rows that one transaction deletes, so that other writes do not wait long.
const countBatch = 500

// PurgeCounts deletes the counts that do not limit any more. Call it about once a minute, on one node.
func (s *Service) PurgeCounts(ctx context.Context) error {
	if !s.db.Shared() {
		return nil
	}
	for deleted := int64(countBatch); deleted == countBatch; {
		err := s.db.InTx(ctx, func(tx *store.Tx) (err error) {
			deleted, err = tx.Exec(ctx, deleteCounts, s.db.Clock().Now().UnixNano(), countBatch)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
