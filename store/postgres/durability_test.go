package postgres_test

import (
	"fmt"
	"net"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"kontor/store/engine"
	"kontor/store/postgres"
	"kontor/store/postgres/postgrestest"
	"kontor/store/testenv"
)

// load writes items by several callers until it is checked.
type load struct {
	stop         chan struct{}
	running      sync.WaitGroup
	mu           sync.Mutex
	acknowledged []string
}

func startLoad(t *testing.T, e engine.Engine) *load {
	l := &load{stop: make(chan struct{})}
	for i := range 8 {
		l.running.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-l.stop:
					return
				default:
				}
				item := fmt.Sprint(i, "-", n)
				err := write(e, item)
				if err == nil {
					l.mu.Lock()
					l.acknowledged = append(l.acknowledged, item)
					l.mu.Unlock()
				} else if !engine.Temporary(err) {
					t.Errorf("%s: %v", item, err)
				}
			}
		})
	}
	return l
}

// progress waits for further acknowledged writes.
func (l *load) progress(t *testing.T, e engine.Engine, further uint64) {
	t.Helper()
	before := e.Stats().Writes
	testenv.Wait(t, "further writes", func() bool { return e.Stats().Writes >= before+further || primaryOf(e) != nil })
	if err := primaryOf(e); err != nil {
		t.Fatal(err)
	}
}

// check ends the load. Every acknowledged item must be in the database.
func (l *load) check(t *testing.T, e engine.Engine) {
	t.Helper()
	close(l.stop)
	l.running.Wait()
	testenv.Wait(t, "the database to be ready", func() bool { return e.Ready(t.Context()) == nil })
	missing := 0
	for _, item := range l.acknowledged {
		if count(t, e, item) != 1 {
			missing++
		}
	}
	if missing > 0 {
		t.Errorf("%d of %d acknowledged writes are missing", missing, len(l.acknowledged))
	}
}

// The configuration of the server, of the database and of the role changes under load, so that commits would not wait for the disk.
// The sessions of the engine keep waiting: a crash loses nothing that was acknowledged.
func TestWrite_LosesNothingWhenCommitsNeedNotWaitAnyMore(t *testing.T) {
	server := postgrestest.Server(t, postgrestest.Options{Durable: true, Settings: map[string]string{"wal_writer_delay": "10s"}})
	url := server.URL("postgres")
	e := open(t, config(t, url))
	l := startLoad(t, e)
	l.progress(t, e, 50)
	for range 2 {
		outside(t, url, `ALTER ROLE kontor SET synchronous_commit = off`)
		outside(t, url, `ALTER DATABASE postgres SET synchronous_commit = off`)
		outside(t, url, `ALTER SYSTEM SET synchronous_commit = off`)
		outside(t, url, `SELECT pg_reload_conf()`)
		until(t, url, `SHOW synchronous_commit`, "off")
		l.progress(t, e, 300)
		server.Crash(t)
		server.StartAgain(t)
		l.progress(t, e, 50)
	}
	l.check(t, e)
}

// The session of the writer waits for at least its own disk, and keeps what is stricter.
func TestWrite_KeepsAStricterCommit(t *testing.T) {
	url := postgrestest.URL(t)
	for configured, want := range map[string]string{
		"off": "on", "local": "on", "remote_write": "on", "on": "on", "remote_apply": "remote_apply",
	} {
		outside(t, url, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = `+configured+`', current_database()); END $$`)
		e, _, err := postgres.Open(t.Context(), config(t, url))
		if err != nil {
			t.Fatal(err)
		}
		var got string
		none(t, "write", e.Write(t.Context(), func(tx engine.Tx) error {
			return one(tx, `SELECT current_setting('synchronous_commit')`, nil, &got)
		}))
		if got != want {
			t.Errorf("%s: commits wait for %s, want %s", configured, got, want)
		}
		none(t, "close", e.Close())
	}
}

// A server whose configuration does not protect from a loss of power is reported, and used.
func TestEngine_ReportsAServerThatMayLoseWrites(t *testing.T) {
	for setting, problem := range map[string]bool{"": false, "fsync": true, "full_page_writes": true} {
		o := postgrestest.Options{Durable: true, Settings: map[string]string{}}
		if setting != "" {
			o.Settings[setting] = "off"
		}
		e := open(t, config(t, postgrestest.Server(t, o).URL("postgres")))
		err := e.(engine.Server).CheckDurability(t.Context())
		if (err != nil) != problem {
			t.Errorf("%q off: %v", setting, err)
		}
		none(t, "write", write(e, "a"))
	}
}

// The role that docs/cluster/create-role.sh creates is sufficient for everything, and no superuser. A superuser is reported, and used.
func TestEngine_ReportsASuperuser(t *testing.T) {
	server := postgrestest.Server(t, postgrestest.Options{})
	// As in the container, "postgres" is the superuser. The tests' own has the name of the role that is created.
	outside(t, server.URL("postgres"), "CREATE ROLE postgres SUPERUSER LOGIN")
	asPostgres := func(database string) string {
		return strings.Replace(server.URL(database), "//"+postgrestest.User+"@", "//postgres@", 1)
	}
	outside(t, asPostgres("postgres"), "ALTER ROLE "+postgrestest.User+" RENAME TO former")
	host, port, err := net.SplitHostPort(server.Addr())
	none(t, "address", err)
	create := osexec.CommandContext(t.Context(), "bash", testenv.Path("docs/cluster/create-role.sh"))
	create.Env = append(os.Environ(), "PATH="+filepath.Dir(postgrestest.Program(t, "psql"))+string(os.PathListSeparator)+os.Getenv("PATH"), "POSTGRES_USER=postgres",
		"KONTOR_PASSWORD=it's a \\ password", "PGHOST="+host, "PGPORT="+port)
	if output, err := create.CombinedOutput(); err != nil {
		t.Fatalf("create-role.sh: %v: %s", err, output)
	}
	for _, c := range []struct {
		address string
		isSuper bool
	}{{server.URL("kontor"), false}, {asPostgres("kontor"), true}} {
		e := open(t, config(t, c.address))
		if err := e.(engine.Server).CheckRole(t.Context()); (err != nil) != c.isSuper {
			t.Errorf("%s: %v", c.address, err)
		}
		none(t, "write", write(e, c.address))
	}
}
