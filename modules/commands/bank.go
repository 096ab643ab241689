package commands

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"kontor/modules/app"
	"kontor/server/access"
	"kontor/server/settings"
	"kontor/store"
)

// opening is how a command opens the data directory.
type opening struct {
	log        *slog.Logger
	clock      store.Clock // nil is the system's
	acceptLoss bool
	fatal      func(error) // see [Process.fatal]
}

// withModules opens the data directory, which no other process may use meanwhile, builds the modules on it, and closes
// both in order when work has returned.
func withModules(ctx context.Context, r *settings.Result, o opening, work func(*app.Modules) error) (err error) {
	log := o.log
	options := storeOptions(r)
	options.Log, options.Clock, options.AcceptLoss, options.Fatal = log, o.clock, o.acceptLoss, o.fatal
	db, err := store.Open(ctx, options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	m, err := app.New(db, app.Options{Settings: r.Settings, Log: log, CacheDir: filepath.Join(r.Settings.Data.Dir, "cache")})
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closingTime(r.Settings.Server.Shutdown))
		defer cancel()
		err = errors.Join(err, m.Close(closing))
	}()
	if err := m.Start(ctx); err != nil {
		return err
	}
	return work(m)
}

// administer runs the work of a command that changes users or keys, with the rights of an administrator: whoever can read
// the data directory has them in any case.
func administer(ctx context.Context, p Process, r *settings.Result, work func(context.Context, *app.Modules) error) (err error) {
	p.warn(r)
	if err := inhabited(r.Settings.Data.Dir); err != nil {
		return err
	}
	s := r.Settings.Log
	s.Level = max(s.Level, slog.LevelWarn)
	if s.Format == settings.LogAuto {
		s.Format = settings.LogText
	}
	log, closeLog := openLog(s, p.Stderr)
	defer func() { err = errors.Join(err, closeLog()) }()
	return withModules(ctx, r, opening{log: log, fatal: p.fatal(closeLog)}, func(m *app.Modules) error {
		if _, err := m.DB.Unshown(ctx); !errors.Is(err, store.ErrNotFound) {
			return errors.Join(err, fmt.Errorf("the first start in %s was cut off before it showed its secrets; start the server once", r.Settings.Data.Dir))
		}
		operator := access.Caller{UserID: store.NilID, Roles: []string{access.Administrator}}
		return work(access.With(ctx, operator.WithPolicy(m.Policy.Load())), m)
	})
}

// inhabited refuses a directory that no server has used: opening it would make a new bank, and a slip in its name would
// look like success.
func inhabited(dir string) error {
	if entries, err := os.ReadDir(dir); err != nil || len(entries) == 0 {
		return fmt.Errorf("there is no data in %s; start the server once, or name its directory with --data.dir", dir)
	}
	return nil
}
