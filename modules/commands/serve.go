package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"kontor/modules/app"
	"kontor/server/settings"
)

type serveCommand struct {
	Demo       bool `help:"Fill an empty data directory with an invented bank, and print how to sign in to it."`
	AcceptLoss bool `help:"Start although acknowledged writes are missing, as the refused start has said. That is logged and audited."`
	DemoPublic bool `help:"Let other machines reach the demo, whose passwords are printed at every start."`
}

// Run serves until the context ends.
func (c serveCommand) Run(ctx context.Context, p Process, r *settings.Result) (err error) {
	limitMemory()
	// The reader of the log may go away without taking the bank with it.
	signal.Ignore(syscall.SIGPIPE)
	log, closeLog := openLog(r.Settings.Log, p.Stderr)
	defer func() { err = errors.Join(err, closeLog()) }()
	for _, w := range r.Warnings {
		log.Warn(w)
	}
	if err := c.serve(ctx, p, r, opening{log: log, acceptLoss: c.AcceptLoss, fatal: p.fatal(closeLog)}); err != nil && ctx.Err() == nil {
		return err
	} else if err != nil {
		log.Warn("stopped before the start was complete", "err", err)
	}
	log.Info("stopped")
	return nil
}

func (c serveCommand) serve(ctx context.Context, p Process, r *settings.Result, o opening) error {
	s, log := &r.Settings, o.log
	listener, err := listen(ctx, s.Server.Listen)
	if err != nil {
		return err
	}
	defer listener.Close()
	if c.Demo && !c.DemoPublic && !settings.IsLoopback(listener.Addr()) {
		return fmt.Errorf("--demo is for this machine, and other machines reach %s: listen on 127.0.0.1, or add --demo-public", listener.Addr())
	}
	s.Server.BaseURL = s.BaseURLFor(listener.Addr().String())
	if c.Demo {
		return serveDemo(ctx, p, r, o, listener)
	}
	return withModules(ctx, r, o, func(m *app.Modules) error {
		if err := firstBoot(ctx, p.Stdout, m, s); err != nil {
			return err
		}
		return run(ctx, p, m, r, log, listener)
	})
}

// run serves the modules until the context ends.
func run(ctx context.Context, p Process, m *app.Modules, r *settings.Result, log *slog.Logger, listener net.Listener) error {
	s := r.Settings
	web, err := m.Server()
	if err != nil {
		return err
	}
	work, err := m.Work(ctx)
	if err != nil {
		return err
	}
	defer work.Stop()
	// What the start needed goes back to the system once it is over: most of the time a bank is idle.
	settling := time.AfterFunc(settled, debug.FreeOSMemory)
	defer settling.Stop()
	watched, err := superviseRun(ctx, p, m, log, listener)
	if err != nil {
		return err
	}
	defer watched()
	log.Info("listening", "address", listener.Addr().String(), "url", s.Server.BaseURL, "data", s.Data.Dir, "version", Version())
	return serveUntil(ctx, web, listener, s.Server.Shutdown, log)
}

// superviseRun starts what reports to the service manager. stop ends it.
func superviseRun(ctx context.Context, p Process, m *app.Modules, log *slog.Logger, listener net.Listener) (stop func(), err error) {
	served := answers(listener.Addr(), probeTimeout)
	probe := func(ctx context.Context) error {
		if err := served(ctx); err != nil {
			return err
		}
		return m.Alive(ctx)
	}
	s, closeSocket, err := newSupervisor(p.Environ, probe, log)
	if s == nil || err != nil {
		return func() {}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer closeSocket()
		s.run(ctx)
	}()
	return func() {
		cancel()
		select {
		case <-ended:
		case <-time.After(probeTimeout): // a writer that hangs holds up nothing else
		}
	}, nil
}

// probeTimeout is how long the listener has to answer the watchdog.
const probeTimeout = 5 * time.Second

// settled is how long after the start memory is given back: not while the first requests are served.
const settled = 3 * time.Second

// firstBoot sets up an empty database and shows its secrets. They stay to be shown until standard output has taken them.
func firstBoot(ctx context.Context, stdout io.Writer, m *app.Modules, s *settings.Settings) error {
	made, err := m.Boot(ctx)
	if made == nil || err != nil {
		return err
	}
	if err := printFirstBoot(stdout, made, s); err != nil {
		return fmt.Errorf("the secrets of the first start cannot be printed: %w; start again with a standard output that can be written", err)
	}
	if file, ok := stdout.(interface{ Sync() error }); ok {
		_ = file.Sync() // only a file can be synced, not a terminal or a pipe
	}
	return m.Shown(ctx)
}

// printFirstBoot shows what nobody can look up later. It goes to the terminal only: the log may be kept for years.
func printFirstBoot(w io.Writer, made *app.FirstBoot, s *settings.Settings) error {
	password, key := made.AdminPassword, made.APIKey
	if password == "" {
		password = "as given by KONTOR_ADMIN_PASSWORD"
	}
	if key == "" {
		key = "as given by KONTOR_API_KEY"
	}
	_, err := fmt.Fprintf(w, `
Kontor was set up in %s. What follows is shown this once:

    address        %s
    administrator  %s
    password       %s
    API key        %s

`, s.Data.Dir, s.Server.BaseURL, made.AdminEmail, password, key)
	return err
}

// limitMemory lets the garbage collector know how much memory there is, unless GOMEMLIMIT says so.
func limitMemory() {
	if debug.SetMemoryLimit(-1) != math.MaxInt64 {
		return
	}
	if limit := memoryLimit(os.DirFS("/")); limit > 0 {
		debug.SetMemoryLimit(limit)
	}
}
