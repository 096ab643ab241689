package auth

import (
	"context"
	"encoding/hex"
	"errors"
	"net/netip"
	"sync"
	"time"

	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

const (
	// sharedFactor times the free attempts are allowed for one value from all networks together. The lockout after them
	// stays short: others can delay a user's sign-in but not prevent it.
	sharedFactor   = 4
	maxSharedPause = 60 * time.Second

	// valuesPerNetwork is the number of different values that may fail from one network within valuesWindow. It stops
	// password spraying: one password tried on many users. A value that succeeds does not count. Failures of other values do
	// not reject it while the network is known.
	valuesPerNetwork = 30
	valuesWindow     = 10 * time.Minute

	// forgetAfter is the time after which failures expire without a success.
	forgetAfter = 24 * time.Hour
)

// timedRows are what counts, or is valid, for a time. The end of a session stays, because the audit trail has it.
var timedRows = []store.Moment{
	{Table: "sign_in_failures", Of: "last_at", Moves: []string{"last_at", "blocked_until"}},
	{Table: "sign_in_values", Of: "at", Moves: []string{"at"}},
	{Table: "known_networks", Of: "last_success_at", Moves: []string{"last_success_at"}},
	{Table: "device_tokens", Of: "last_use_at", Moves: []string{"last_use_at", "expires_at"}},
	{Table: "auth_challenges", Of: "created_at", Moves: []string{"created_at", "expires_at"}},
	{Table: "sign_in_undos", Of: "created_at", Moves: []string{"created_at", "expires_at"}},
	{Table: "sessions", Of: "last_used_at", Moves: []string{"last_used_at"}},
}

// failures is the failure count of a subject.
type failures struct {
	count        int
	last         store.Time
	blockedUntil store.Time
}

// asOf returns the failures with a last one that is not in the future. Such a failure was counted before the clock was set back, or by a
// node whose clock is ahead: it counts as now.
func (f failures) asOf(now store.Time) failures {
	if ahead := f.last - now; ahead > 0 {
		f.last, f.blockedUntil = now, f.blockedUntil-ahead
	}
	return f
}

// next counts one more failure. Once the free attempts are used up, the lockout is base, twice base, … up to longest. The
// count restarts a day after the last failure.
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

// without counts one failure less. The lockout becomes that of the remaining ones.
func (f failures) without(free int, base, longest time.Duration) failures {
	f.count--
	until := f.last
	if f.count >= free {
		until = f.last.Add(pause(f.count-free, base, longest))
	}
	f.blockedUntil = min(f.blockedUntil, until)
	return f
}

// pause returns base doubled the given number of times, at most longest.
func pause(doublings int, base, longest time.Duration) time.Duration {
	for ; doublings > 0 && base < longest; doublings-- {
		base *= 2
	}
	return min(base, longest)
}

// reserve counts an attempt as failed before the password is compared, so that parallel guesses cannot exceed the budget.
// It returns the set that it counted for. It returns apierr.LockedOut and counts nothing during a lockout.
func (s *Service) reserve(ctx context.Context, a attempt) (budgetSet, error) {
	var chosen budgetSet
	var wait time.Duration
	err := s.db.InTx(ctx, func(tx *store.Tx) (err error) {
		chosen, wait, err = s.reserveIn(ctx, tx, a)
		return err
	})
	return chosen, lockedOut(wait, err)
}

// reserveIn counts an attempt in a transaction. During a lockout it counts nothing and returns the remaining time.
func (s *Service) reserveIn(ctx context.Context, tx *store.Tx, a attempt) (chosen budgetSet, wait time.Duration, err error) {
	if chosen, wait, err = s.choose(ctx, tx, a); err != nil || wait > 0 {
		return chosen, wait, err
	}
	counted := make([]failures, len(chosen.budgets))
	for i, b := range chosen.budgets {
		if counted[i], err = selectFailures(ctx, tx, b.subject); err != nil {
			return chosen, 0, err
		}
		counted[i] = counted[i].next(tx.Now(), b.free, s.options.BasePause, b.longest)
	}
	for i, b := range chosen.budgets {
		if err := upsertFailures(ctx, tx, b.subject, counted[i]); err != nil {
			return chosen, 0, err
		}
	}
	return chosen, 0, nil
}

// giveBack takes back an attempt whose password could not be compared. It has revealed nothing.
func (s *Service) giveBack(ctx context.Context, used budgetSet) error {
	return s.db.InTx(ctx, func(tx *store.Tx) error {
		for _, b := range used.budgets {
			f, err := selectFailures(ctx, tx, b.subject)
			if err != nil {
				return err
			}
			if f.count > 1 {
				err = upsertFailures(ctx, tx, b.subject, f.without(b.free, s.options.BasePause, b.longest))
			} else { // the only one, or a success has deleted all meanwhile
				_, err = tx.Exec(ctx, deleteFailures, b.subject)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// countNetworkFailure records that a value has failed from the networks. It runs after the comparison of the password, so
// that simultaneous sign-ins from one office do not look like password spraying. Fewer than networkAtOnce attempts can exceed
// the limit.
func (s *Service) countNetworkFailure(ctx context.Context, a attempt) error {
	return s.db.InTx(ctx, func(tx *store.Tx) error {
		for _, n := range a.networks {
			if _, err := tx.Exec(ctx, upsertNetworkValueRow, n.network, a.who, tx.Now()); err != nil {
				return err
			}
		}
		return nil
	})
}

// lockedOut returns apierr.LockedOut for a positive wait.
func lockedOut(wait time.Duration, err error) error {
	if err == nil && wait > 0 {
		return apierr.LockedOut.RetryAfter(wait)
	}
	return err
}

// forgetFailures deletes the failures that a success has disproved.
func forgetFailures(ctx context.Context, tx *store.Tx, a attempt, used budgetSet) error {
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
	return nil
}

const (
	selectFailuresOf = `SELECT failures, last_at, blocked_until FROM sign_in_failures WHERE subject = $1`

	upsertFailuresOf = `
		INSERT INTO sign_in_failures (subject, failures, last_at, blocked_until) VALUES ($1, $2, $3, $4)
		ON CONFLICT (subject) DO UPDATE SET
			failures = excluded.failures, last_at = excluded.last_at, blocked_until = excluded.blocked_until`

	deleteFailures = `DELETE FROM sign_in_failures WHERE subject = $1`

	// The value that must expire before another one may fail from the network.
	selectNetworkValue = `
		SELECT at FROM sign_in_values
		WHERE network = $1 AND at > $2 AND subject <> $3
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
	return f.asOf(q.Now()), store.Optional(err)
}

func upsertFailures(ctx context.Context, tx *store.Tx, subject string, f failures) error {
	return tx.Run(ctx, upsertFailuresOf, subject, f.count, f.last, f.blockedUntil)
}

// selectNetworkFull returns zero while the value may be tried from the network, or the time at which the value that expires
// first was counted. A value that is already counted may be tried again.
func selectNetworkFull(ctx context.Context, q store.Querier, n networkLimit, who string, since store.Time) (store.Time, error) {
	var at store.Time
	err := q.QueryRow(ctx, selectNetworkValue, n.network, since, who, n.values-1).Scan(&at)
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
	return min(at, q.Now()), nil
}

// attempt is one try of a password or of a second factor from one network. Its subjects are keyed hashes. All sign-in values of
// a user share one subject. An unknown value is counted like a user.
type attempt struct {
	user     string   // empty for an unknown value
	who      string   // subject of the user or the unknown value
	own      budget   // of the caller's network
	shared   []budget // of the larger networks around it, and of all networks
	networks []networkLimit
	known    string // subject under which a success from the network is stored
	device   device // of the device token in the request; zero without one
}

// budget is the number of failures of a subject before a lockout, and the longest lockout.
type budget struct {
	subject string
	free    int
	longest time.Duration
}

// networkLimit is the number of different values that may fail from a network.
type networkLimit struct {
	network string
	values  int
}

// budgetSet is a set of budgets that one attempt counts for. The longest lockout among them applies.
type budgetSet struct {
	budgets []budget
	known   bool // a known network or device: other failures from the network do not count
}

// prefixes are the lengths of the networks of an IPv6 address, the smallest network first. One IPv6 subscriber may have a /64,
// a /56 or a /48 (RFC 6177), and so a new smaller network for each guess.
var prefixes = [...]struct{ bits, factor int }{{64, 1}, {56, 2}, {48, 4}}

// networksOf returns the networks of a client's address, the smallest first. IPv4 addresses have one.
func networksOf(address netip.Addr) []string {
	if address = address.Unmap().WithZone(""); !address.Is6() {
		return []string{endpoint.Network(address)}
	}
	names := make([]string, len(prefixes))
	for i, p := range prefixes {
		prefix, _ := address.Prefix(p.bits) // an IPv6 address has more bits
		names[i] = prefix.String()
	}
	return names
}

// newAttempt returns an attempt with its subjects and budgets.
func (s *Service) newAttempt(ctx context.Context, userID, key string) attempt {
	who := "user " + userID
	if userID == "" {
		who = "value " + key
	}
	return s.attemptAs(ctx, userID, who, s.options.FreeAttempts)
}

// attemptAs returns an attempt that is counted under the name who.
func (s *Service) attemptAs(ctx context.Context, userID, who string, free int) attempt {
	request := endpoint.Of(ctx)
	hash := func(kind, text string) string {
		return hex.EncodeToString(s.db.Keyed("sign-in "+kind, []byte(text)))
	}
	longest := s.options.MaxPause
	a := attempt{user: userID, who: hash("value", who)}
	for i, network := range networksOf(request.Address) {
		factor := prefixes[i].factor
		pair := budget{hash("pair", network+" "+who), factor * free, longest}
		if i == 0 {
			a.own, a.known = pair, hash("known", network+" user "+userID)
		} else {
			a.shared = append(a.shared, pair)
		}
		a.networks = append(a.networks, networkLimit{hash("network", network), factor * valuesPerNetwork})
	}
	a.shared = append(a.shared, budget{a.who, sharedFactor * free, min(maxSharedPause, longest)})
	a.device = s.parseDevice(userID, request.DeviceToken)
	return a
}

// widest returns the subject of the largest network of the attempt.
func (a attempt) widest() string { return a.networks[len(a.networks)-1].network }

// budgetSets returns the sets for which the attempt may count, the best first: that of the device, then that of the network.
func (s *Service) budgetSets(ctx context.Context, q store.Querier, a attempt) ([]budgetSet, error) {
	var found []budgetSet
	held, err := selectDevice(ctx, q, a)
	if err != nil {
		return nil, err
	}
	if held {
		own := budget{a.device.subject, a.own.free, a.own.longest}
		found = append(found, budgetSet{budgets: []budget{own}, known: true})
	}
	known, err := selectKnown(ctx, q, a)
	if err != nil {
		return nil, err
	}
	if known {
		return append(found, budgetSet{budgets: []budget{a.own}, known: true}), nil
	}
	return append(found, budgetSet{budgets: append([]budget{a.own}, a.shared...)}), nil
}

// choose returns the first set that is not locked out, or the shortest remaining lockout.
func (s *Service) choose(ctx context.Context, q store.Querier, a attempt) (chosen budgetSet, wait time.Duration, err error) {
	sets, err := s.budgetSets(ctx, q, a)
	if err != nil {
		return budgetSet{}, 0, err
	}
	for i, l := range sets {
		pause, err := lockoutRemaining(ctx, q, a, l)
		if err != nil || pause == 0 {
			return l, 0, err
		}
		if i == 0 || pause < wait {
			wait = pause
		}
	}
	return budgetSet{}, wait, nil
}

// lockoutRemaining returns how long attempts that count for the set stay rejected.
func lockoutRemaining(ctx context.Context, q store.Querier, a attempt, l budgetSet) (time.Duration, error) {
	now := q.Now()
	until := now
	for _, b := range l.budgets {
		f, err := selectFailures(ctx, q, b.subject)
		if err != nil {
			return 0, err
		}
		until = max(until, f.blockedUntil)
	}
	if l.known {
		return time.Duration(until-now) * time.Millisecond, nil
	}
	for _, n := range a.networks {
		full, err := selectNetworkFull(ctx, q, n, a.who, now.Add(-valuesWindow))
		if err != nil {
			return 0, err
		}
		if full > 0 {
			until = max(until, full.Add(valuesWindow))
		}
	}
	return time.Duration(until-now) * time.Millisecond, nil
}

const (
	// networkAtOnce is the number of concurrent sign-ins from one network (/32, /48). It limits by how much parallel guesses
	// can exceed valuesPerNetwork, and keeps one network from filling the queue of the hasher. The nodes of a shared database
	// divide it.
	networkAtOnce = 16

	// maxWaiting is the number of callers that may wait for one key.
	maxWaiting = 256
)

// keyedSemaphore limits the number of concurrent holders for each key. An attempt counts as failed until it has succeeded:
// without the limit, concurrent sign-ins with the right password would use up each other's free attempts.
type keyedSemaphore struct {
	atOnce func() int // at least 1; asked for the first holder of a key

	mu    sync.Mutex
	taken map[string]*waiters
}

type waiters struct {
	places chan struct{}
	users  int // holders and waiting callers
}

func newKeyedSemaphore(atOnce func() int) *keyedSemaphore {
	return &keyedSemaphore{atOnce: atOnce, taken: map[string]*waiters{}}
}

// acquire waits for a place of a key. It returns apierr.Unavailable when too many callers wait. Callers must call release once
// the outcome of the attempt is stored.
func (t *keyedSemaphore) acquire(key string) (release func(), err error) {
	t.mu.Lock()
	own := t.taken[key]
	if own == nil {
		own = &waiters{places: make(chan struct{}, t.atOnce())}
		t.taken[key] = own
	}
	if own.users >= cap(own.places)+maxWaiting {
		t.mu.Unlock()
		return nil, apierr.Unavailable.RetryAfter(retryHashing)
	}
	own.users++
	t.mu.Unlock()
	own.places <- struct{}{}
	return func() {
		<-own.places
		t.mu.Lock()
		defer t.mu.Unlock()
		if own.users--; own.users == 0 {
			delete(t.taken, key)
		}
	}, nil
}

// onePlace is the number of concurrent attempts for a value from a network.
func onePlace() int { return 1 }

// networkPlaces returns this node's share of networkAtOnce.
func (s *Service) networkPlaces() int { return max(1, networkAtOnce/s.db.LiveNodes()) }

// acquireTurn waits until an attempt may be made: first for the pair of value and network, then for the network, so that
// attempts that wait for a pair hold no place of the network.
func (s *Service) acquireTurn(a attempt) (release func(), err error) {
	releasePair, err := s.pairs.acquire(a.own.subject)
	if err != nil {
		return nil, err
	}
	releaseNetwork, err := s.networks.acquire(a.widest())
	if err != nil {
		releasePair()
		return nil, err
	}
	return func() {
		releaseNetwork()
		releasePair()
	}, nil
}
