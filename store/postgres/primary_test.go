package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"kontor/store/datadir"
	"kontor/store/engine"
	"kontor/store/postgres"
	"kontor/store/postgres/postgrestest"
	"kontor/store/testenv"
)

// pair starts a server and a standby of it, and returns a URL that names both.
func pair(t *testing.T, s map[string]string) (first, second *postgrestest.Instance, both string) {
	t.Helper()
	settings := map[string]string{}
	for _, all := range []map[string]string{postgrestest.Replicated, s} {
		for name, value := range all {
			settings[name] = value
		}
	}
	first = postgrestest.Server(t, postgrestest.Options{Settings: settings})
	second = first.Standby(t)
	u, err := url.Parse(first.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	u.Host += "," + second.Addr()
	u.RawQuery += "&target_session_attrs=read-write"
	return first, second, u.String()
}

// received waits until a standby has everything.
func received(t *testing.T, first, second *postgrestest.Instance) {
	t.Helper()
	end := outside(t, first.URL("postgres"), `SELECT pg_current_wal_lsn()`)
	until(t, second.URL("postgres"), `SELECT pg_last_wal_replay_lsn() >= '`+end+`'`, "t")
}

func primaryOf(e engine.Engine) error { return e.(engine.Server).CheckPrimary(context.Background()) }

// A standby that has received everything is promoted. The node continues there. Then the former primary returns, and the promoted
// server stops: the node refuses to use the former primary, also after a restart, until an operator accepts it.
func TestEngine_RefusesAFormerPrimary(t *testing.T) {
	first, second, both := pair(t, nil)
	c := config(t, both)
	c.Memory = datadir.Keep(filepath.Join(t.TempDir(), "state"), "primary.json")
	e := open(t, c)
	none(t, "write", write(e, "a"))
	received(t, first, second)
	first.Crash(t)
	second.Promote(t)
	testenv.Wait(t, "a write on the promoted server", func() bool { return write(e, "b") == nil })
	if n := count(t, e, "a"); n != 1 {
		t.Errorf("%d rows of before", n)
	}
	none(t, "the promoted server", primaryOf(e))

	first.StartAgain(t) // while both accept writes, and the former primary is the first host of the URL
	outside(t, second.URL("postgres"), terminateOthers)
	testenv.Wait(t, "a write beside the former primary", func() bool { return write(e, "c") == nil })
	if n := outside(t, first.URL("postgres"), `SELECT COUNT(*) FROM items WHERE name <> 'a'`); n != "0" {
		t.Errorf("the former primary got %s writes", n)
	}
	if n := count(t, e, "c"); n != 1 {
		t.Error("a read was answered by the former primary")
	}

	second.Stop(t)
	is(t, "write with the former primary alone", write(e, "d"), engine.ErrBusy)
	is(t, "read with the former primary alone", one(e, `SELECT COUNT(*) FROM items`, nil, new(int)), engine.ErrBusy)
	is(t, "ready", e.Ready(t.Context()), engine.ErrBusy)
	is(t, "the former primary", primaryOf(e), engine.ErrLoss)
	none(t, "close", e.Close())

	_, _, err := postgres.Open(t.Context(), c)
	is(t, "start", err, engine.ErrLoss)
	if err == nil || !strings.Contains(err.Error(), "former primary") || !strings.Contains(err.Error(), "--accept-loss") || strings.Contains(err.Error(), "\n") {
		t.Errorf("the start says %v", err)
	}
	if n := outside(t, first.URL("postgres"), `SELECT COUNT(*) FROM items WHERE name <> 'a'`); n != "0" {
		t.Errorf("the former primary got %s writes", n)
	}

	second.StartAgain(t)
	again := open(t, c)
	if n := count(t, again, "c"); n != 1 {
		t.Error("the start used the former primary, although the present one runs")
	}
	none(t, "close", again.Close())
	second.Stop(t)

	other := config(t, both) // another node, which has seen the promoted server, too
	other.Memory = datadir.Keep(t.TempDir(), "primary.json")
	seen, err := c.Memory.Read()
	none(t, "copy the memory", errors.Join(err, other.Memory.Write(seen)))
	c.AcceptLoss = true
	accepting, report, err := postgres.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { accepting.Close() })
	if report.Loss == nil {
		t.Error("the accepted loss is not reported")
	}
	none(t, "write after the loss was accepted", write(accepting, "e"))
	none(t, "write of a node that has learned of it", write(open(t, other), "f"))

	none(t, "close", accepting.Close())
	second.StartAgain(t)
	first.Stop(t)
	_, _, err = postgres.Open(t.Context(), other)
	is(t, "start on the server that was given up", err, engine.ErrLoss)
}

// A standby that had not received the last commits is promoted. A node that has seen these commits refuses it, and a node that has not
// uses it.
func TestEngine_RefusesAPrimaryThatLags(t *testing.T) {
	first, second, both := pair(t, nil)
	c := config(t, both)
	e, behind := open(t, c), config(t, both)
	behind.Memory = datadir.Keep(t.TempDir(), "primary.json")
	none(t, "write", write(e, "a"))
	old := open(t, behind)
	none(t, "write", write(old, "b"))
	none(t, "close", old.Close())
	received(t, first, second)
	second.Stop(t)
	for _, item := range []string{"c", "d"} {
		none(t, "write", write(e, item))
	}
	first.Crash(t)
	second.StartAgain(t)
	second.Promote(t)
	testenv.Wait(t, "the standby to be refused", func() bool { return errors.Is(write(e, "e"), engine.ErrBusy) && primaryOf(e) != nil })
	if err := primaryOf(e); !strings.Contains(err.Error(), "2 commits are missing") {
		t.Errorf("refused with: %v", err)
	}
	late := open(t, behind)
	none(t, "write of a node that has seen nothing more", write(late, "f"))
	for i := range 5 { // the number of commits does not matter, but where the histories part
		none(t, "write", write(late, fmt.Sprint("more", i)))
	}
	is(t, "write of the node that has seen more", write(e, "g"), engine.ErrBusy)
	is(t, "its primary", primaryOf(e), engine.ErrLoss)
	second.Stop(t)
	first.StartAgain(t)
	testenv.Wait(t, "the server with all commits", func() bool { return write(e, "h") == nil })
	none(t, "its primary", primaryOf(e))
	if n := count(t, e, "d"); n != 1 {
		t.Errorf("%d rows", n)
	}
	is(t, "write of the other node", write(late, "i"), engine.ErrBusy)
}
