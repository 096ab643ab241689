// Package screening compares names with sanctions lists that the operator provides.
//
// A list is a file in one of the formats of the package lists. It is loaded under a name, and a newer file of the same name replaces
// it in one step; a file that cannot be read leaves the former one in force. A check returns the entries whose names are like the
// wanted one. It stores an audit entry and nothing else.
//
// Every node has the names of all lists in an index in memory, which is built in the background after a change of the lists. Until it
// is complete, checks of that node use the lists before the change, and their answers say which. Without lists there is no index.
//
// Customers, personas and payers are compared in the background after each change, and all of them after the lists have changed. A record
// that is like an entry is a hit, which reviewers decide. The customer must not learn of it: see docs/security.md.
//
// The module owns the tables screening_lists, screening_loads, screening_entries, screening_hits, screening_hit_changes and
// screening_progress. It publishes no views.
package screening

import (
	"cmp"
	"context"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"kontor/modules/kit/names"
	"kontor/server/endpoint"
	"kontor/store"
)

// Options are the settings of the module.
type Options struct {
	Dir       string        // a folder with lists; empty: none
	Threshold float64       // the lowest score of a hit; 0: names.DefaultThreshold
	MaxAge    time.Duration // after which a list is too old; 0: never
	FourEyes  string        // the setting kyc.four_eyes
	Reviews   Reviews
	Notifier  Notifier
	Texts     endpoint.Texts
	Log       *slog.Logger
}

// Service is the module.
type Service struct {
	Options
	db      *store.DB
	changed *store.Topic
	index   keeper
	checks  chan struct{} // bounds the checks that run at the same time
	loading chan struct{} // bounds the loads that run at the same time
	seen    folder
	// followed is the last audit entry that this node has followed without a change of a hit. Only the job uses it.
	followed int64
	life     context.Context //nolint:containedctx // it ends with Close, and not with a request
	end      context.CancelFunc
	work     sync.WaitGroup
}

// New returns the module on a database.
func New(db *store.DB, o Options) *Service {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	s := &Service{Options: o, db: db, checks: make(chan struct{}, runtime.GOMAXPROCS(0)), loading: make(chan struct{}, 1)}
	s.life, s.end = context.WithCancel(context.Background())
	s.changed = db.Topic("screening.lists", func(string) { s.refresh() })
	return s
}

// threshold returns the lowest score of a hit.
func (s *Service) threshold() float64 { return cmp.Or(s.Threshold, names.DefaultThreshold) }

// Start begins to build the index in the background if there are lists.
func (s *Service) Start(ctx context.Context) error {
	lists, err := inForce(ctx, s.db)
	if err == nil && len(lists) > 0 {
		s.refresh()
	}
	return err
}

// Close stops the work in the background, and waits for it.
func (s *Service) Close() {
	s.end()
	s.work.Wait()
}
