// Package search finds records of all types by their words, with the rights of the caller.
//
// The modules say which words find their records (kit/find), and read what was found. This module keeps the documents of the index
// current, and joins the answers. The audit trail is the outbox: every change of a record has an entry, and a follower
// reads the entries behind the commits. So a change itself pays nothing for the search. A search first lets the follower catch
// up, and so sees everything that was committed before it came. Deleted and erased records leave the index with their own
// transaction (store.TextFollower).
//
// The index is derived. Records of a database without it are read in the background, which a later start continues.
//
// The module owns no table: the documents belong to store/fulltext. It reads the view audit_trail, which the store publishes.
package search

import (
	"context"
	"log/slog"
	"time"

	"kontor/modules/kit/find"
	"kontor/modules/kit/personal"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// Type is a type of records that a search finds.
type Type struct {
	Of     access.RecordType
	Get    string // the endpoint that shows a record: callers need the grant on it
	Module find.Module
}

// Service answers searches. Create one with [New].
type Service struct {
	db       *store.DB
	log      *slog.Logger
	types    []Type
	sources  []find.Source
	names    map[string]string // of endpoints, by key
	catching chan struct{}     // holds a value while the documents catch up
	seen     int64             // entries up to this one need no document; read and written while catching
	lastEnd  int64             // the end of the trail at the last run of Follow
}

// New returns the module for records of some types, in the order of the answers with the same relevance.
func New(db *store.DB, log *slog.Logger, types []Type) *Service {
	s := &Service{db: db, log: log, types: types, names: map[string]string{}, catching: make(chan struct{}, 1)}
	for _, t := range types {
		s.sources = append(s.sources, t.Module.TextSources()...)
	}
	db.SetTextFollower(store.TextFollower{Current: s.current, Erases: func(action string) bool { return action == personal.Action }})
	return s
}

// SetTable registers the endpoints. Call it before the first request.
func (s *Service) SetTable(table []endpoint.Endpoint) {
	for _, e := range table {
		s.names[e.Key()] = e.Name
	}
}

const (
	// patience is how long a search waits for the documents to catch up: longer only while records are read for the first time, or
	// while more is written than the index takes.
	patience = 2 * time.Second
	// retryAfter is when a list that could not wait should be read again.
	retryAfter = 2 * time.Second
)

// upToDate is the key under which a context says that the documents need not catch up again.
type upToDate struct{}

// current waits until the documents contain everything that was committed before the call. It returns apierr.Unavailable if that takes
// too long: a list that lacked records would be wrong.
func (s *Service) current(ctx context.Context) error {
	if ctx.Value(upToDate{}) != nil {
		return nil
	}
	complete, err := s.catchUp(ctx)
	if err == nil && !complete {
		return apierr.Unavailable.RetryAfter(retryAfter)
	}
	return err
}
