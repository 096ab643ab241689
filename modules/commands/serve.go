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

	"kontor/modules"
	"kontor/server/settings"
)

type serveCommand struct {
	Demo       bool `help:"Fill an empty data directory with an invented bank, and print how to sign in to it."`
	AcceptLoss bool `help:"Start although acknowledged writes are missing, as the refused start has said. That is logged and audited."`
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
	s.Server.BaseURL = s.BaseURLFor(listener.Addr().String())
	if c.Demo {
		return serveDemo(ctx, p, r, o, listener)
	}
	return withModules(ctx, r, o, func(m *modules.Modules) error {
		made, err := m.Boot(ctx)
		if err != nil {
			return err
		}
		if made != nil {
			if err := printFirstBoot(p.Stdout, made, s); err != nil {
				log.Warn("the first administrator could not be printed; set his password with: kontor user password", "err", err)
			}
		}
		return run(ctx, m, r, log, listener)
	})
}

// run serves the modules until the context ends.
func run(ctx context.Context, m *modules.Modules, r *settings.Result, log *slog.Logger, listener net.Listener) error {
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
	log.Info("listening", "address", listener.Addr().String(), "url", s.Server.BaseURL, "data", s.Data.Dir, "version", Version())
	return serveUntil(ctx, web, listener, s.Server.Shutdown, log)
}

// settled is how long after the start memory is given back: not while the first requests are served.
const settled = 3 * time.Second

// printFirstBoot shows what nobody can look up later. It goes to the terminal only: the log may be kept for years.
func printFirstBoot(w io.Writer, made *modules.FirstBoot, s *settings.Settings) error {
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
