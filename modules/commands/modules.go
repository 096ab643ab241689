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
	"kontor/store/inspect"
)

// openOptions are how a command opens the data directory.
type openOptions struct {
	log        *slog.Logger
	clock      store.Clock // nil means the clock of the system
	acceptLoss bool
	fatal      func(error) // see [Process.fatal]
}

// withModules opens the data directory, builds the modules on it, and runs work. It closes both when work has returned.
// No other process can open the directory in the meantime.
func withModules(ctx context.Context, r *settings.Result, o openOptions, work func(*app.Modules) error) (err error) {
	options := store.Options{Dir: r.Settings.Data.Dir, SecretKey: string(r.Settings.Secrets.SecretKey), PreviousKey: string(r.Settings.Secrets.PreviousKey)}
	options.Log, options.Clock, options.AcceptLoss, options.Fatal = o.log, o.clock, o.acceptLoss, o.fatal
	db, err := store.Open(ctx, options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	m, err := app.New(db, app.Options{Settings: r.Settings, Log: o.log, CacheDir: filepath.Join(r.Settings.Data.Dir, "cache")})
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout(r.Settings.Server.Shutdown))
		defer cancel()
		err = errors.Join(err, m.Close(closing))
	}()
	if err := m.Start(ctx); err != nil {
		return err
	}
	return work(m)
}

// administer runs work with the rights of an administrator. A user who can read the data directory has these rights anyway.
func administer(ctx context.Context, p Process, r *settings.Result, work func(context.Context, *app.Modules) error) (err error) {
	p.warn(r)
	if err := requireData(r.Settings.Data.Dir); err != nil {
		return err
	}
	s := r.Settings.Log
	s.Level = max(s.Level, slog.LevelWarn)
	if s.Format == settings.LogAuto {
		s.Format = settings.LogText
	}
	log, closeLog := openLog(s, p.Stderr)
	defer func() { err = errors.Join(err, closeLog()) }()
	return withModules(ctx, r, openOptions{log: log, fatal: p.fatal(closeLog)}, func(m *app.Modules) error {
		if _, err := m.DB.Unshown(ctx); !errors.Is(err, store.ErrNotFound) {
			return errors.Join(err, fmt.Errorf("the first start in %s was interrupted before it showed its secrets; start the server once", r.Settings.Data.Dir))
		}
		return work(asOperator(ctx, m), m)
	})
}

// asOperator returns a context with the rights of an administrator.
func asOperator(ctx context.Context, m *app.Modules) context.Context {
	operator := access.Caller{UserID: store.NilID, Roles: []string{access.Administrator}}
	return access.With(ctx, operator.WithPolicy(m.Policy.Load()))
}

// requireData rejects a missing or empty directory. Opening it would create a new database, so that a mistyped name would
// look like success.
func requireData(dir string) error {
	if entries, err := os.ReadDir(dir); err != nil || len(entries) == 0 {
		return fmt.Errorf("there is no data in %s; start the server once, or name its directory with --data.dir", dir)
	}
	return nil
}

func databaseOf(r *settings.Result) inspect.Source {
	return inspect.Source{Dir: r.Settings.Data.Dir, SecretKey: string(r.Settings.Secrets.SecretKey),
		PreviousKey: string(r.Settings.Secrets.PreviousKey)}
}
