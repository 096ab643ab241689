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
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
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

// startSomewhere starts the server on a free port. Another process may take the port first, so it tries a few.
func (p *Instance) startSomewhere() (err error) {
	for range 5 {
		var l net.Listener
		if l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			return err
		}
		p.port = l.Addr().(*net.TCPAddr).Port
		if err = l.Close(); err != nil {
			return err
		}
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
