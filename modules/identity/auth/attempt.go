package auth

import (
	"context"
	"encoding/hex"
	"net/netip"
	"time"

	"kontor/server/endpoint"
	"kontor/store"
)

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
		until = max(until, f.blocked(now))
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
