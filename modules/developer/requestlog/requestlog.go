// Package requestlog keeps the latest requests of this process in memory, so that administrators see what their programs sent and
// why the server refused it. It writes nothing to disk, and a restart forgets everything.
//
// An entry holds ids, never names: paths without the values of their query. In a sandbox it also has the values of the query and
// the JSON bodies of requests about records, in which members with secrets are masked. Erasing a person drops all of these.
//
// The module owns no table. It is off unless the setting requests.keep says how many requests it keeps.
package requestlog

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"kontor/modules/kit/streams"
	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/server/sse"
	"kontor/store"
)

// Rights explains what a user may do.
type Rights interface {
	// Look reports whether a record exists, and whether the user has the permission on it now.
	Look(ctx context.Context, userID string, t access.RecordType, wanted access.Permission, id string) (exists, allowed bool, err error)
}

// Options configure the module. A zero value stands for the default of the setting.
type Options struct {
	Keep               int           // requests; 0: the log is off
	Bodies             bool          // of requests and answers are kept, for a sandbox
	Node               string        // the name of this node
	BaseURL            string        // address of the service in commands
	Heartbeat          time.Duration // of a stream
	ConnectionsPerUser int
	Policy             *access.Current
	// TermsDue reports whether a right has begun or ended that the tables do not show yet; nil: none does. Streams wait meanwhile.
	TermsDue func() bool
	Texts    endpoint.Texts
	Log      *slog.Logger
}

// Service is the module.
type Service struct {
	db      *store.DB
	options Options
	rights  Rights

	ring    ring
	streams *streams.Streams
}

// New returns the module. Close it when the server has stopped.
func New(db *store.DB, sessions streams.Sessions, rights Rights, o Options) *Service {
	o.Heartbeat = cmp.Or(o.Heartbeat, 25*time.Second)
	o.ConnectionsPerUser = cmp.Or(o.ConnectionsPerUser, 10)
	o.Policy = cmp.Or(o.Policy, &access.Current{})
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.TermsDue == nil {
		o.TermsDue = func() bool { return false }
	}
	s := &Service{db: db, options: o, rights: rights}
	// Numbers of a former process are smaller, so that a stream that resumes after a restart misses nothing.
	s.ring.init(o.Keep, db.Clock().Now().UnixMicro())
	s.streams = streams.New(streams.Options{
		Hub:      sse.Options{Heartbeat: o.Heartbeat, PerUser: o.ConnectionsPerUser, Now: db.Clock().Now, Log: o.Log},
		Sessions: func() streams.Sessions { return sessions }, Policy: o.Policy, MayOpen: mayOpen,
		Certain: func() bool { return db.Remembers() && !o.TermsDue() },
	})
	return s
}

// On reports whether requests are kept.
func (s *Service) On() bool { return s.options.Keep > 0 }

// Drain sends the close frame on all streams and rejects new ones. It does not wait.
func (s *Service) Drain() { s.streams.Drain() }

// Close ends all streams.
func (s *Service) Close(ctx context.Context) error {
	s.streams.EndAll(ctx)
	s.streams.Close()
	return nil
}
