package storetest

import (
	"context"
	"testing"

	"kontor/store"
	"kontor/store/engine"
	"kontor/store/postgres"
)

// Isolated opens the database of db, which must be on PostgreSQL, as a node that receives no announcements. Without a lease it must read
// everything from the database. With one, it is a node that other nodes are still waiting for.
func Isolated(t testing.TB, db *store.DB, lease bool) *store.DB {
	t.Helper()
	o := OptionsOf(t, db)
	o.Engine = func(ctx context.Context, c engine.Config) (engine.Engine, engine.Report, error) {
		e, report, err := postgres.Open(ctx, c)
		return isolated{e, lease}, report, err
	}
	return OpenAgain(t, o)
}

type isolated struct {
	engine.Engine
	lease bool
}

// Topic registers no receiver.
func (d isolated) Topic(name string, _ func(key string)) *engine.Topic {
	return d.Engine.Topic(name, func(string) {})
}

// Remembers reports whether the node has a lease.
func (d isolated) Remembers() bool { return d.lease }
