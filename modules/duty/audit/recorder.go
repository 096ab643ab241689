package audit

import (
	"cmp"
	"context"
	"log/slog"
	"sort"
	"sync"
	"time"

	"kontor/server/endpoint"
	"kontor/store"
)

const (
	// window is the time for which events other than reads are counted before they are written, as one entry for each
	// signature.
	window = time.Minute
	// maxSignatures limits the signatures of one kind in a window. Events with further signatures are only counted.
	maxSignatures = 64
	// maxReads limits the reads that wait to be written. That is more than the server can answer between two runs of the job.
	maxReads = 4096
	// dailyEntries limits the entries that anonymous callers can cause in a day; nodes on one database share them. entryBurst
	// limits those at once on a node. At half a kilobyte each, that is at most about 10 MB a day.
	dailyEntries = 20_000
	entryBurst   = 2_000
	// batch is the number of entries in one transaction; it is small so that other writes do not wait long.
	batch = 128
)

// signature holds the members that events of one entry have in common.
type signature struct {
	kind                                            endpoint.EventKind
	action, recType, recID, subject, note           string
	actor, session, network, endpoint, readsRequest string
}

// tally counts the events of a signature.
type tally struct {
	count       int64
	first, last time.Time
	requestID   string // of the latest
}

// recorder collects security events in memory and writes them in batches. Events must not slow down requests, and a flood of
// events must not fill the disk. The recorder counts events that exceed its limits and writes the counts.
type recorder struct {
	db  *store.DB
	log *slog.Logger

	writing sync.Mutex // held during a write

	mu      sync.Mutex
	reads   map[signature]*tally
	others  map[signature]*tally
	known   map[endpoint.EventKind]int // signatures by kind
	dropped map[endpoint.EventKind]int64
	opened  time.Time // start of the window of others; zero: the next event starts one
	budget  float64   // entries that others than reads may still cause
	filled  time.Time // when the budget was last filled
}

func newRecorder(db *store.DB, log *slog.Logger) *recorder {
	r := &recorder{db: db, log: log, budget: entryBurst, filled: db.Clock().Now()}
	r.clear()
	return r
}

// clear removes all pending events. Callers must hold the lock, unless the recorder is new.
func (r *recorder) clear() {
	r.reads, r.others = map[signature]*tally{}, map[signature]*tally{}
	r.known, r.dropped = map[endpoint.EventKind]int{}, map[endpoint.EventKind]int64{}
	r.opened = time.Time{}
}

// Observe records a security event. It never waits for the database.
func (s *Service) Observe(e endpoint.Event) {
	sig := signature{kind: e.Kind, action: e.Action, recType: e.RecType, recID: e.RecID, subject: e.Subject, note: e.Note,
		actor: e.Actor, session: e.Session, network: e.Network, endpoint: e.Endpoint}
	if e.Kind == endpoint.Reading {
		sig.readsRequest = e.RequestID // each read is an entry of its own
	}
	s.recorder.mu.Lock()
	defer s.recorder.mu.Unlock()
	s.recorder.add(sig, tally{count: 1, first: e.At, last: e.At, requestID: e.RequestID})
}

// add counts events by signature. It counts events as dropped if a limit is reached. Callers must hold the lock.
func (r *recorder) add(sig signature, t tally) {
	tallies, full := r.others, r.known[sig.kind] >= maxSignatures
	if sig.kind == endpoint.Reading {
		tallies, full = r.reads, len(r.reads) >= maxReads
	}
	if pending := tallies[sig]; pending != nil {
		pending.count += t.count
		pending.first = earlier(pending.first, t.first)
		if t.last.After(pending.last) {
			pending.last, pending.requestID = t.last, t.requestID
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
	r.known[sig.kind]++
	tallies[sig] = &t
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// pending is an entry to write.
type pending struct {
	sig signature
	tally
}

// take removes and returns the events to write: all reads, and the other events if their window has ended or all is true.
func (r *recorder) take(all bool) (list []pending, dropped map[endpoint.EventKind]int64) {
	now := r.db.Clock().Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for sig, t := range r.reads {
		list = append(list, pending{sig, *t})
	}
	clear(r.reads)
	r.known[endpoint.Reading] = 0
	if all || !r.opened.IsZero() && now.Sub(r.opened) >= window {
		r.fillBudget(now)
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
	} else if n := r.dropped[endpoint.Reading]; n > 0 {
		dropped = map[endpoint.EventKind]int64{endpoint.Reading: n}
		delete(r.dropped, endpoint.Reading)
	}
	sort.Slice(list, func(i, j int) bool {
		a, b := list[i], list[j]
		return cmp.Or(a.first.Compare(b.first), cmp.Compare(a.sig.action, b.sig.action)) < 0
	})
	return list, dropped
}

// fillBudget adds the budget for the time that has passed. A clock that was set back adds nothing.
func (r *recorder) fillBudget(now time.Time) {
	if passed := now.Sub(r.filled); passed > 0 {
		share := dailyEntries / float64(max(1, len(r.db.Nodes())))
		r.budget = min(entryBurst, r.budget+passed.Hours()/24*share)
	}
	r.filled = now
}

// putBack adds events again that could not be written.
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

// WriteEvents writes pending reads, and other events once their window has ended. It must run every few seconds.
func (s *Service) WriteEvents(ctx context.Context) error { return s.recorder.write(ctx, false) }

// Close writes all pending events, exports the remaining entries until the context ends, and ends the exports. It does not close
// the database.
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
