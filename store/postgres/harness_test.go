package postgres_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"log/slog"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5/pgconn"

	"kontor/store/clock"
	"kontor/store/engine"
	"kontor/store/postgres"
	"kontor/store/postgres/postgrestest"
	"kontor/store/query"
	"kontor/store/testenv"
)

// schema is that of the tests of this package.
const schema = `-- +goose Up
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE items (
	name TEXT PRIMARY KEY,
	amount INTEGER NOT NULL DEFAULT 0 CHECK (amount >= 0),
	data BYTEA
);
CREATE TABLE entries (seq BIGINT PRIMARY KEY, text TEXT NOT NULL);
-- +goose Down
DROP TABLE entries;
`

// guard accepts every database, and has a trail without entries.
type guard struct{ known bool }

func (guard) Keyed(purpose string, data []byte) []byte {
	mac := hmac.New(sha256.New, []byte(purpose))
	mac.Write(data)
	return mac.Sum(nil)
}
func (guard) FormerKeyed(string, []byte) []byte                        { return nil }
func (g guard) Recognise(context.Context, engine.Source) (bool, error) { return g.known, nil }
func (guard) Settle(context.Context, engine.Maintenance) error         { return nil }
func (guard) Tampered(cause error) error                               { return cause }
func (guard) VerifyAll(context.Context, engine.Source) error           { return nil }
func (guard) Anchor(context.Context, engine.Source) (a engine.Anchor, at clock.Time, err error) {
	return a, at, nil
}
func (guard) CheckAnchor(context.Context, engine.Source, engine.Anchor) error { return nil }
func (guard) Save()                                                           {}
func (guard) Restore()                                                        {}
func (guard) Forget()                                                         {}
func (guard) Seal(engine.Source) error                                        { return nil }
func (guard) End() (a engine.Anchor, known bool)                              { return a, false }
func (guard) EndStatement() string                                            { return `SELECT MAX(seq) FROM entries` }

// config returns the configuration of a database at a URL.
func config(t testing.TB, url string) engine.Config {
	return engine.Config{
		URL: url, Clock: clock.System{}, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Migrations: fstest.MapFS{"0001_tables.sql": {Data: []byte(schema)}},
		AppendOnly: []string{"entries"},
		Guard:      func(bool) (engine.Guard, error) { return guard{known: true}, nil },
	}
}

// open opens a database, which is closed at the end of the test.
func open(t testing.TB, c engine.Config) engine.Engine {
	t.Helper()
	e, _, err := postgres.Open(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// fresh opens a new database and returns its URL too.
func fresh(t testing.TB) (engine.Engine, string) {
	t.Helper()
	url := postgrestest.URL(t)
	return open(t, config(t, url)), url
}

// proxied opens a new database through a proxy.
func proxied(t testing.TB) (engine.Engine, *postgrestest.Proxy, string) {
	t.Helper()
	url := postgrestest.URL(t)
	parsed, err := pgconn.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	proxy := postgrestest.NewProxy(t, address(parsed))
	return open(t, config(t, proxy.Through(url))), proxy, url
}

func exec(ctx context.Context, s engine.Source, sql string, args ...any) error {
	_, err := query.Exec(ctx, s, sql, args)
	return err
}

const insertItem = `INSERT INTO items (name) VALUES ($1)`

func insert(tx engine.Tx, name string) error { return exec(context.Background(), tx, insertItem, name) }

// write inserts an item.
func write(e engine.Engine, name string) error {
	return e.Write(context.Background(), func(tx engine.Tx) error { return insert(tx, name) })
}

// count returns how many items have a name.
func count(t testing.TB, s engine.Source, name string) (n int) {
	t.Helper()
	if err := query.NewRow(t.Context(), s, `SELECT COUNT(*) FROM items WHERE name = $1`, []any{name}).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// outside runs statements on a connection of its own.
func outside(t testing.TB, url, sql string) string {
	t.Helper()
	c, err := pgconn.Connect(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	results, err := c.Exec(context.Background(), sql).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	if last := results[len(results)-1]; len(last.Rows) > 0 {
		return string(last.Rows[0][0])
	}
	return ""
}

// until waits for a condition on the server.
func until(t testing.TB, url, sql, want string) {
	t.Helper()
	testenv.Wait(t, sql+" to return "+want, func() bool { return outside(t, url, sql) == want })
}

func is(t testing.TB, what string, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("%s: got %v, want %v", what, err, kind)
	}
}

func none(t testing.TB, what string, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
}
