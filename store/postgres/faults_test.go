package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"kontor/store/engine"
	"kontor/store/postgres/postgrestest"
	"kontor/store/testenv"
)

func address(c *pgconn.Config) string { return net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port))) }

const terminateOthers = `SELECT COUNT(pg_terminate_backend(pid)) FROM pg_stat_activity
	WHERE datname = current_database() AND pid <> pg_backend_pid()`

// A job whose connection is cut runs again, once the writer is connected. Nothing of its first run remains.
func TestWrite_RunsAgainAfterItsConnectionWasCut(t *testing.T) {
	e, url := fresh(t)
	runs := 0
	none(t, "write", e.Write(t.Context(), func(tx engine.Tx) error {
		runs++
		if err := insert(tx, "a"); err != nil {
			return err
		}
		if runs == 1 {
			outside(t, url, terminateOthers)
		}
		return exec(t.Context(), tx, `UPDATE items SET amount = amount + 1`)
	}))
	var amount int
	none(t, "read", one(e, `SELECT SUM(amount) FROM items`, nil, &amount))
	if n := count(t, e, "a"); n != 1 || amount != 1 || runs < 2 {
		t.Errorf("%d rows with amount %d after %d runs, want 1 with 1 after 2 or more", n, amount, runs)
	}
	none(t, "ready", e.Ready(t.Context()))
}

// Connections that were cut while they were idle are replaced without an error.
func TestEngine_ReplacesIdleConnections(t *testing.T) {
	e, url := fresh(t)
	for range 3 {
		none(t, "write", write(e, fmt.Sprint(e.Stats().Writes)))
		if n := count(t, e, "0"); n != 1 {
			t.Errorf("%d rows", n)
		}
		none(t, "view", e.View(t.Context(), func(s engine.Source) error { count(t, s, "0"); return nil }))
		outside(t, url, terminateOthers)
	}
	none(t, "view", e.View(t.Context(), func(s engine.Source) error { count(t, s, "0"); return nil }))
}

// The answer to a commit is lost. The mark says that it happened, so Write succeeds and the job does not run
// again.
func TestWrite_FindsACommitWhoseAnswerWasLost(t *testing.T) {
	e, proxy, url := proxied(t)
	runs := 0
	result := make(chan error, 1)
	go func() {
		result <- e.Write(context.Background(), func(tx engine.Tx) error {
			runs++
			if err := exec(context.Background(), tx, `UPDATE items SET amount = 0`); err != nil {
				return err
			}
			proxy.HoldAnswers()
			return insert(tx, "a")
		})
	}()
	until(t, url, `SELECT COUNT(*) FROM items`, "1")
	proxy.Cut()
	proxy.Release()
	none(t, "write", <-result)
	if n := count(t, e, "a"); n != 1 || runs != 1 {
		t.Errorf("%d rows after %d runs, want 1 after 1", n, runs)
	}
	none(t, "a later write", write(e, "b"))
}

// A commit that never reached the server did not happen: the job runs again.
func TestWrite_RepeatsACommitThatDidNotArrive(t *testing.T) {
	e, proxy, url := proxied(t)
	runs := 0
	result, begun := make(chan error, 1), make(chan struct{})
	go func() {
		result <- e.Write(context.Background(), func(tx engine.Tx) error {
			runs++
			if err := exec(context.Background(), tx, `UPDATE items SET amount = 0`); err != nil {
				return err
			}
			if runs == 1 {
				proxy.Hold()
				close(begun)
			}
			return insert(tx, "a")
		})
	}()
	<-begun
	proxy.Cut()
	proxy.Release()
	none(t, "write", <-result)
	if n := outside(t, url, `SELECT COUNT(*) FROM items`); n != "1" || runs < 2 {
		t.Errorf("%s rows after %d runs, want 1 after 2 or more", n, runs)
	}
}

// Writes are acknowledged or fail while the server restarts or crashes. Every acknowledged one is there afterwards.
func TestWrite_LosesNothingWhenTheServerEnds(t *testing.T) {
	for name, end := range map[string]func(*postgrestest.Instance){
		"stop":  func(p *postgrestest.Instance) { p.Stop(t) },
		"crash": func(p *postgrestest.Instance) { p.Crash(t) },
	} {
		t.Run(name, func(t *testing.T) {
			server := postgrestest.Server(t, postgrestest.Options{Durable: true})
			e := open(t, config(t, server.URL("postgres")))
			l := startLoad(t, e)
			for range 2 {
				l.progress(t, e, 100)
				end(server)
				server.StartAgain(t)
			}
			l.check(t, e)
		})
	}
}

// Errors of the server have the kinds of the contract.
func TestWrite_DistinguishesFailuresOfTheServer(t *testing.T) {
	e, url := fresh(t)
	for code, want := range map[string]error{
		"53100": engine.ErrFull, "53200": engine.ErrFull, "25006": engine.ErrReadOnly, "XX001": engine.ErrCorrupt, "XX002": engine.ErrCorrupt,
		"58030": engine.ErrIO, "40001": engine.ErrBusy, "40P01": engine.ErrBusy, "55P03": engine.ErrBusy, "57014": engine.ErrBusy,
		"23505": engine.ErrDuplicate, "23503": engine.ErrMissingReference, "23514": engine.ErrConflict, "23502": engine.ErrConflict,
	} {
		outside(t, url, `
			CREATE OR REPLACE FUNCTION fails() RETURNS trigger LANGUAGE plpgsql AS $$
			BEGIN RAISE EXCEPTION 'of the test' USING ERRCODE = '`+code+`'; END $$;
			CREATE TRIGGER fails BEFORE INSERT OR UPDATE ON items EXECUTE FUNCTION fails();`)
		is(t, code+" of a statement that is sent late", write(e, "a"), want)
		is(t, code+" of a statement that is waited for", e.Write(t.Context(), func(tx engine.Tx) error {
			return exec(t.Context(), tx, `UPDATE items SET amount = 1`)
		}), want)
		outside(t, url, `DROP TRIGGER fails ON items`)
		none(t, "a later write", write(e, code))
	}
	none(t, "ready", e.Ready(t.Context()))
}

// A full disk makes the database unready until there is space again.
func TestReady_FailsWhileTheDiskIsFull(t *testing.T) {
	e, url := fresh(t)
	outside(t, url, `
		CREATE FUNCTION fails() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'full' USING ERRCODE = '53100'; END $$;
		CREATE TRIGGER fails BEFORE INSERT OR UPDATE ON items EXECUTE FUNCTION fails();
		CREATE TRIGGER fails BEFORE INSERT OR UPDATE ON meta EXECUTE FUNCTION fails();`)
	none(t, "ready before", e.Ready(t.Context()))
	is(t, "write", write(e, "a"), engine.ErrFull)
	is(t, "ready", e.Ready(t.Context()), engine.ErrFull)
	outside(t, url, `DROP TRIGGER fails ON items; DROP TRIGGER fails ON meta`)
	none(t, "ready with space", e.Ready(t.Context()))
	none(t, "write with space", write(e, "a"))
}

// A statement that the server ends is a busy database, not the end of the caller's context.
func TestQuery_IsBusyWhenTheServerEndsIt(t *testing.T) {
	e, url := fresh(t)
	result := make(chan error, 1)
	go func() {
		result <- one(e, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n`, nil, new(int))
	}()
	var err error
	testenv.Wait(t, "the end of the statement", func() bool {
		outside(t, url, `SELECT COUNT(pg_cancel_backend(pid)) FROM pg_stat_activity
			WHERE datname = current_database() AND state = 'active' AND query LIKE 'WITH RECURSIVE%'`)
		select {
		case err = <-result:
			return true
		default:
			return false
		}
	})
	if !errors.Is(err, engine.ErrBusy) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want ErrBusy", err)
	}
	if n := count(t, e, "a"); n != 0 {
		t.Errorf("%d rows", n)
	}
}

// A node that stops within a job keeps the lock of all writers for two seconds. Then another node writes, and the job of
// the first runs again.
func TestWrite_OfOthersGoesOnWhenANodeStops(t *testing.T) {
	first, url := fresh(t)
	second := open(t, config(t, url))
	runs := 0
	stopped, other, result := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		result <- first.Write(context.Background(), func(tx engine.Tx) error {
			if runs++; runs == 1 {
				close(stopped)
				<-other
			}
			return insert(tx, "first")
		})
	}()
	<-stopped
	none(t, "write of the other node", write(second, "second"))
	close(other)
	none(t, "write of the node that had stopped", <-result)
	if n := count(t, second, "first"); n != 1 || runs < 2 {
		t.Errorf("%d rows after %d runs, want 1 after 2 or more", n, runs)
	}
}

// While the server cannot be reached, every call fails soon as a busy database, nothing panics, and closing does not wait.
func TestEngine_IsBusyWhileTheServerIsAway(t *testing.T) {
	server := postgrestest.Server(t, postgrestest.Options{})
	e := open(t, config(t, server.URL("postgres")))
	count(t, e, "a")
	server.Stop(t)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			is(t, "write", write(e, "a"), engine.ErrBusy)
			is(t, "read", one(e, `SELECT COUNT(*) FROM items`, nil, new(int)), engine.ErrBusy)
			is(t, "view", e.View(t.Context(), func(s engine.Source) error { return one(s, `SELECT COUNT(*) FROM items`, nil, new(int)) }), engine.ErrBusy)
			_, err := e.Version(t.Context(), "items")
			is(t, "version", err, engine.ErrBusy)
			is(t, "ready", e.Ready(t.Context()), engine.ErrBusy)
		})
	}
	wg.Wait()
	server.StartAgain(t)
	testenv.Wait(t, "the database to be ready", func() bool { return e.Ready(t.Context()) == nil })
	none(t, "write", write(e, "a"))
	server.Stop(t)
	none(t, "close", e.Close())
	server.StartAgain(t) // for the end of the test
}
