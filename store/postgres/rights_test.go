package postgres_test

import (
	"crypto/rand"
	"errors"
	"strings"
	"testing"

	"kontor/store/datadir"
	"kontor/store/engine"
	"kontor/store/postgres"
	"kontor/store/postgres/postgrestest"
	"kontor/store/testenv"
)

// plainRole makes a role that owns the database "postgres" of a server, and is no superuser. It returns the role's URL.
func plainRole(t *testing.T, server *postgrestest.Instance) (role, admin string) {
	t.Helper()
	admin = server.URL("postgres")
	outside(t, admin, `CREATE ROLE plain LOGIN; ALTER DATABASE postgres OWNER TO plain; ALTER SCHEMA public OWNER TO plain`)
	return strings.Replace(admin, "//"+postgrestest.User+"@", "//plain@", 1), admin
}

// Missing rights of a role, and settings that prevent writes, are named: by a start, and by the readiness of a node that runs, although nothing
// has been written. It is neither a lost commit nor a server that cannot be reached. When the cause is gone, the node continues.
func TestEngine_NamesMissingRights(t *testing.T) {
	const reload = `; SELECT pg_reload_conf()`
	for name, c := range map[string]struct {
		do, undo string
		want     string
		stays    bool // existing sessions are affected, too
		starts   bool // a start needs none of it
	}{
		"a search_path without a schema": {do: `ALTER ROLE plain SET search_path = nowhere`, undo: `ALTER ROLE plain RESET search_path`, want: "search_path names no schema"},
		"a schema it may not use": {do: `ALTER SCHEMA public OWNER TO kontor; REVOKE ALL ON SCHEMA public FROM plain, PUBLIC`, undo: `ALTER SCHEMA public OWNER TO plain`,
			want: "search_path names no schema", stays: true},
		"a read-only role": {do: `ALTER ROLE plain SET default_transaction_read_only = on`, undo: `ALTER ROLE plain RESET default_transaction_read_only`,
			want: "default_transaction_read_only is on"},
		"a read-only server": {do: `ALTER SYSTEM SET default_transaction_read_only = on`, undo: `ALTER SYSTEM RESET default_transaction_read_only`,
			want: "default_transaction_read_only is on", stays: true},
		"a table it may not write": {do: `REVOKE INSERT ON items FROM plain`, undo: `GRANT INSERT ON items TO plain`,
			want: "may not read and write all of its tables: items", stays: true, starts: true},
		"an engine's table it may not read": {do: `REVOKE ALL ON kontor_versions FROM plain`, undo: `GRANT ALL ON kontor_versions TO plain`,
			want: "kontor_versions", stays: true},
	} {
		t.Run(name, func(t *testing.T) {
			url, admin := plainRole(t, postgrestest.Server(t, postgrestest.Options{}))
			cfg := config(t, url)
			cfg.Memory = datadir.Keep(t.TempDir(), "primary.json")
			e := open(t, cfg)
			none(t, "write", write(e, "a"))
			run := func(sql string) { // not in one transaction, in which ALTER SYSTEM does not run
				for one := range strings.SplitSeq(sql, ";") {
					outside(t, admin+"&default_transaction_read_only=off", one)
				}
			}
			run(c.do + reload)
			if !c.stays {
				outside(t, admin, terminateOthers)
			}
			var err error
			testenv.Wait(t, "the node to be unready", func() bool { err = e.Ready(t.Context()); return err != nil && strings.Contains(err.Error(), c.want) })
			if !errors.Is(err, engine.ErrReadOnly) || errors.Is(err, engine.ErrLoss) || strings.Contains(err.Error(), "cannot be reached: ") {
				t.Errorf("it says %v", err)
			}
			if err := write(e, "b"); !engine.Temporary(err) {
				t.Errorf("a write returned %v", err)
			}
			none(t, "the primary", primaryOf(e))
			if !c.starts {
				_, _, err := postgres.Open(t.Context(), cfg)
				if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "cannot be used: ") || strings.Contains(err.Error(), "\n") {
					t.Errorf("a start says %v", err)
				}
			}
			run(c.undo + reload)
			testenv.Wait(t, "the node to be ready", func() bool { return e.Ready(t.Context()) == nil && write(e, rand.Text()) == nil })
		})
	}
}

// A node whose schema has become two versions newer is unready, although it has not tried to write.
func TestEngine_IsUnreadyUnderANewerSchema(t *testing.T) {
	url := postgrestest.URL(t)
	first := open(t, config(t, url))
	const column, further = `ALTER TABLE items ADD COLUMN note TEXT NOT NULL DEFAULT '';`, `ALTER TABLE items ADD COLUMN further BIGINT NOT NULL DEFAULT 0;`
	none(t, "close", open(t, with(t, url, column)).Close())
	none(t, "ready beside the next version", first.Ready(t.Context()))
	none(t, "close", open(t, with(t, url, column, further)).Close())
	testenv.Wait(t, "the node to be unready", func() bool { return errors.Is(first.Ready(t.Context()), engine.ErrNewerSchema) })
}
