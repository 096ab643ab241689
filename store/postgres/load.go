package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"kontor/store/clock"
	"kontor/store/engine"
)

// ErrCopying says that a copy to the database is not complete.
var ErrCopying = errors.New("a copy to it is not complete; repeat kontor copy")

// CreateSchema creates the tables of a database that a copy fills. The copy has created engine.CopyTable before, so that no node
// opens the database. An incomplete schema does not exist: it is created in one transaction.
func CreateSchema(ctx context.Context, url string, migrations fs.FS, appendOnly []string) error {
	e := &Engine{
		config: engine.Config{Migrations: migrations, AppendOnly: appendOnly, Guard: func(bool) (engine.Guard, error) { return anyContent{}, nil }},
		clock:  clock.System{}, log: slog.Default(), loads: true,
	}
	var err error
	if e.address, err = parseAddress(url); err != nil {
		return err
	}
	if e.schema, err = latestVersion(migrations); err != nil {
		return err
	}
	c, err := e.connectWriter(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	return e.prepare(ctx, c)
}

// checkCopy returns ErrCopying for a database that a copy has not completed, unless this is the copy.
func (e *Engine) checkCopy(copying bool) error {
	if copying && !e.loads {
		return fmt.Errorf("%s: %w", e.address, ErrCopying)
	}
	return nil
}

// anyContent is the guard of a database whose content is checked after the copy.
type anyContent struct{ engine.Guard }

func (anyContent) Recognise(context.Context, engine.Source) (bool, error) { return false, nil }

func (anyContent) Settle(context.Context, engine.Maintenance) error { return nil }

func (anyContent) Anchor(context.Context, engine.Source) (a engine.Anchor, at clock.Time, err error) {
	return a, 0, nil
}
