package commands

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"kontor/modules/app"
	"kontor/server/access"
	"kontor/server/settings"
	"kontor/store"
)

// openOptions are how a command opens the database.
type openOptions struct {
	log        *slog.Logger
	command    bool // for a command beside the nodes that serve
	acceptLoss bool
	fatal      func(error)           // see [Process.fatal]
	settle     func()                // ends the start, see [collectLess]
	closing    func() time.Duration  // how long the modules may take to close; nil: the limit of the settings
	sandbox    *app.Sandbox          // nil: none
	progress   func(done, total int) // see [app.Options]
}

// withModules opens the database, builds the modules on it, and runs work. It closes both when work has returned. No other
// process can open a data directory in the meantime. With a PostgreSQL database this process is one of its nodes.
func withModules(ctx context.Context, r *settings.Result, o openOptions, work func(*app.Modules) error) (err error) {
	options := store.Options{Dir: storeDir(r), URL: string(r.Settings.Data.URL), Connections: r.Settings.Data.Connections, Node: nodeName(r, o.command), Program: Version(), SecretKey: string(r.Settings.Secrets.SecretKey), PreviousKey: string(r.Settings.Secrets.PreviousKey)}
	options.Log, options.AcceptLoss, options.Fatal = o.log, o.acceptLoss, o.fatal
	clock := &store.ShiftedClock{}
	if o.sandbox != nil {
		clock = o.sandbox.Clock
	}
	if !isShared(r) {
		options.Clock = clock
	}
	db, err := store.Open(ctx, options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	ahead, err := db.Ahead(ctx)
	if err != nil {
		return err
	}
	if ahead > 0 && o.sandbox == nil && (!o.command || isShared(r)) {
		return fmt.Errorf("the data in %s is a sandbox, whose clock is %d days ahead; serve it with --sandbox, or use other data", placeName(r), ahead/(24*time.Hour))
	}
	clock.SetOffset(ahead)
	m, err := app.New(db, app.Options{Settings: r.Settings, Log: o.log, Release: release, HashInChildren: !o.command, CacheDir: cacheDir(r), Sandbox: o.sandbox, Progress: o.progress})
	if err != nil {
		return err
	}
	defer func() {
		limit := closeTimeout(r.Settings.Server.Shutdown)
		if o.closing != nil {
			limit = o.closing()
		}
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
		defer cancel()
		err = errors.Join(err, m.Close(closing))
	}()
	if err := m.Start(ctx); err != nil {
		return err
	}
	return work(m)
}

// administer runs work with the rights of an administrator. A user who can read the data directory, or who has the master key and
// the password of the database, has these rights anyway.
func administer(ctx context.Context, p Process, r *settings.Result, work func(context.Context, *app.Modules) error) (err error) {
	p.warn(r)
	if err := requireData(ctx, r); err != nil {
		return err
	}
	s := r.Settings.Log
	s.Level = max(s.Level, slog.LevelWarn)
	if s.Format == settings.LogAuto {
		s.Format = settings.LogText
	}
	log, closeLog := openLog(s, p.Stderr)
	defer func() { err = errors.Join(err, closeLog()) }()
	return withModules(ctx, r, openOptions{log: log, command: true, fatal: p.fatal(closeLog)}, func(m *app.Modules) error {
		if _, err := m.DB.Unshown(ctx); !errors.Is(err, store.ErrNotFound) {
			return errors.Join(err, fmt.Errorf("the first start in %s was interrupted before it showed its secrets; start the server once", placeName(r)))
		}
		return work(asOperator(ctx, m), m)
	})
}

// asOperator returns a context with the rights of an administrator.
func asOperator(ctx context.Context, m *app.Modules) context.Context {
	operator := access.Caller{UserID: store.NilID, Roles: []string{access.Administrator}}
	return access.With(ctx, operator.WithPolicy(m.Policy.Load()))
}
