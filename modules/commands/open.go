package commands

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kontor/modules/app"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/settings"
	"kontor/store"
	"kontor/store/backup/continuous"
	"kontor/store/datadir"
	"kontor/store/inspect"
)

func (l *commandLine) open() *cobra.Command {
	var user string
	var onlyPrint bool
	cmd := &cobra.Command{
		Use: "open", Short: "Open the console of the running server in a browser, signed in.",
		Long: `The command asks the server, by the socket in its data directory, for a link
that signs in a user once, within a minute, on this machine. Whoever may use
the socket can also read the master key. The link stands for the password: a
user with a second factor is asked for it. The session is in the audit trail.
The server must be reached as localhost, without a proxy.

The link is printed if no browser can be started.`,
		Example: "kontor open\nkontor open --user anna@bank.example\nkontor open --print", Args: arguments(),
		RunE: l.run(func(ctx context.Context, p Process, r *settings.Result) error {
			return openConsole(ctx, p, r, user, onlyPrint)
		}),
	}
	cmd.Flags().StringVar(&user, "user", "", "Sign-in value or id of the `user`; default: the administrator of the first start.")
	cmd.Flags().BoolVar(&onlyPrint, "print", false, "Print the link, and start no browser.")
	return cmd
}

// openConsole asks for a link and opens it.
func openConsole(ctx context.Context, p Process, r *settings.Result, user string, onlyPrint bool) error {
	if err := notShared(r, "there is no socket; sign in with a password"); err != nil {
		return err
	}
	p.warn(r)
	if user == "" {
		user = app.FirstAdmin(r.Settings.Secrets.AdminEmail)
	}
	link := ""
	err := askServer(ctx, r.Settings.Data.Dir, keyRequest{Command: askLink, User: user}, func(a controlAnswer) { link = a.Text })
	if errors.Is(err, errNoServer) {
		return fmt.Errorf("no server is running in %s; start it with: kontor serve --data.dir %[1]s", r.Settings.Data.Dir)
	}
	if err != nil {
		return err
	}
	if !onlyPrint && startBrowser(ctx, p.Environ, link) == nil {
		return p.say("The browser opens the console.")
	}
	return p.say("Open this link within a minute. It signs in %s, once:\n\n%s", user, link)
}

// startBrowser opens a link with the program that the system uses for links. The link passes through no shell. Other users of the
// machine may see it among the arguments of the program while that runs; it is of no use to them on another machine, or later.
func startBrowser(ctx context.Context, environ []string, link string) error {
	name, args := "xdg-open", []string{link}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", link}
	default:
		if !hasDisplay(environ) {
			return errors.New("there is no display")
		}
	}
	program, err := exec.LookPath(name)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, program, args...) //nolint:gosec // the program is one of the three above, from PATH
	cmd.Env = append(os.Environ(), environ...)
	return cmd.Run()
}

func hasDisplay(environ []string) bool {
	for _, variable := range environ {
		if name, value, _ := strings.Cut(variable, "="); value != "" && (name == "DISPLAY" || name == "WAYLAND_DISPLAY") {
			return true
		}
	}
	return false
}

// makeLink says a link that signs in a user.
func (k keyRequest) makeLink(ctx context.Context, m *app.Modules, say func(string, ...any)) error {
	base, err := url.Parse(m.Settings.Server.BaseURL)
	if err != nil || !isLocal(base.Hostname()) || len(m.Settings.Server.TrustedProxies) > 0 {
		return errors.New("other machines or a proxy reach this server; the link is for a server at localhost alone: sign in with a password")
	}
	code, err := m.Auth.NewLocalLink(ctx, k.User)
	if errors.Is(err, apierr.UserNotFound) {
		return fmt.Errorf("no active user signs in as %q; name one with --user", k.User)
	}
	if err != nil {
		return err
	}
	say("%s/signin#local=%s", strings.TrimSuffix(base.String(), "/"), code)
	return nil
}

// isLocal reports whether a host is this machine.
func isLocal(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}

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

// purpose returns what the data must be for. A command serves any data directory, but a sandbox is never in a shared database, because
// nodes would have other clocks.
func (o openOptions) purpose(shared bool) inspect.Purpose {
	switch {
	case o.sandbox != nil:
		return inspect.Sandbox
	case o.command && !shared:
		return ""
	}
	return inspect.Production
}

// withModules opens the database, builds the modules on it, and runs work. It closes both when work has returned. No other
// process can open a data directory in the meantime. With a PostgreSQL database this process is one of its nodes.
func withModules(ctx context.Context, r *settings.Result, o openOptions, work func(*app.Modules) error) (err error) {
	options := store.Options{Dir: storeDir(r), URL: string(r.Settings.Data.URL), Connections: r.Settings.Data.Connections, Node: nodeName(r, o.command), Program: Version(), SecretKey: string(r.Settings.Secrets.SecretKey), PreviousKey: string(r.Settings.Secrets.PreviousKey)}
	if !o.command { // a command needs few settings
		options.Settings = app.SharedSettings(r)
	}
	options.Log, options.AcceptLoss, options.Fatal, options.Purpose = o.log, o.acceptLoss, o.fatal, o.purpose(isShared(r))
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

// checkPaths checks the settings that refer to files, and the master key. A start with a wrong one must neither create
// data nor print secrets.
func checkPaths(s *settings.Settings) error {
	if mistakes := pathMistakes(s); len(mistakes) > 0 {
		return mistakes[0]
	}
	return nil
}

// pathMistakes returns each mistake of these settings that prevents the start on this machine. It changes nothing.
func pathMistakes(s *settings.Settings) (mistakes []error) {
	add := func(err error) {
		if err != nil {
			mistakes = append(mistakes, err)
		}
	}
	add(checkConsoleDir(s.Server.ConsoleDir))
	dataDir := s.Data.Dir
	if s.Data.URL == "" {
		add(checkDataDir(dataDir))
	} else {
		add(checkDatabase(s))
		dataDir = "" // it is not created
	}
	add(store.CheckSecretKeys(string(s.Secrets.SecretKey), string(s.Secrets.PreviousKey)))
	add(checkBackupTarget(s))
	add(checkTLS(&s.Server))
	add(checkListsDir(s.Screening.Dir))
	add(checkExportFile(s.Audit.ExportFile, dataDir))
	return mistakes
}

func checkConsoleDir(dir string) error {
	if dir == "" { // the console in the executable is complete, and building it takes 40 ms
		return nil
	}
	if err := app.CheckConsole(dir); err != nil {
		return fmt.Errorf("server.console_dir %s holds no console; name the directory web of the source, or leave the setting out (%w)", dir, err)
	}
	return nil
}

func checkListsDir(dir string) error {
	if dir == "" {
		return nil
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return fmt.Errorf("screening.dir %s is not a directory; create it, or leave the setting out", dir)
	}
	return nil
}

// checkBackupTarget rejects an address that cannot be a target. Whether the target answers is seen later: the server must start
// without it.
func checkBackupTarget(s *settings.Settings) error {
	if s.Backup.URL == "" {
		return nil
	}
	if s.Data.URL != "" {
		return errors.New("backup.url is for the database in data.dir; with data.url, use the backups of PostgreSQL (docs/cluster.md)")
	}
	if _, err := continuous.Open(s.Backup.URL); err != nil {
		return fmt.Errorf("backup.url: %w", err)
	}
	return nil
}

// checkDataDir rejects a path that exists and is no directory, or that cannot be reached.
func checkDataDir(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case err == nil && !info.IsDir():
		return fmt.Errorf("data.dir %s is not a directory; name a directory", dir)
	case err != nil && !errors.Is(err, fs.ErrNotExist): // the start creates a missing one
		return fmt.Errorf("data.dir %s cannot be reached: %w", dir, datadir.Cause(err))
	}
	return nil
}

// checkExportFile rejects a file that could not be created. Its directory may be the data directory, which the first start
// creates; dataDir is "" without one.
func checkExportFile(file, dataDir string) error {
	if file == "" {
		return nil
	}
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		return fmt.Errorf("audit.export_file %s is a directory; name a file", file)
	}
	parent := filepath.Dir(file)
	if info, err := os.Stat(parent); err == nil && info.IsDir() || dataDir != "" && samePath(parent, dataDir) {
		return nil
	}
	return fmt.Errorf("audit.export_file %s cannot be written: %s is not a directory; create it", file, parent)
}

func samePath(a, b string) bool {
	a, errA := filepath.Abs(a)
	b, errB := filepath.Abs(b)
	return errA == nil && errB == nil && a == b
}
