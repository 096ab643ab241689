// Package changes publishes the changes of records as a feed of events.
//
// The audit trail is the outbox: every change of a record writes an entry in its own transaction, and nothing else is written for
// the feed. The table [sources] says which entries are events. A comparison of all records with the trail (kontor check) finds a
// change without an entry, so that a module cannot forget an event.
//
// An event names a record and holds none of its data. Readers get only events of records that they may read at that moment.
//
// Guarantees: events are in the order of the commits, over all nodes; a reader that continues after the last event it has seen
// misses none; an event is shown after its change is durable. A reader that loses a right misses the events of that time.
//
// The module owns no table. It reads the view audit_trail, which the store publishes.
package changes

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"kontor/modules/kit/streams"
	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/server/sse"
	"kontor/store"
)

// Rights checks the access to records.
type Rights interface {
	// Readable returns which of the records of a type the caller may read. Unknown ids are missing.
	Readable(ctx context.Context, caller *access.Caller, t access.RecordType, ids []string) (map[string]bool, error)
}

// Reader reads a record as its own endpoint answers it, for the caller of the context.
type Reader func(ctx context.Context, id string) (any, error)

// Decider returns which of the records with ids the caller of the context may read.
type Decider func(ctx context.Context, ids []string) (map[string]bool, error)

// Parents returns the records that parts of records belong to, by the id of the part.
type Parents func(ctx context.Context, q store.Querier, ids []string) (map[string]string, error)

// Options are the settings of the module. A zero value stands for the default of the setting.
type Options struct {
	Retention          time.Duration // how far back events can be read; 0: the whole trail
	Heartbeat          time.Duration // of a stream
	ConnectionsPerUser int

	Policy *access.Current
	// TermsDue reports whether a right has begun or ended that the tables do not show yet; nil: none does. Streams wait meanwhile.
	TermsDue func() bool
	Log      *slog.Logger
}

// Service is the module.
type Service struct {
	db      *store.DB
	options Options
	rights  Rights

	readers  map[string]Reader  // by the type of the record
	parents  map[string]Parents // by the type of the part
	deciders map[string]Decider // by the type of the record
	names    map[string]string  // of endpoints, by key

	durable atomic.Int64 // entries up to this number are durable
	changed signal
	streams *streams.Streams
}

// New returns the module on a database. Close it when the server has stopped.
func New(db *store.DB, sessions streams.Sessions, rights Rights, o Options) *Service {
	o.Heartbeat = cmp.Or(o.Heartbeat, 25*time.Second)
	o.ConnectionsPerUser = cmp.Or(o.ConnectionsPerUser, 10)
	o.Policy = cmp.Or(o.Policy, &access.Current{})
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.TermsDue == nil {
		o.TermsDue = func() bool { return false }
	}
	s := &Service{db: db, rights: rights, options: o, readers: map[string]Reader{}, deciders: map[string]Decider{}, parents: map[string]Parents{}}
	s.streams = streams.New(streams.Options{
		Hub:      sse.Options{Heartbeat: o.Heartbeat, PerUser: o.ConnectionsPerUser, Now: db.Clock().Now, Log: o.Log},
		Sessions: func() streams.Sessions { return sessions }, Policy: o.Policy, MayOpen: s.mayCall,
		Certain: func() bool { return db.Remembers() && !o.TermsDue() },
	})
	db.OnAudited(s.audited)
	return s
}

// SetReader registers how records of a type are read for subscribers that want them. Call it before the first request.
func (s *Service) SetReader(t access.RecordType, read Reader) { s.readers[t.Name] = read }

// SetDecider registers who may read the records of a type without permissions. Call it before the first request.
func (s *Service) SetDecider(t access.RecordType, decide Decider) { s.deciders[t.Name] = decide }

// SetParents registers how the parts of records find their record. Call it before the first request.
func (s *Service) SetParents(recType string, of Parents) { s.parents[recType] = of }

// SetTable registers the endpoints, whose grants decide who may read events. Call it before the first request.
func (s *Service) SetTable(table []endpoint.Endpoint) error {
	s.names = make(map[string]string, len(table))
	for _, e := range table {
		s.names[e.Key()] = e.Name
	}
	for _, source := range sources {
		if source.Why == "" && s.names[source.Get] == "" {
			return fmt.Errorf("events of %s: there is no endpoint %s", source.RecType, source.Get)
		}
	}
	return nil
}

const selectLast = `SELECT COALESCE(MAX(seq), 0) FROM audit_trail`

// Start reads how far the trail has come. All entries of a database that was just opened are durable.
func (s *Service) Start(ctx context.Context) error {
	var last int64
	if err := s.db.QueryRow(ctx, selectLast).Scan(&last); err != nil {
		return fmt.Errorf("read the end of the audit trail: %w", err)
	}
	s.audited(last)
	return nil
}

// audited records that entries are durable. Commits of this process call it in their order.
func (s *Service) audited(seq int64) {
	if seq > s.durable.Load() {
		s.durable.Store(seq)
	}
	s.changed.send()
}

// Changed returns a channel that is closed at the next change of this process. Take it before reading. On a shared database, look
// for the changes of other processes every [Service.PollInterval].
func (s *Service) Changed() <-chan struct{} { return s.changed.wait() }

const (
	pollAlone  = 2 * time.Second
	pollShared = 250 * time.Millisecond
)

// PollInterval is the longest time between two reads of a reader that follows the feed. Commits of other nodes come without a
// signal: an announcement of every commit would cost each of them more than readers gain.
func (s *Service) PollInterval() time.Duration {
	if s.db.Shared() {
		return pollShared
	}
	return pollAlone
}

// Drain sends the close frame on all streams and rejects new ones. It does not wait.
func (s *Service) Drain() { s.streams.Drain() }

// Close ends all streams. The database stays open.
func (s *Service) Close(ctx context.Context) error {
	s.streams.EndAll(ctx)
	s.streams.Close()
	return nil
}

// signal wakes all waiting goroutines.
type signal struct {
	mu      sync.Mutex
	waiting chan struct{} // nil: no goroutine waits
}

func (s *signal) wait() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting == nil {
		s.waiting = make(chan struct{})
	}
	return s.waiting
}

func (s *signal) send() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting != nil {
		close(s.waiting)
		s.waiting = nil
	}
}
