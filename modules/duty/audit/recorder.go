package audit

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
	"kontor/store/audittrail"
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

// actionDropped is the action of entries that count events without an entry of their own.
const actionDropped = "audit.events_dropped"

// Detail contains the members that only security events have.
type Detail struct {
	Count    int64      `json:"count" minimum:"1" doc:"How many events the entry stands for."`
	FirstAt  store.Time `json:"first_at" doc:"Time of the first of these events."`
	LastAt   store.Time `json:"last_at" doc:"Time of the last of these events."`
	Endpoint string     `json:"endpoint,omitzero" example:"GET /v1/customers/{id}/kyc"`
	Subject  string     `json:"subject,omitzero" example:"9f86d081884c7d65" doc:"Keyed hash of the value that was tried, such as a user name. Equal values have equal hashes."`
	Note     string     `json:"note,omitzero" example:"document_numbers" doc:"A code with more about the event."`
}

// store writes events, and the counts of dropped events, in one transaction.
func (r *recorder) store(ctx context.Context, list []pending, dropped map[endpoint.EventKind]int64) error {
	entries := make([]store.AuditEntry, 0, len(list)+len(dropped))
	for _, p := range list {
		e, err := p.entry()
		if err != nil {
			return err
		}
		entries = append(entries, e)
	}
	for _, kind := range sortedKinds(dropped) {
		e, err := droppedEntry(kind, dropped[kind], r.db.Clock().Now())
		if err != nil {
			return err
		}
		entries = append(entries, e)
	}
	return r.db.InTx(ctx, func(tx *store.Tx) error {
		for _, e := range entries {
			tx.Audit(e)
		}
		return nil
	})
}

// entry returns the audit entry of pending events.
func (p pending) entry() (store.AuditEntry, error) {
	detail, err := json.Marshal(Detail{Count: p.count, FirstAt: store.TimeOf(p.first), LastAt: store.TimeOf(p.last),
		Endpoint: p.sig.endpoint, Subject: p.sig.subject, Note: p.sig.note}, json.Deterministic(true))
	actor := p.sig.actor
	if actor == "" {
		actor = store.NilID
	}
	return store.AuditEntry{
		Actor: actor, Action: p.sig.action, RecType: p.sig.recType, RecID: p.sig.recID, Kind: string(p.sig.kind), Detail: string(detail),
		Origin: &store.Origin{Session: p.sig.session, Network: p.sig.network, RequestID: p.requestID},
	}, err
}

// droppedEntry returns the audit entry that counts dropped events of a kind.
func droppedEntry(kind endpoint.EventKind, n int64, at time.Time) (store.AuditEntry, error) {
	detail, err := json.Marshal(Detail{Count: n, FirstAt: store.TimeOf(at), LastAt: store.TimeOf(at)}, json.Deterministic(true))
	return store.AuditEntry{Actor: store.NilID, Action: actionDropped, Kind: string(kind), Detail: string(detail), Origin: &store.Origin{}}, err
}

func sortedKinds(counts map[endpoint.EventKind]int64) []endpoint.EventKind {
	kinds := make([]endpoint.EventKind, 0, len(counts))
	for kind := range counts {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	return kinds
}

// Status is the result of verifying the trail so far.
type Status struct {
	Entries    int64      `json:"entries" example:"42" doc:"Number of entries in the trail."`
	VerifiedTo int64      `json:"verified_to" example:"42" doc:"Every entry up to this one is unchanged."`
	Complete   bool       `json:"complete" doc:"Whether the verification has reached the end of the trail and found it signed."`
	FirstBad   *FirstBad  `json:"first_bad" doc:"The first entry that was changed, removed or inserted; null for none."`
	AppendOnly bool       `json:"append_only" doc:"Whether the triggers that reject changes and deletions of entries are in place."`
	Since      store.Time `json:"since" doc:"When the verification began. It does not detect later changes of entries that it has passed."`
	CheckedAt  store.Time `json:"checked_at"`
	ExportKeys []string   `json:"export_keys" example:"11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=" doc:"The public Ed25519 keys that verify signed exports, in base64: the present one first, then those from before rotations of the master key."`
}

// FirstBad is the first entry that was changed, removed or inserted.
type FirstBad struct {
	Seq     int64  `json:"seq" example:"7"`
	Reason  string `json:"reason" example:"hash" doc:"As the command kontor check reports it."`
	Message string `json:"message" example:"Entry 7 was changed after it was written." doc:"In the language of the request."`
}

// stepLength is the number of entries that one request verifies, which takes about a tenth of a second. A longer trail takes
// several requests. Each continues where the previous one stopped.
const stepLength = 10_000

// verification is the progress of verifying the trail.
type verification struct {
	began    store.Time
	position audittrail.Position
	bad      *audittrail.Break
}

type statusInput struct {
	Restart bool `query:"restart" doc:"Start again at the first entry."`
}

const countEntries = `SELECT COALESCE(MAX(seq), 0) FROM audit_trail`

// status verifies the next part of the trail and returns the result so far. It returns apierr.NoAccess.
func (s *Service) status(ctx context.Context, in statusInput) (Status, error) {
	if !access.From(ctx).May(access.Audit, access.Read) {
		return Status{}, apierr.NoAccess
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.db.Now()
	v := &s.verification
	if in.Restart || v.began == 0 {
		*v = verification{began: now}
	}
	complete := false
	if v.bad == nil {
		position, reached, err := s.db.VerifyAuditStep(ctx, v.position, stepLength)
		if err != nil && !errors.As(err, &v.bad) {
			return Status{}, err
		}
		v.position, complete = position, reached && err == nil
	}
	status := Status{VerifiedTo: v.position.Seq(), Complete: complete, Since: v.began, CheckedAt: now, ExportKeys: s.db.ExportKeys()}
	if bad := v.bad; bad != nil {
		message := s.texts.Text(endpoint.Language(ctx), "audit.first_bad", map[string]any{"Seq": bad.Seq})
		status.FirstBad = &FirstBad{Seq: bad.Seq, Reason: bad.Reason, Message: message}
		status.VerifiedTo = min(status.VerifiedTo, bad.Seq-1)
	}
	missing, err := s.db.AuditUnguarded(ctx)
	if err != nil {
		return Status{}, err
	}
	status.AppendOnly = len(missing) == 0
	return status, s.db.QueryRow(ctx, countEntries).Scan(&status.Entries)
}
