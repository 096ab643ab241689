// Package postgrestest starts PostgreSQL for tests.
//
// [URL] gives a test a database of its own on a server that all tests of the process share. [Server] gives it a server of
// its own, which the test may stop, restart and crash. Servers listen on a free port of 127.0.0.1 and on a socket, accept
// every client without a password, and keep their data in a temporary directory. A process of their own stops them and
// removes the directory when the test process ends, however it ends.
//
// The environment variable KONTOR_TEST_POSTGRES names a running server: a URL whose user may create databases. Several
// test processes can share that server; each removes what an earlier one has left behind.
//
// Tests with a server belong to the full tier of package testenv, and run also when KONTOR_TEST_ENGINE is "postgres". They fail where
// PostgreSQL is not installed. Its programs are looked for in PATH and below /usr/lib/postgresql.
package postgrestest

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"kontor/store/testenv"
)

// Options are the properties of a server.
type Options struct {
	// Durable has commits reach the disk (fsync). Without it a crash of the machine may destroy the data, which tests do
	// not mind; a crash of the server does not.
	Durable bool
	// Settings are parameters of postgresql.conf and their values.
	Settings map[string]string
}

// An Instance is a PostgreSQL server in a directory of its own.
type Instance struct {
	dir      string
	as       []string // the command that runs a program as the server's user
	port     int
	settings map[string]string
	remover  *exec.Cmd
	alive    io.Closer // its closing has remover stop the server
}

// Server starts a server for one test. It ends with the test.
func Server(t testing.TB, o Options) *Instance {
	t.Helper()
	need(t)
	p, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("stop PostgreSQL: %v", err)
		}
	})
	return p
}

// Start creates an empty server and starts it, for programs other than tests. Close ends it.
func Start(o Options) (p *Instance, err error) {
	if p, err = newInstance(o); err != nil {
		return nil, err
	}
	err = run(p.as, p.dir, "initdb", "-D", p.data(), "-U", User, "--auth=trust", "--no-sync", "--no-locale", "--encoding=UTF8")
	if err == nil {
		err = p.startSomewhere()
	}
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// newInstance makes the directory of a server.
func newInstance(o Options) (p *Instance, err error) {
	if _, err := programs(); err != nil {
		return nil, err
	}
	p = &Instance{settings: o.parameters()}
	if p.dir, err = os.MkdirTemp("", "kontor-pg"); err != nil { // short enough for the path of a socket
		return nil, err
	}
	if p.as, err = asOwner(p.dir); err != nil {
		return nil, errors.Join(err, os.RemoveAll(p.dir))
	}
	if err := p.watch(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(p.dir))
	}
	return p, nil
}

// parameters returns the settings of a server. The defaults save time and memory.
func (o Options) parameters() map[string]string {
	all := map[string]string{
		"fsync": "off", "full_page_writes": "off",
		"max_connections": "400", "shared_buffers": "64MB", "wal_level": "minimal", "max_wal_senders": "0",
		"listen_addresses": "127.0.0.1", "timezone": "UTC", "log_timezone": "UTC",
	}
	if o.Durable {
		all["fsync"], all["full_page_writes"] = "on", "on"
	}
	maps.Copy(all, o.Settings)
	return all
}

// startSomewhere starts the server on a free port, which no connection takes while the server is stopped. Another process may take the
// port first, so it tries a few.
func (p *Instance) startSomewhere() (err error) {
	for range 5 {
		var address string
		if address, err = testenv.FindFreeAddress(); err != nil {
			return err
		}
		_, port, _ := net.SplitHostPort(address)
		p.port, _ = strconv.Atoi(port)
		if err = p.start(); err == nil {
			return nil
		}
	}
	return err
}

func (p *Instance) start() error {
	options := []string{"-p " + strconv.Itoa(p.port), "-c unix_socket_directories='" + p.dir + "'"}
	for _, name := range slices.Sorted(maps.Keys(p.settings)) {
		options = append(options, fmt.Sprintf("-c %s='%s'", name, p.settings[name]))
	}
	err := run(p.as, p.dir, "pg_ctl", "-D", p.data(), "-l", p.logFile(), "-w", "start", "-o", strings.Join(options, " "))
	if err != nil {
		return fmt.Errorf("%w; its log ends with %s", err, p.logEnd())
	}
	return nil
}

func (p *Instance) data() string    { return filepath.Join(p.dir, "data") }
func (p *Instance) logFile() string { return filepath.Join(p.dir, "log") }

// logEnd returns the last lines of the server's log, for messages.
func (p *Instance) logEnd() string {
	data, err := os.ReadFile(p.logFile())
	if err != nil {
		return err.Error()
	}
	return string(data[max(0, len(data)-2000):])
}

// User is the name of the servers' superuser, who needs no password.
const User = "kontor"

// URL returns the address of a database of the server over TCP. The database "postgres" always exists.
func (p *Instance) URL(database string) string {
	u := url.URL{Scheme: "postgres", User: url.User(User), Host: p.Addr(), Path: "/" + database, RawQuery: "sslmode=disable"}
	return u.String()
}

// Addr returns host and port of the server. They stay the same after a restart.
func (p *Instance) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.port)) }

// Socket returns the directory of the server's socket.
func (p *Instance) Socket() string { return p.dir }

// StartAgain starts the server after Stop or Crash.
func (p *Instance) StartAgain(t testing.TB) {
	t.Helper()
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
}

// Stop stops the server in an orderly way: connections are cut, transactions rolled back.
func (p *Instance) Stop(t testing.TB) { t.Helper(); p.stop(t, "fast") }

// Crash ends the server without a checkpoint or a word to its clients, so that the next start has to recover.
func (p *Instance) Crash(t testing.TB) { t.Helper(); p.stop(t, "immediate") }

func (p *Instance) stop(t testing.TB, mode string) {
	t.Helper()
	if err := run(p.as, p.dir, "pg_ctl", "-D", p.data(), "-m", mode, "-w", "stop"); err != nil {
		t.Fatal(err)
	}
}

// errNotInstalled is returned where PostgreSQL's programs are missing.
var errNotInstalled = errors.New("install PostgreSQL (on Debian: postgresql): no initdb in PATH or below /usr/lib/postgresql")

// programs returns the directory of the newest installed PostgreSQL's programs.
var programs = sync.OnceValues(func() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // where Debian has it
	if err != nil {
		return "", err
	}
	if len(found) > 0 {
		return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return major(a) - major(b) })), nil
	}
	path, err := exec.LookPath("initdb")
	if err != nil {
		return "", errNotInstalled
	}
	if path, err = filepath.EvalSymlinks(path); err != nil { // the other programs are beside its target
		return "", err
	}
	return filepath.Dir(path), nil
})

// major returns the version in a path like /usr/lib/postgresql/15/bin/initdb, or 0.
func major(path string) int {
	version, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path)))) // 0 sorts an unusual name first
	return version
}

// asOwner gives dir to the user that runs PostgreSQL, and returns the command that runs a program as that user. The
// command is empty unless the tests run as root, as which PostgreSQL does not start.
func asOwner(dir string) ([]string, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	owner, err := user.Lookup("postgres") // Debian's package creates it
	if err != nil {
		return nil, err
	}
	uid, err := strconv.Atoi(owner.Uid)
	if err != nil {
		return nil, err
	}
	if err := os.Chown(dir, uid, -1); err != nil {
		return nil, err
	}
	return []string{"runuser", "-u", owner.Username, "--"}, nil
}

// run runs one of PostgreSQL's programs in dir until it ends.
func run(as []string, dir, program string, args ...string) error {
	bin, err := programs()
	if err != nil {
		return err
	}
	line := append(append(slices.Clone(as), filepath.Join(bin, program)), args...)
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Dir = dir
	// The output goes to a file: the server inherits it from pg_ctl, and Run would wait for the end of a pipe.
	out, err := os.CreateTemp(dir, program)
	if err != nil {
		return err
	}
	defer os.Remove(out.Name())
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		said, _ := os.ReadFile(out.Name()) // err is reported anyway
		return fmt.Errorf("%s: %w: %s", program, err, strings.TrimSpace(string(said)))
	}
	return nil
}

// Program returns the path of one of PostgreSQL's programs, such as psql.
func Program(t testing.TB, name string) string {
	t.Helper()
	bin, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(bin, name)
}

// Psql runs a script in a database with PostgreSQL's own client until its first error, and returns the output: one row per
// line, without headers.
func (p *Instance) Psql(t testing.TB, database, script string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command(Program(t, "psql"), append([]string{p.URL(database),
		"-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-f", "-"}, args...)...)
	cmd.Stdin = strings.NewReader(script)
	cmd.Env = append(os.Environ(), "PGCLIENTENCODING=UTF8", "PGOPTIONS=--client-min-messages=warning")
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, problems.String())
	}
	return string(out), nil
}

// Replicated are the settings of a server that can have standbys.
var Replicated = map[string]string{"wal_level": "replica", "max_wal_senders": "4", "hot_standby": "on"}

// Standby copies a server and starts the copy as its standby, which receives all further commits. The server needs the settings
// Replicated. The standby ends with the test.
func (p *Instance) Standby(t testing.TB) *Instance {
	t.Helper()
	s, err := newInstance(Options{Settings: maps.Clone(p.settings)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("stop the standby: %v", err)
		}
	})
	err = run(s.as, s.dir, "pg_basebackup", "-h", "127.0.0.1", "-p", strconv.Itoa(p.port), "-U", User,
		"-D", s.data(), "-R", "-X", "stream", "--checkpoint=fast", "--no-sync")
	if err = errors.Join(err, s.startSomewhere()); err != nil {
		t.Fatal(err)
	}
	return s
}

// Promote makes a standby a primary, and returns when it accepts writes.
func (p *Instance) Promote(t testing.TB) {
	t.Helper()
	if err := run(p.as, p.dir, "pg_ctl", "-D", p.data(), "-w", "promote"); err != nil {
		t.Fatal(err)
	}
}
