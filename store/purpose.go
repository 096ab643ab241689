package store

import (
	"cmp"
	"context"
	"fmt"

	"kontor/store/engine"
	"kontor/store/inspect"
	"kontor/store/query"
)

// purposeGuard is a guard that also compares the purpose of the data with that of the start, before anything is changed.
type purposeGuard struct {
	engine.Guard
	wanted inspect.Purpose // empty: any
	path   string
	known  bool // the database was set up before this start
}

// Recognise also rejects data of another purpose.
func (g *purposeGuard) Recognise(ctx context.Context, s engine.Source) (known bool, err error) {
	if g.known, err = g.Guard.Recognise(ctx, s); err != nil || !g.known || g.wanted == "" {
		return g.known, err
	}
	purpose, _, err := inspect.StatedPurpose(ctx, s)
	switch {
	case err != nil || purpose == g.wanted:
		return true, err
	case purpose == inspect.Sandbox:
		return true, fmt.Errorf("the data in %s is a sandbox, which may go back to an earlier state; serve it with --sandbox, or use other data", g.path)
	}
	return true, fmt.Errorf("the data in %s is not a sandbox, and a sandbox would copy its master key and lose changes; "+
		"name a new directory with --data.dir, or one that was a sandbox from its first start", g.path)
}

// Settle also stores the purpose of a new database.
func (g *purposeGuard) Settle(ctx context.Context, m engine.Maintenance) error {
	if err := g.Guard.Settle(ctx, m); err != nil || g.known {
		return err
	}
	return m.Transact(func() error {
		_, err := query.Exec(ctx, m, engine.UpsertMeta, []any{engine.MetaPurpose, string(cmp.Or(g.wanted, inspect.Production))})
		return err
	})
}
