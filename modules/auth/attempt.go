package auth

import (
	"context"
	"encoding/hex"
	"net/netip"
	"time"

	"kontor/server/endpoint"
	"kontor/store"
)

// attempt is a try of one password from one network, by keyed hashes. All values by which a user can sign in are
// counted as one. An unknown value is counted like a user.
type attempt struct {
	user     string // empty for an unknown value
	who      string
	own      budget   // from the caller's network
	shared   []budget // from the networks around it and from everywhere
	networks []spread
	known    string // under what a success from the network is remembered
	device   device // of the token that came with it; the zero device is none
}

// budget is how many attempts a subject has before they pause, and for how long at most.
type budget struct {
	subject string
	free    int
	longest time.Duration
}

// spread is how many different values may fail from a network.
type spread struct {
	network string
	values  int
}

// lane is what an attempt counts for. It waits for the longest pause of its budgets.
type lane struct {
	budgets  []budget
	familiar bool // of a known network or device: what else failed from the network does not count
}

// prefixes are the networks in which an address lies, the smallest first. One subscriber of IPv6 may hold a /64, a /56
// or a /48 (RFC 6177), and with it as many smaller networks as there are guesses.
var prefixes = [...]struct{ bits, factor int }{{64, 1}, {56, 2}, {48, 4}}

// networksOf names the networks of a client's address, the smallest first: one for IPv4.
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

// newAttempt names what a try counts for.
func (s *Service) newAttempt(ctx context.Context, userID, key string) attempt {
	request := endpoint.Of(ctx)
	who := "user " + userID
	if userID == "" {
		who = "value " + key
	}
	hash := func(kind, text string) string {
		return hex.EncodeToString(s.db.Keyed("sign-in "+kind, []byte(text)))
	}
	free, longest := s.options.FreeAttempts, s.options.MaxPause
	a := attempt{user: userID, who: hash("value", who)}
	for i, network := range networksOf(request.Address) {
		factor := prefixes[i].factor
		pair := budget{hash("pair", network+" "+who), factor * free, longest}
		if i == 0 {
			a.own, a.known = pair, hash("known", network+" "+who)
		} else {
			a.shared = append(a.shared, pair)
		}
		a.networks = append(a.networks, spread{hash("network", network), factor * valuesPerNetwork})
	}
	a.shared = append(a.shared, budget{a.who, strangerFactor * free, min(maxStrangerPause, longest)})
	a.device = s.parseDevice(userID, request.DeviceToken)
	return a
}

// widest is the largest network that the attempt comes from.
func (a attempt) widest() string { return a.networks[len(a.networks)-1].network }

// lanes are the ways in which the attempt may be counted, the best first: that of the device, and that of the network.
func (s *Service) lanes(ctx context.Context, q store.Querier, a attempt) ([]lane, error) {
	var found []lane
	held, err := selectDevice(ctx, q, a)
	if err != nil {
		return nil, err
	}
	if held {
		own := budget{a.device.subject, s.options.FreeAttempts, s.options.MaxPause}
		found = append(found, lane{budgets: []budget{own}, familiar: true})
	}
	known, err := selectKnown(ctx, q, a)
	if err != nil {
		return nil, err
	}
	if known {
		return append(found, lane{budgets: []budget{a.own}, familiar: true}), nil
	}
	return append(found, lane{budgets: append([]budget{a.own}, a.shared...)}), nil
}

// choose returns the first lane without a pause, or the shortest time that the caller has to wait.
func (s *Service) choose(ctx context.Context, q store.Querier, a attempt) (chosen lane, wait time.Duration, err error) {
	lanes, err := s.lanes(ctx, q, a)
	if err != nil {
		return lane{}, 0, err
	}
	for i, l := range lanes {
		pause, err := pauseOf(ctx, q, a, l)
		if err != nil || pause == 0 {
			return l, 0, err
		}
		if i == 0 || pause < wait {
			wait = pause
		}
	}
	return lane{}, wait, nil
}

// pauseOf returns how long attempts in a lane stay rejected.
func pauseOf(ctx context.Context, q store.Querier, a attempt, l lane) (time.Duration, error) {
	now := q.Now()
	until := now
	for _, b := range l.budgets {
		f, err := selectFailures(ctx, q, b.subject)
		if err != nil {
			return 0, err
		}
		until = max(until, f.blocked(now))
	}
	if l.familiar {
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
