package audit

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"kontor/server/endpoint"
	"kontor/store"
)

const (
	// window is how long failed sign-ins, denials and the like are counted together before they are written: one entry
	// for each signature, however many there were.
	window = time.Minute
	// maxRows is how many signatures of one kind are told apart in a window; the others are counted as one.
	maxRows = 64
	// maxReads is how many looks may wait to be written. That is more than the readers of the database can answer
	// between two runs of the job.
	maxReads = 4096
	// dailyRows bounds the entries of a day that strangers can cause, and rowBurst how many of them come at once: at
	// half a kilobyte each some 10 MB a day at the very most.
	dailyRows = 20_000
	rowBurst  = 2_000
	// batch is how many entries are written in one transaction, so that no other write waits long.
	batch = 128
)

// signature is what events have in common that are counted together.
type signature struct {
	kind                                            endpoint.EventKind
	action, recType, recID, subject, note           string
	actor, session, network, endpoint, readsRequest string
}

// tally is how often there was an event of a signature.
type tally struct {
	count       int64
	first, last time.Time
	requestID   string // of the latest
}

// recorder collects security events in memory and writes them in batches: an event must not slow down the request that
// it is about, nor may a flood of them fill the disk. What does not fit is counted, and the count is written.
type recorder struct {
	db  *store.DB
	log *slog.Logger

	writing sync.Mutex // held by whoever writes

	mu      sync.Mutex
	reads   map[signature]*tally
	others  map[signature]*tally
	rows    map[endpoint.EventKind]int
	dropped map[endpoint.EventKind]int64
	opened  time.Time // when the window of others began; zero: with the next event
	budget  float64   // entries that strangers may still cause
	filled  time.Time // when the budget was last filled
}

func newRecorder(db *store.DB, log *slog.Logger) *recorder {
	r := &recorder{db: db, log: log, budget: rowBurst, filled: db.Clock().Now()}
	r.clear()
	return r
}

// clear begins anew with nothing pending. The lock is held, or nobody else knows the recorder yet.
func (r *recorder) clear() {
	r.reads, r.others = map[signature]*tally{}, map[signature]*tally{}
	r.rows, r.dropped = map[endpoint.EventKind]int{}, map[endpoint.EventKind]int64{}
	r.opened = time.Time{}
}

// Observe takes a security event. It never waits for the database.
func (s *Service) Observe(e endpoint.Event) {
	sig := signature{kind: e.Kind, action: e.Action, recType: e.RecType, recID: e.RecID, subject: e.Subject, note: e.Note,
		actor: e.Actor, session: e.Session, network: e.Network, endpoint: e.Endpoint}
	if e.Kind == endpoint.Reading {
		sig.readsRequest = e.RequestID // each look is an entry of its own
	}
	s.recorder.mu.Lock()
	defer s.recorder.mu.Unlock()
	s.recorder.add(sig, tally{count: 1, first: e.At, last: e.At, requestID: e.RequestID})
}

// add counts events, or counts them as dropped where there is no room. The lock is held.
func (r *recorder) add(sig signature, t tally) {
	into, full := r.others, r.rows[sig.kind] >= maxRows
	if sig.kind == endpoint.Reading {
		into, full = r.reads, len(r.reads) >= maxReads
	}
	if known := into[sig]; known != nil {
		known.count += t.count
		known.first = earlier(known.first, t.first)
		if t.last.After(known.last) {
			known.last, known.requestID = t.last, t.requestID
		}
		return
	}
	if sig.kind != endpoint.Reading && r.opened.IsZero() {
		r.opened = t.first
	}
	if full {
		r.dropped[sig.kind] += t.count
		return
	}
	r.rows[sig.kind]++
	into[sig] = &t
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// pending is an event that is to be written.
type pending struct {
	sig signature
	tally
}

// take returns what is to be written: all looks, and everything else when its window has ended or all is asked for.
func (r *recorder) take(all bool) (list []pending, dropped map[endpoint.EventKind]int64) {
	now := r.db.Clock().Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for sig, t := range r.reads {
		list = append(list, pending{sig, *t})
	}
	clear(r.reads)
	r.rows[endpoint.Reading] = 0
	if all || !r.opened.IsZero() && now.Sub(r.opened) >= window {
		r.spend(now)
		for sig, t := range r.others {
			if r.budget < 1 {
				r.dropped[sig.kind] += t.count
				continue
			}
			r.budget--
			list = append(list, pending{sig, *t})
		}
		dropped = r.dropped
		r.clear()
	} else if lost := r.dropped[endpoint.Reading]; lost > 0 {
		dropped = map[endpoint.EventKind]int64{endpoint.Reading: lost}
		delete(r.dropped, endpoint.Reading)
	}
	slices.SortFunc(list, func(a, b pending) int {
		return cmp.Or(a.first.Compare(b.first), cmp.Compare(a.sig.action, b.sig.action))
	})
	return list, dropped
}

// spend fills the budget up to now. A clock that was set back fills nothing.
func (r *recorder) spend(now time.Time) {
	if passed := now.Sub(r.filled); passed > 0 {
		r.budget = min(rowBurst, r.budget+passed.Hours()/24*dailyRows)
	}
	r.filled = now
}

// putBack takes in again what could not be written.
func (r *recorder) putBack(list []pending, dropped map[endpoint.EventKind]int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range list {
		r.add(p.sig, p.tally)
	}
	for kind, n := range dropped {
		r.dropped[kind] += n
		if r.opened.IsZero() {
			r.opened = r.db.Clock().Now()
		}
	}
}

// WriteEvents writes the looks that wait, and what a window of other events has brought once it has ended. Call it every
// few seconds.
func (s *Service) WriteEvents(ctx context.Context) error { return s.recorder.write(ctx, false) }

// Close writes all events that wait, exports what is left as long as the context lasts, and ends the exports. The
// database stays open.
func (s *Service) Close(ctx context.Context) error {
	err := s.recorder.write(ctx, true)
	var stopping sync.WaitGroup
	for _, e := range s.exporters {
		stopping.Go(func() { e.stop(ctx) })
	}
	stopping.Wait()
	return err
}

func (r *recorder) write(ctx context.Context, all bool) error {
	r.writing.Lock()
	defer r.writing.Unlock()
	list, dropped := r.take(all)
	for len(list) > 0 {
		part := list[:min(len(list), batch)]
		if err := r.store(ctx, part, nil); err != nil {
			r.putBack(list, dropped)
			return err
		}
		list = list[len(part):]
	}
	if len(dropped) == 0 {
		return nil
	}
	if err := r.store(ctx, nil, dropped); err != nil {
		r.putBack(nil, dropped)
		return err
	}
	return nil
}
