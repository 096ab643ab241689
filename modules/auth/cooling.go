package auth

import (
	"context"
	"encoding/hex"
	"errors"
	"time"

	"kontor/server/endpoint"
	"kontor/server/fault"
	"kontor/store"
)

// How many guesses there are before somebody has to wait.
const (
	// strangerFactor times the free attempts go to one value from all networks together, and the pause after them stays
	// short: a stranger can slow a user down but not lock him out.
	strangerFactor   = 4
	maxStrangerPause = 60 * time.Second

	// valuesPerNetwork is how many different values may fail from one network within valuesWindow: who tries one
	// password on many users is stopped, too. A value that succeeds does not count, and goes on being looked at for
	// homeFor: a stranger in the same house must not be able to lock out those who live there.
	valuesPerNetwork = 30
	valuesWindow     = 10 * time.Minute
	homeFor          = 24 * time.Hour

	// forgetAfter is when failures are forgotten without a success.
	forgetAfter = 24 * time.Hour
)

// attempt is a try of one value from one network, by keyed hashes.
type attempt struct {
	value   string // what network and value are counted under
	pair    string
	network string
	home    string // under what is kept that the value has succeeded from the network
}

// newAttempt names what a try counts for. Values that nobody has are counted like all others.
func (s *Service) newAttempt(ctx context.Context, key string) attempt {
	network := endpoint.Of(ctx).Network()
	hash := func(kind, text string) string {
		return hex.EncodeToString(s.db.Keyed("sign-in "+kind, []byte(text)))
	}
	return attempt{value: hash("value", key), pair: hash("pair", network+" "+key), network: hash("network", network),
		home: hash("home", network+" "+key)}
}

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
// free. It returns fault.CoolingOff when the caller has to wait; then nothing is counted.
func (s *Service) reserve(ctx context.Context, a attempt) error {
	var wait time.Duration
	err := s.db.InTx(ctx, func(tx *store.Tx) (err error) {
		if wait, err = s.mustWait(ctx, tx, a); err != nil || wait > 0 {
			return err
		}
		now, o := tx.Now(), s.options
		pair, err := selectFailures(ctx, tx, a.pair)
		if err != nil {
			return err
		}
		value, err := selectFailures(ctx, tx, a.value)
		if err != nil {
			return err
		}
		pair = pair.next(now, o.FreeAttempts, o.BasePause, o.MaxPause)
		value = value.next(now, strangerFactor*o.FreeAttempts, o.BasePause, min(maxStrangerPause, o.MaxPause))
		if err := upsertFailures(ctx, tx, a.pair, pair); err != nil {
			return err
		}
		return upsertFailures(ctx, tx, a.value, value)
	})
	return coolingOff(wait, err)
}

// countForNetwork notes that a value has failed from a network. It comes after the password was looked at, so that an
// office whose people sign in at the same time is not taken for somebody who tries one password on many users; fewer than
// networkAtOnce can slip through.
func (s *Service) countForNetwork(ctx context.Context, a attempt) error {
	return s.db.InTx(ctx, func(tx *store.Tx) error { return upsertNetworkValue(ctx, tx, a.network, a.value) })
}

// coolingOff makes an error of a wait.
func coolingOff(wait time.Duration, err error) error {
	if err == nil && wait > 0 {
		return fault.CoolingOff.RetryAfter(wait)
	}
	return err
}

// mustWait is how long nobody looks at what the caller tries.
func (s *Service) mustWait(ctx context.Context, q store.Querier, a attempt) (time.Duration, error) {
	now := q.Now()
	until := now
	for _, subject := range []string{a.pair, a.value} {
		f, err := selectFailures(ctx, q, subject)
		if err != nil {
			return 0, err
		}
		until = max(until, f.blocked(now))
	}
	full, err := selectNetworkFull(ctx, q, a, now.Add(-valuesWindow))
	if err != nil {
		return 0, err
	}
	if full > 0 {
		until = max(until, full.Add(valuesWindow))
	}
	return time.Duration(until-now) * time.Millisecond, nil
}

// forgive takes back what a success has disproved, and notes where the value is at home.
func forgive(ctx context.Context, tx *store.Tx, a attempt) error {
	for _, subject := range []string{a.pair, a.value} {
		if _, err := tx.Exec(ctx, deleteFailures, subject); err != nil {
			return err
		}
	}
	if _, err := tx.Exec(ctx, deleteNetworkValue, a.network, a.value); err != nil {
		return err
	}
	return upsertFailures(ctx, tx, a.home, failures{last: tx.Now(), blockedUntil: tx.Now()})
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

// selectNetworkFull gives zero while the network may try the value, else since when the value that has to leave first
// is counted. A value that is counted already may be tried again, and so may one that is at home there.
func selectNetworkFull(ctx context.Context, q store.Querier, a attempt, since store.Time) (store.Time, error) {
	var at store.Time
	err := q.QueryRow(ctx, selectNetworkValue, a.network, since, a.value, valuesPerNetwork-1, q.Now()).Scan(&at)
	if errors.Is(err, store.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	var known int
	if err := q.QueryRow(ctx, selectNetworkKnows, a.network, a.value, since).Scan(&known); err != nil || known > 0 {
		return 0, err
	}
	home, err := selectFailures(ctx, q, a.home)
	if err != nil || q.Now() < home.last.Add(homeFor) {
		return 0, err
	}
	return at, nil
}
