package postgrestest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"kontor/store/testenv"
)

// shared is the server that the tests of this process share.
type shared struct {
	admin *url.URL
	owner uint32         // names the databases of this process
	lock  *pgconn.PgConn // holds the lock that says that the owner lives
	own   *Instance      // nil with KONTOR_TEST_POSTGRES; kept, because the server stops when its pipe is collected
	count atomic.Int64

	templates sync.Map // name to func() (string, error), which returns the name of a database
}

// ownerLocks is the first half of the advisory locks that the owners of databases hold on the server.
const ownerLocks = 0x6b6f6e74

var server = sync.OnceValues(func() (*shared, error) {
	address := os.Getenv("KONTOR_TEST_POSTGRES")
	var own *Instance
	if address == "" {
		var err error
		if own, err = Start(Options{}); err != nil {
			return nil, err
		}
		address = own.URL("postgres")
	}
	admin, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("KONTOR_TEST_POSTGRES: %w", err)
	}
	s := &shared{admin: admin, own: own, owner: rand.Uint32() >> 1}
	if s.lock, err = pgconn.Connect(context.Background(), address); err != nil {
		return nil, err
	}
	if _, err := execute(s.lock, fmt.Sprintf("SELECT pg_advisory_lock(%d, %d)", ownerLocks, s.owner)); err != nil {
		return nil, err
	}
	return s, s.dropOrphans()
})

// Chosen reports whether tests that run on either engine run on PostgreSQL: when KONTOR_TEST_ENGINE is "postgres".
func Chosen() bool { return os.Getenv("KONTOR_TEST_ENGINE") == "postgres" }

// need skips a test that runs on PostgreSQL only, unless the full tier of the tests runs or PostgreSQL is chosen.
func need(t testing.TB) {
	t.Helper()
	if !Chosen() {
		testenv.Need(t, testenv.Full)
	}
}

// URL creates an empty database for one test and returns its address. It is dropped at the end of the test.
func URL(t testing.TB) string {
	t.Helper()
	return database(t, func(*shared) (string, error) { return "template1", nil })
}

// Copy creates a database for one test and returns its address. It is a copy of a template, which fill creates in an empty
// database, once for each name and process. Fill must close its connections.
func Copy(t testing.TB, name string, fill func(address string) error) string {
	t.Helper()
	return database(t, func(s *shared) (string, error) {
		made, _ := s.templates.LoadOrStore(name, sync.OnceValues(func() (string, error) {
			template, err := s.create("template1")
			if err != nil {
				return "", err
			}
			return template, fill(s.address(template))
		}))
		return made.(func() (string, error))()
	})
}

func database(t testing.TB, template func(*shared) (string, error)) string {
	t.Helper()
	need(t)
	s, err := server()
	if err != nil {
		t.Fatalf("start PostgreSQL: %v", err)
	}
	from, err := template(s)
	if err != nil {
		t.Fatalf("make a template: %v", err)
	}
	name, err := s.create(from)
	if err != nil {
		t.Fatalf("create a database: %v", err)
	}
	t.Cleanup(func() {
		if err := s.run("DROP DATABASE " + name + " WITH (FORCE)"); err != nil {
			t.Errorf("drop the database: %v", err)
		}
	})
	return s.address(name)
}

// address returns the URL of a database.
func (s *shared) address(database string) string {
	u := *s.admin
	u.Path = "/" + database
	return u.String()
}

// create creates a copy of a database without connections, and returns its name.
func (s *shared) create(template string) (string, error) {
	name := fmt.Sprintf("kontor_test_%d_%d", s.owner, s.count.Add(1))
	return name, s.run("CREATE DATABASE " + name + " TEMPLATE " + template + " STRATEGY file_copy") // takes half the processor time of the default
}

// run runs a statement on a connection of its own.
func (s *shared) run(statement string) error {
	c, err := pgconn.Connect(context.Background(), s.admin.String())
	if err != nil {
		return err
	}
	_, err = execute(c, statement)
	return errors.Join(err, c.Close(context.Background()))
}

// dropOrphans drops the databases of processes that have ended without doing so.
func (s *shared) dropOrphans() error {
	names, err := execute(s.lock, `SELECT datname FROM pg_database WHERE datname LIKE 'kontor\_test\_%'`)
	if err != nil {
		return err
	}
	for _, name := range names {
		var owner uint32
		if _, err := fmt.Sscanf(name, "kontor_test_%d_", &owner); err != nil || owner == s.owner {
			continue
		}
		free, err := execute(s.lock, fmt.Sprintf("SELECT pg_try_advisory_lock(%d, %d)", ownerLocks, owner))
		if err != nil {
			return err
		}
		if free[0] != "t" {
			continue
		}
		_, err = execute(s.lock, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
		if err = errors.Join(err, s.release(owner)); err != nil {
			return err
		}
	}
	return nil
}

func (s *shared) release(owner uint32) error {
	_, err := execute(s.lock, fmt.Sprintf("SELECT pg_advisory_unlock(%d, %d)", ownerLocks, owner))
	return err
}

// execute runs a statement and returns the first column of its rows.
func execute(c *pgconn.PgConn, statement string) ([]string, error) {
	results, err := c.Exec(context.Background(), statement).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", strings.TrimSpace(statement), err)
	}
	var column []string
	for _, row := range results[0].Rows {
		column = append(column, string(row[0]))
	}
	return column, nil
}

// Run runs statements in a database on a connection of their own, as the superuser.
func Run(t testing.TB, address, statements string) { t.Helper(); Rows(t, address, statements) }

// Rows runs statements as Run does, and returns the first column of the first one's rows.
func Rows(t testing.TB, address, statements string) []string {
	t.Helper()
	c, err := pgconn.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.WithoutCancel(t.Context()))
	rows, err := execute(c, statements)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// pool is a connection pool between clients and one connection to the server.
type pool struct {
	server *pgproto3.Frontend
	conn   net.Conn
	mu     sync.Mutex // held by the client to which the server's connection is lent
}

// NewPool starts a connection pool in front of a database, in transaction or in session mode, and returns the address of the
// database through the pool. It accepts every user, and ends with the test.
func NewPool(t testing.TB, address string, transactionMode bool) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var clients sync.WaitGroup
	t.Cleanup(func() {
		listener.Close()
		clients.Wait()
	})
	shared := newServerConnection(t, address)
	clients.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			server := shared
			if !transactionMode {
				server = newServerConnection(t, address)
			}
			clients.Go(func() { server.serve(conn, transactionMode) })
		}
	})
	c, err := pgconn.ParseConfig(address)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Replace(address, fmt.Sprintf("%s:%d", c.Host, c.Port), listener.Addr().String(), 1)
}

func newServerConnection(t testing.TB, address string) *pool {
	t.Helper()
	conn, err := pgconn.Connect(context.Background(), address)
	if err != nil {
		t.Fatal(err)
	}
	h, err := conn.Hijack()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Conn.Close() })
	return &pool{server: h.Frontend, conn: h.Conn}
}

// serve passes the requests of a client on, each up to the end of its transaction, and the answers back.
func (p *pool) serve(conn net.Conn, transactionMode bool) {
	defer conn.Close()
	if !transactionMode {
		defer p.conn.Close()
	}
	client := pgproto3.NewBackend(conn, conn)
	if _, err := client.ReceiveStartupMessage(); err != nil {
		return
	}
	client.Send(&pgproto3.AuthenticationOk{})
	client.Send(&pgproto3.BackendKeyData{ProcessID: 4711, SecretKey: []byte{1, 2, 3, 4}})
	client.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	if client.Flush() != nil {
		return
	}
	if !transactionMode { // in which notifications arrive at any time
		go func() {
			for p.answer(client) == nil {
			}
		}()
	}
	for p.request(client, transactionMode) == nil {
	}
}

// request passes messages of a client on, up to the end of a transaction.
func (p *pool) request(client *pgproto3.Backend, transactionMode bool) error {
	message, err := client.Receive()
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		p.server.Send(message)
		switch message.(type) {
		case *pgproto3.Query, *pgproto3.Sync:
			if err := p.server.Flush(); err != nil || !transactionMode {
				return err
			}
			return p.answer(client)
		}
		if message, err = client.Receive(); err != nil {
			return err
		}
	}
}

// answer passes messages of the server on, up to the end of a transaction.
func (p *pool) answer(client *pgproto3.Backend) error {
	for {
		message, err := p.server.Receive()
		if err != nil {
			return err
		}
		client.Send(message)
		_, ready := message.(*pgproto3.ReadyForQuery)
		_, notification := message.(*pgproto3.NotificationResponse)
		if ready || notification {
			if err := client.Flush(); err != nil || ready {
				return err
			}
		}
	}
}

// removal waits for the end of its input, then stops the server in $1, if it runs, and deletes the directory. It ignores the
// signals that a terminal sends to the tests, because it has to outlive them. The other arguments are the command that runs pg_ctl.
const removal = `
	trap '' INT TERM HUP QUIT
	cat >/dev/null
	dir=$1
	shift
	if [ -e "$dir/data/postmaster.pid" ]; then "$@" -D "$dir/data" -m immediate -w stop; fi
	rm -rf "$dir"`

// watch starts a process that removes the server as soon as the pipe to it is closed: by Close, or by the end of this
// process.
func (p *Instance) watch() error {
	bin, err := programs()
	if err != nil {
		return err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close()
	line := append(append([]string{"-c", removal, "sh", p.dir}, slices.Clone(p.as)...), filepath.Join(bin, "pg_ctl"))
	p.remover = exec.Command("sh", line...)
	p.remover.Dir = os.TempDir()
	p.remover.Stdin = read
	if err := p.remover.Start(); err != nil {
		write.Close()
		return err
	}
	p.alive = write
	return nil
}

// Close stops the server, deletes its directory and returns when both are done.
func (p *Instance) Close() error {
	if err := p.alive.Close(); err != nil {
		return err
	}
	return p.remover.Wait()
}
