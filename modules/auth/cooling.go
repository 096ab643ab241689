package auth

import (
	"context"
	"errors"
	"time"

	"kontor/server/apierr"
	"kontor/store"
)

// How many guesses there are before somebody has to wait.
const (
	// strangerFactor times the free attempts go to one value from all networks together, and the pause after them stays
	// short: a stranger can slow a user down but not lock him out.
	strangerFactor   = 4
	maxStrangerPause = 60 * time.Second

	// valuesPerNetwork is how many different values may fail from one network within valuesWindow: who tries one
	// password on many users is stopped, too. A value that succeeds does not count, and is not held up by others that
	// fail from the same network while the network is known.
	valuesPerNetwork = 30
	valuesWindow     = 10 * time.Minute

	// forgetAfter is when failures are forgotten without a success.
	forgetAfter = 24 * time.Hour
)

// failures is the count of a subject.
type failures struct {
	count        int
	last         store.Time
	blockedUntil store.Time
}

// blocked is until when attempts stay rejected. A failure that lies ahead was counted before the clock was set back: how
// much of its pause has passed nobody knows, and to wait for the old time could last for days. The count stays, so that
// the next failure brings the next pause.
func (f failures) blocked(now store.Time) store.Time {
	if f.last > now {
		return now
	}
	return f.blockedUntil
}

// next counts one more failure, which is forgotten after a day, and pauses once the free attempts are used up:
// base, twice base, … up to the longest.
func (f failures) next(now store.Time, free int, base, longest time.Duration) failures {
	if now >= f.last.Add(forgetAfter) {
		f = failures{}
	}
	f.count++
	f.last, f.blockedUntil = now, now
	if f.count >= free {
		f.blockedUntil = now.Add(pause(f.count-free, base, longest))
	}
	return f
}

// pause is base doubled some times, at most the longest.
func pause(doublings int, base, longest time.Duration) time.Duration {
	for ; doublings > 0 && base < longest; doublings-- {
		base *= 2
	}
	return min(base, longest)
}

// reserve counts an attempt as failed before the password is looked at, so that parallel guesses cannot exceed what is
// free. It returns the lane that it counted for, or apierr.CoolingOff when the caller has to wait; then nothing is counted.
func (s *Service) reserve(ctx context.Context, a attempt) (lane, error) {
	var chosen lane
	var wait time.Duration
	err := s.db.InTx(ctx, func(tx *store.Tx) (err error) {
		if chosen, wait, err = s.choose(ctx, tx, a); err != nil || wait > 0 {
			return err
		}
		counted := make([]failures, len(chosen.budgets))
		for i, b := range chosen.budgets {
			if counted[i], err = selectFailures(ctx, tx, b.subject); err != nil {
				return err
			}
			counted[i] = counted[i].next(tx.Now(), b.free, s.options.BasePause, b.longest)
		}
		for i, b := range chosen.budgets {
			if err := upsertFailures(ctx, tx, b.subject, counted[i]); err != nil {
				return err
			}
		}
		return nil
	})
	return chosen, coolingOff(wait, err)
}

// countForNetworks notes that a value has failed from the networks. It comes after the password was looked at, so that an
// office whose people sign in at the same time is not taken for somebody who tries one password on many users; fewer than
// networkAtOnce can slip through.
func (s *Service) countForNetworks(ctx context.Context, a attempt) error {
	return s.db.InTx(ctx, func(tx *store.Tx) error {
		for _, n := range a.networks {
			if err := upsertNetworkValue(ctx, tx, n.network, a.who); err != nil {
				return err
			}
		}
		return nil
	})
}

// coolingOff makes an error of a wait.
func coolingOff(wait time.Duration, err error) error {
	if err == nil && wait > 0 {
		return apierr.CoolingOff.RetryAfter(wait)
	}
	return err
}

// forgive takes back what a success has disproved, and remembers the network. What others have used up of the shared
// budgets stays used up when the user comes by a lane of their own: each of the user's sign-ins would give them new guesses.
func forgive(ctx context.Context, tx *store.Tx, a attempt, used lane) error {
	for _, b := range used.budgets {
		if _, err := tx.Exec(ctx, deleteFailures, b.subject); err != nil {
			return err
		}
	}
	for _, n := range a.networks {
		if _, err := tx.Exec(ctx, deleteNetworkValue, n.network, a.who); err != nil {
			return err
		}
	}
	return noteNetwork(ctx, tx, a)
}

const (
	selectFailuresOf = `SELECT failures, last_at, blocked_until FROM sign_in_failures WHERE subject = $1`

	upsertFailuresOf = `
		INSERT INTO sign_in_failures (subject, failures, last_at, blocked_until) VALUES ($1, $2, $3, $4)
		ON CONFLICT (subject) DO UPDATE SET
			failures = excluded.failures, last_at = excluded.last_at, blocked_until = excluded.blocked_until`

	deleteFailures = `DELETE FROM sign_in_failures WHERE subject = $1`

	// The value whose time must run out before another one may fail from the network: the last of as many as may.
	// What lies ahead was counted before the clock was set back and counts no more.
	selectNetworkValue = `
		SELECT at FROM sign_in_values
		WHERE network = $1 AND at > $2 AND at <= $5 AND subject <> $3
		ORDER BY at DESC LIMIT 1 OFFSET $4`

	selectNetworkKnows = `SELECT count(*) FROM sign_in_values WHERE network = $1 AND subject = $2 AND at > $3`

	upsertNetworkValueRow = `
		INSERT INTO sign_in_values (network, subject, at) VALUES ($1, $2, $3)
		ON CONFLICT (network, subject) DO UPDATE SET at = excluded.at`

	deleteNetworkValue = `DELETE FROM sign_in_values WHERE network = $1 AND subject = $2`
)

func selectFailures(ctx context.Context, q store.Querier, subject string) (failures, error) {
	var f failures
	err := q.QueryRow(ctx, selectFailuresOf, subject).Scan(&f.count, &f.last, &f.blockedUntil)
	if errors.Is(err, store.ErrNotFound) {
		return failures{}, nil
	}
	return f, err
}

func upsertFailures(ctx context.Context, tx *store.Tx, subject string, f failures) error {
	_, err := tx.Exec(ctx, upsertFailuresOf, subject, f.count, f.last, f.blockedUntil)
	return err
}

func upsertNetworkValue(ctx context.Context, tx *store.Tx, network, value string) error {
	_, err := tx.Exec(ctx, upsertNetworkValueRow, network, value, tx.Now())
	return err
}

// selectNetworkFull returns zero while the network may try the value, else since when the value that has to leave first
// is counted. A value that is counted already may be tried again.
func selectNetworkFull(ctx context.Context, q store.Querier, n spread, who string, since store.Time) (store.Time, error) {
	var at store.Time
	err := q.QueryRow(ctx, selectNetworkValue, n.network, since, who, n.values-1, q.Now()).Scan(&at)
	if errors.Is(err, store.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	var counted int
	if err := q.QueryRow(ctx, selectNetworkKnows, n.network, who, since).Scan(&counted); err != nil || counted > 0 {
		return 0, err
	}
	return at, nil
}
