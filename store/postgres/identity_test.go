package postgres_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"kontor/store/datadir"
	"kontor/store/engine"
	"kontor/store/postgres"
	"kontor/store/postgres/postgrestest"
	"kontor/store/testenv"
)

// whoAmI is a part of the question by which a node finds out which server it has reached.
const whoAmI = "pg_control_system"

const backendOf = `FROM pg_stat_get_activity(NULL) WHERE client_port = %d`

// terminate ends the session at the server, as an administrator or a failover does, while it is about to ask.
func terminate(t *testing.T, url string) func(port int) {
	return func(port int) {
		outside(t, url, "SELECT pg_terminate_backend(pid) "+fmt.Sprintf(backendOf, port))
		until(t, url, "SELECT COUNT(*) "+fmt.Sprintf(backendOf, port), "0")
	}
}

// cancel has the question wait for a lock, and then cancels it, as a timeout of statements does.
func cancel(t *testing.T, url string) func(port int) {
	return func(port int) {
		ctx := context.Background()
		blocker, err := pgconn.Connect(ctx, url)
		if err != nil {
			t.Error(err)
			return
		}
		run := func(sql string) string {
			results, err := blocker.Exec(ctx, sql).ReadAll()
			if err != nil {
				t.Error(err)
				return ""
			}
			if rows := results[len(results)-1].Rows; len(rows) > 0 {
				return string(rows[0][0])
			}
			return ""
		}
		run("BEGIN; LOCK TABLE pg_database IN ACCESS EXCLUSIVE MODE")
		go func() {
			defer blocker.Close(ctx)
			testenv.Wait(t, "the question to wait", func() bool {
				return run("SELECT COUNT(pg_cancel_backend(pid)) "+fmt.Sprintf(backendOf, port)+" AND wait_event_type = 'Lock'") == "1"
			})
			run("ROLLBACK")
		}()
	}
}

// interrupted has an interruption meet a node that asks, on a new connection through a proxy, who the server is. When it returns, the
// node writes on further connections.
func interrupted(t *testing.T, e engine.Engine, proxy *postgrestest.Proxy, interrupt func(port int)) {
	t.Helper()
	met := make(chan struct{})
	proxy.Before(whoAmI, func(port int) {
		interrupt(port)
		close(met)
	})
	for _, when := range []string{"after the sessions were ended", "on further connections"} {
		proxy.Cut()
		testenv.Wait(t, "a write "+when, func() bool { return write(e, rand.Text()) == nil })
		<-met
	}
}

var interruptions = map[string]func(*testing.T, string) func(int){"terminated (57P01)": terminate, "cancelled (57014)": cancel}

// An error while a node asks who the server is says nothing about the server: the node asks again, and other nodes go on.
func TestEngine_AsksAgainWhoTheServerIs(t *testing.T) {
	for name, interrupt := range interruptions {
		t.Run(name, func(t *testing.T) {
			server := postgrestest.Server(t, postgrestest.Options{})
			url := server.URL("postgres")
			proxy := postgrestest.NewProxy(t, server.Addr())
			c := config(t, url)
			c.Memory = datadir.Keep(t.TempDir(), "primary.json")
			healthy := open(t, c)
			interrupted(t, open(t, config(t, proxy.Through(url))), proxy, interrupt(t, url))
			if n := outside(t, url, `SELECT COUNT(*) FROM kontor_primaries`); n != "1" {
				t.Errorf("one server has %s rows", n)
			}
			for i := range 3 {
				none(t, "write of the healthy node", write(healthy, fmt.Sprint("healthy", i)))
			}
			outside(t, url, terminateOthers)
			testenv.Wait(t, "the healthy node to write", func() bool { return write(healthy, "again") == nil })
			none(t, "its primary", primaryOf(healthy))
			none(t, "close", healthy.Close())
			none(t, "a write after a restart", write(open(t, c), "restarted"))
		})
	}
}

// A standby is promoted that lacks ten commits. A node that has not seen them uses it, and writes more than ten. A node that has seen them
// must notice, although errors have met the questions of both who the former server was.
func TestEngine_NoticesACopyThatLagsAfterAnInterruption(t *testing.T) {
	for name, interrupt := range interruptions {
		t.Run(name, func(t *testing.T) {
			first, second, both := pair(t, nil)
			url := first.URL("postgres")
			var nodes [2]engine.Engine
			var proxies [2]*postgrestest.Proxy
			for i := range nodes {
				proxies[i] = postgrestest.NewProxy(t, first.Addr())
				nodes[i] = open(t, config(t, strings.Replace(both, first.Addr(), hostOf(proxies[i], url), 1)))
			}
			for i := range nodes {
				interrupted(t, nodes[i], proxies[i], interrupt(t, url))
			}
			behind, ahead := nodes[0], nodes[1]
			received(t, first, second)
			second.Stop(t)
			for i := range 10 {
				none(t, "write that the standby lacks", write(ahead, fmt.Sprint("lost", i)))
			}
			first.Crash(t)
			second.StartAgain(t)
			second.Promote(t)
			testenv.Wait(t, "the other node to write on the promoted server", func() bool { return write(behind, "promoted") == nil })
			for i := range 20 {
				none(t, "write of the other node", write(behind, fmt.Sprint("more", i)))
			}
			testenv.Wait(t, "the node to refuse the promoted server", func() bool { return primaryOf(ahead) != nil })
			is(t, "its primary", primaryOf(ahead), engine.ErrLoss)
			is(t, "a write", write(ahead, "x"), engine.ErrBusy)
			if err := primaryOf(ahead); !strings.Contains(err.Error(), "10 commits are missing") {
				t.Errorf("refused with: %v", err)
			}
		})
	}
}

// hostOf returns the address of a proxy as in a URL.
func hostOf(p *postgrestest.Proxy, url string) string {
	config, err := pgconn.ParseConfig(p.Through(url))
	if err != nil {
		panic(err) // an error in the test
	}
	return address(config)
}

// Rows without a name, which former versions have written for a healthy server, are no other primary. The next connection gives them
// its name.
func TestEngine_RepairsRowsWithoutAName(t *testing.T) {
	const unnamed = `
		INSERT INTO kontor_primaries (n, id, server, since, accepted)
		SELECT MAX(n) + 1, 'unnamed' || MAX(n), '', (SELECT number FROM kontor_versions WHERE name = ''), FALSE FROM kontor_primaries`
	url := postgrestest.URL(t)
	c := config(t, url)
	c.Memory = datadir.Keep(filepath.Join(t.TempDir(), "state"), "primary.json")
	e := open(t, c)
	none(t, "write", write(e, "a"))
	for round := range 2 {
		outside(t, url, unnamed)
		outside(t, url, `INSERT INTO kontor_primaries (n, id, server, since, accepted)
			SELECT MAX(n) + 1, 'again' || MAX(n), (SELECT server FROM kontor_primaries WHERE n = 1), MAX(since), FALSE FROM kontor_primaries`)
		outside(t, url, unnamed)
		for i := range 3 {
			none(t, "write beside the rows", write(e, fmt.Sprint("beside", round, i)))
		}
		if round == 0 {
			outside(t, url, terminateOthers)
			testenv.Wait(t, "a write on a new connection", func() bool { return write(e, "new") == nil })
		} else {
			none(t, "close", e.Close())
			e = open(t, c)
			none(t, "write after a restart", write(e, "restarted"))
		}
		none(t, "the primary", primaryOf(e))
		if n := outside(t, url, `SELECT COUNT(*) FROM kontor_primaries WHERE server <> (SELECT server FROM kontor_primaries WHERE n = 1)`); n != "0" {
			t.Errorf("%s rows name another server, or none", n)
		}
	}
	none(t, "close", e.Close())
	outside(t, url, `UPDATE kontor_versions SET number = number - 1 WHERE name = ''`)
	_, _, err := postgres.Open(t.Context(), c)
	is(t, "start with a commit less", err, engine.ErrLoss)
}

// A role that may not ask who the server is uses it nevertheless, and adds no row for a server that others have named.
func TestEngine_WithoutTheRightToAskComparesCommits(t *testing.T) {
	server := postgrestest.Server(t, postgrestest.Options{})
	url := server.URL("postgres")
	outside(t, url, `CREATE ROLE plain LOGIN; GRANT plain TO kontor; ALTER DATABASE postgres OWNER TO plain; ALTER SCHEMA public OWNER TO plain`)
	plainURL := strings.Replace(url, "//"+postgrestest.User+"@", "//plain@", 1)
	const revoke, grant = `REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC`, `GRANT EXECUTE ON FUNCTION pg_control_system() TO PUBLIC`
	outside(t, url, revoke)
	c := config(t, plainURL)
	e := open(t, c)
	names := func() string {
		return outside(t, url, `SELECT string_agg(left(server, 4), ',' ORDER BY n) FROM kontor_primaries`)
	}
	if got := names(); got != "" {
		t.Errorf("rows %q", got)
	}
	outside(t, url, grant)
	named := open(t, c)
	none(t, "write", write(named, "named"))
	if got := names(); len(got) != 4 {
		t.Errorf("rows %q, want the one that was there, with a name", got)
	}
	outside(t, url, revoke)
	outside(t, url, terminateOthers)
	for _, node := range []engine.Engine{e, named} {
		testenv.Wait(t, "a write", func() bool { return write(node, "plain"+rand.Text()) == nil })
		none(t, "the primary", primaryOf(node))
	}
	if got := names(); len(got) != 4 {
		t.Errorf("rows %q", got)
	}
}
