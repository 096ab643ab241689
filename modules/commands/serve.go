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
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kontor/modules/app"
	"kontor/modules/demo"
	"kontor/server/settings"
	"kontor/store"
	"kontor/store/datadir"
	"kontor/store/inspect"
)

type serveCommand struct{ Demo, DemoPublic, Sandbox, SandboxPublic, AcceptLoss bool }

// serve returns the command, and the function that adds its flags.
func (l *commandLine) serve() (cmd *cobra.Command, addFlags func(*pflag.FlagSet)) {
	c := &serveCommand{}
	addFlags = func(f *pflag.FlagSet) {
		f.BoolVar(&c.Demo, "demo", false, "Fill an empty data directory with demo data, and print its sign-ins.")
		f.BoolVar(&c.AcceptLoss, "accept-loss", false, "Start although acknowledged writes are missing, after a start was rejected for that reason. The loss is logged and audited.")
		f.BoolVar(&c.DemoPublic, "demo-public", false, "Allow other machines to reach the demo. Its passwords are printed at every start.")
		f.BoolVar(&c.Sandbox, "sandbox", false, "Serve a sandbox for developers, whose clock they move; see docs/sandbox.md. --demo is one, too.")
		f.BoolVar(&c.SandboxPublic, "sandbox-public", false, "Allow other machines to reach the sandbox, and its administrators to move its clock from there.")
	}
	cmd = &cobra.Command{
		Use: "serve", Short: "Start the server. This is the default command.",
		Example: "kontor\nkontor serve --demo\nkontor serve --sandbox\nkontor serve --config=/etc/kontor.yaml --data.dir=/var/lib/kontor", Args: arguments(), RunE: l.run(c.Run),
	}
	addFlags(cmd.Flags())
	return cmd, addFlags
}

// Run serves until the context ends.
func (c *serveCommand) Run(ctx context.Context, p Process, r *settings.Result) (err error) {
	limitMemory()
	settle := collectLess()
	defer settle()
	// The process must survive the end of the program that reads its log.
	signal.Ignore(syscall.SIGPIPE)
	log, closeLog := openLog(r.Settings.Log, p.Stderr)
	defer func() { err = errors.Join(err, closeLog()) }()
	for _, w := range r.Warnings {
		log.Warn(w)
	}
	if err := c.serve(ctx, p, r, openOptions{log: log, acceptLoss: c.AcceptLoss, fatal: p.fatal(closeLog), settle: settle}); err != nil && ctx.Err() == nil {
		return err
	} else if err != nil {
		log.Warn("stopped before the start was complete", "err", err)
	}
	log.Info("stopped")
	return nil
}

func (c *serveCommand) serve(ctx context.Context, p Process, r *settings.Result, o openOptions) error {
	s := &r.Settings
	if err := checkPaths(s); err != nil {
		return err
	}
	open, err := openListeners(ctx, r)
	if err != nil {
		return err
	}
	defer open.close()
	if open.ready, err = open.answerDuringStart(&s.Server, o.log); err != nil {
		return err
	}
	defer open.ready()
	o.progress = open.report
	if err := c.checkReach(open.main.Addr()); err != nil {
		return err
	}
	if c.inSandbox() {
		if err := notShared(r, "there is no sandbox: it needs a data directory of its own, because other nodes would have another clock"); err != nil && !c.Demo {
			return err
		}
		o.sandbox = &app.Sandbox{Clock: &store.ShiftedClock{}, Public: c.SandboxPublic}
	}
	s.Server.BaseURL = s.BaseURLFor(open.main.Addr().String())
	if c.Demo {
		o.settle()
		return serveDemo(ctx, p, r, o, open)
	}
	boot := func(m *app.Modules) error { return firstBoot(ctx, p.Stdout, m, r) }
	if c.inSandbox() {
		return serveSandbox(ctx, p, r, o, open, boot, boot)
	}
	if err := requireNoSandbox(ctx, r); err != nil {
		return err
	}
	return withModules(ctx, r, o, func(m *app.Modules) error {
		if err := boot(m); err != nil {
			return err
		}
		return run(ctx, p, m, r, o, open)
	})
}

// inSandbox reports whether the server is a sandbox.
func (c *serveCommand) inSandbox() bool { return c.Demo || c.Sandbox || c.SandboxPublic }

// checkReach rejects an address that other machines can reach unless a flag allows it.
func (c *serveCommand) checkReach(at net.Addr) error {
	switch {
	case settings.IsLoopback(at):
		return nil
	case c.Demo && !c.DemoPublic:
		return fmt.Errorf("other machines can reach the demo at %s; listen on 127.0.0.1, or add --demo-public", at)
	case c.Sandbox && !c.SandboxPublic:
		return fmt.Errorf("other machines can reach the sandbox at %s; listen on 127.0.0.1, or add --sandbox-public", at)
	}
	return nil
}

// sandboxDrain is how long a sandbox waits for running requests before it is reset or stops.
const sandboxDrain = 100 * time.Millisecond

// run serves the modules, which are started, until the context ends.
func run(ctx context.Context, p Process, m *app.Modules, r *settings.Result, o openOptions, open *listeners) error {
	s, log := r.Settings, o.log
	web, err := m.Server()
	if err != nil {
		return err
	}
	work, err := m.Work(ctx)
	if err != nil {
		return err
	}
	defer work.Stop()
	// Most installations are idle most of the time: return the memory of the start to the system.
	releaseTimer := time.AfterFunc(memoryReleaseDelay, func() {
		o.settle()
		debug.FreeOSMemory()
		unmapImage()
	})
	defer releaseTimer.Stop()
	prepareTimer := time.AfterFunc(prepareDelay, func() { m.Prepare(ctx) })
	defer prepareTimer.Stop()
	if !isShared(r) { // otherwise commands about keys are nodes of their own
		defer startControl(ctx, m, s.Data.Dir, log)()
	}
	transport, err := newTransport(&s, m, log)
	if err != nil {
		return err
	}
	web.TLS, web.Expires = transport.config, transport.expires
	defer transport.start(ctx, open.redirect, s.Server.BaseURL, log)()
	if open.warning != "" {
		log.Warn(open.warning)
	}
	if err := m.DB.CheckDurability(ctx); err != nil {
		log.Warn("the database server may lose acknowledged writes", "cause", err)
	}
	if err := m.DB.CheckRole(ctx); err != nil {
		log.Warn("the role of data.url may do more than Kontor needs (docs/cluster.md)", "cause", err)
	}
	if open.metrics != nil {
		defer serveMetrics(open.metrics, web.WriteMetrics, log)()
	}
	stopSupervisor, err := startSupervisor(ctx, p, m, log, open.main, transport.config != nil)
	if err != nil {
		return err
	}
	defer stopSupervisor()
	open.ready()
	log.Info("listening", "address", open.main.Addr().String(), "url", s.Server.BaseURL, "metrics", addressOf(open.metrics), "data", placeName(r), "version", Version())
	limit := s.Server.Shutdown
	if m.InSandbox() {
		limit = min(limit, sandboxDrain)
	}
	return serveUntil(ctx, web, open.main, limit, log)
}

// startSupervisor starts the reports to the service manager. Call stop to end them.
func startSupervisor(ctx context.Context, p Process, m *app.Modules, log *slog.Logger, listener net.Listener, overTLS bool) (stop func(), err error) {
	served := httpProbe(listener.Addr(), overTLS, probeTimeout)
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
		case <-time.After(probeTimeout): // a writer that hangs must not block the shutdown
		}
	}, nil
}

// probeTimeout bounds a request of the watchdog.
const probeTimeout = 5 * time.Second

// prepareDelay is the time after the start at which the server prepares what its first requests would have to wait for.
const prepareDelay = 15 * time.Second

// memoryReleaseDelay is the time after the start at which unused memory is released, so that the first requests are not
// slowed down.
const memoryReleaseDelay = 3 * time.Second

// firstBoot sets up an empty database and prints its secrets. Later starts print them again until one could write all of
// them to standard output.
func firstBoot(ctx context.Context, stdout io.Writer, m *app.Modules, r *settings.Result) error {
	return m.DB.Exclusively(ctx, func(ctx context.Context) error { return showFirstBoot(ctx, stdout, m, r) })
}

func showFirstBoot(ctx context.Context, stdout io.Writer, m *app.Modules, r *settings.Result) error {
	boot, err := m.Boot(ctx)
	if boot == nil || err != nil {
		return err
	}
	if err := printFirstBoot(stdout, boot, r); err != nil {
		return fmt.Errorf("the secrets of the first start could not be printed: %w; start again with a writable standard output", err)
	}
	if file, ok := stdout.(interface{ Sync() error }); ok {
		_ = file.Sync() // fails for a terminal or a pipe, which need none
	}
	return m.Shown(ctx)
}

// printFirstBoot prints the secrets, which cannot be read later. They must not reach the log, which may be kept for years.
func printFirstBoot(w io.Writer, boot *app.FirstBoot, r *settings.Result) error {
	password, key := boot.AdminPassword, boot.APIKey
	if password == "" {
		password = "the value of KONTOR_ADMIN_PASSWORD"
	}
	if key == "" {
		key = "the value of KONTOR_API_KEY"
	}
	_, err := fmt.Fprintf(w, `
Kontor was set up in %s. These secrets are shown only once:

    address        %s
    administrator  %s
    password       %s
    API key        %s

Next: sign in at %[2]s and change the password. The API is at %[2]s/docs,
with clients to install. "kontor help" lists the commands.

`, placeName(r), r.Settings.Server.BaseURL, boot.AdminEmail, password, key)
	return err
}

// startGCPercent is the growth of the heap between two collections during the start, which allocates some megabytes and keeps
// most of them.
const startGCPercent = 400

// collectLess makes the garbage collector run less often until settle is called, unless GOGC says more.
func collectLess() (settle func()) {
	before := debug.SetGCPercent(startGCPercent)
	settle = sync.OnceFunc(func() { debug.SetGCPercent(before) })
	if before < 0 || before > startGCPercent {
		settle()
	}
	return settle
}

// limitMemory sets the memory limit of the garbage collector, unless GOMEMLIMIT sets it.
func limitMemory() {
	if debug.SetMemoryLimit(-1) != math.MaxInt64 {
		return
	}
	if limit := memoryLimit(os.DirFS("/")); limit > 0 {
		debug.SetMemoryLimit(limit)
	}
}

// serveDemo serves the demo data. It creates the data at the first start.
func serveDemo(ctx context.Context, p Process, r *settings.Result, o openOptions, open *listeners) error {
	s := &r.Settings
	if err := notShared(r, "there is no demo: it is a sandbox, which needs a data directory of its own: kontor serve --demo --data.dir=demo-data"); err != nil {
		return err
	}
	manifest, err := demo.Prepare(s.Data.Dir, s.Secrets.AdminEmail, string(s.Secrets.AdminPassword))
	if err != nil {
		return err
	}
	if !manifest.Complete {
		if err := mayDiscard(ctx, s.Data.Dir); err != nil {
			return err
		}
		if err := manifest.Begin(); err != nil {
			return err
		}
	}
	s.Secrets.AdminEmail, s.Secrets.AdminPassword = manifest.Admin, settings.Secret(manifest.Password)
	load := func(m *app.Modules) error {
		if manifest.Complete {
			return nil
		}
		return loadDemo(ctx, m, manifest, o.sandbox.Clock)
	}
	return serveSandbox(ctx, p, r, o, open, load, func(m *app.Modules) error {
		if err := demo.PrintSignIns(p.Stdout, s.Server.BaseURL, manifest); err != nil {
			o.log.Warn("the sign-ins of the demo could not be printed", "err", err)
		}
		return nil
	})
}

// mayDiscard rejects the deletion of data that are not those of an interrupted demo.
func mayDiscard(ctx context.Context, dir string) error {
	if !datadir.At(dir).Has(datadir.Database) {
		return nil
	}
	purpose, err := inspect.PurposeOf(ctx, inspect.Source{Dir: dir})
	if err == nil && purpose != inspect.Sandbox {
		err = fmt.Errorf("%s holds other data: %w", dir, demo.ErrNotDemo)
	}
	return err
}

// loadDemo fills the empty database. The manifest holds its secrets, which every start prints.
func loadDemo(ctx context.Context, m *app.Modules, manifest *demo.Manifest, clock *store.ShiftedClock) error {
	boot, err := m.Boot(ctx)
	if err != nil {
		return err
	}
	key := boot.APIKey
	if manifest.APIKey = key; key == "" {
		key = string(m.Settings.Secrets.APIKey)
	}
	if err := demo.Load(ctx, m, clock, key, manifest); err != nil {
		return fmt.Errorf("create the demo data: %w", err)
	}
	if err := m.Shown(ctx); err != nil {
		return err
	}
	return manifest.Save(true)
}

// httpServer is what serveUntil needs of [kontor/server.Server].
type httpServer interface {
	Serve(net.Listener) error
	Shutdown(context.Context) error
}

// listen opens the address of server.listen. Callers open it before they write anything, so that a start whose port is in
// use changes nothing.
func listen(ctx context.Context, address string) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err == nil {
		return listener, nil
	}
	var cause *os.SyscallError
	if errors.As(err, &cause) {
		err = cause.Err // without the name of the system call
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("cannot listen on %s: %w; end the other program, or choose another address with --server.listen or --metrics.listen", address, err)
	}
	return nil, fmt.Errorf("cannot listen on %s: %w", address, err)
}

// serveUntil serves requests until the context ends, and then shuts down within limit. Requests that take longer are
// aborted; acknowledged writes are stored already.
func serveUntil(ctx context.Context, s httpServer, listener net.Listener, limit time.Duration, log *slog.Logger) error {
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(listener) }()
	select {
	case err := <-ended:
		if err == nil {
			err = errors.New("the server ended unexpectedly")
		}
		return fmt.Errorf("serve %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	log.Info("stopping", "limit", limit.String())
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout(limit))
	defer cancel()
	err := s.Shutdown(stopping)
	if errors.Is(err, context.DeadlineExceeded) {
		log.Warn("requests were still running and are aborted", "limit", limit.String())
		return nil
	}
	if err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	return <-ended
}

// drainTimeout returns the part of the shutdown limit that is for running requests.
func drainTimeout(limit time.Duration) time.Duration { return limit - limit/5 }

// closeTimeout returns the part of the shutdown limit in which the modules stop their work and write what they hold in
// memory. The rest is for closing the database.
func closeTimeout(limit time.Duration) time.Duration { return limit / 10 }
