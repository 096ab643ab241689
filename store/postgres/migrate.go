package postgres

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"sort"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgproto3"

	"kontor/store/query"
)

// ownTables are the tables that only this engine needs.
//
// kontor_schema has a row for each version of the schema, with the oldest version whose program may still serve. That is the
// version of the program before, so that nodes of two versions serve during an upgrade.
//
// kontor_versions counts the commits to each table. Its row without a name counts all commits.
//
// kontor_marks has the number of the last commit of each node.
//
// kontor_primaries lists the servers that the database was on, see primary.go.
const ownTables = `
CREATE TABLE IF NOT EXISTS kontor_schema (
	version    BIGINT PRIMARY KEY,
	oldest     BIGINT NOT NULL,
	applied_at TIMESTAMPTZ NOT NULL DEFAULT now()
);
CREATE TABLE IF NOT EXISTS kontor_versions (
	name   TEXT COLLATE "C" PRIMARY KEY,
	number BIGINT NOT NULL
) WITH (fillfactor = 50);
INSERT INTO kontor_versions (name, number) VALUES ('', 0) ON CONFLICT DO NOTHING;
CREATE TABLE IF NOT EXISTS kontor_marks (
	node   TEXT COLLATE "C" PRIMARY KEY,
	number BIGINT NOT NULL,
	at     TIMESTAMPTZ NOT NULL
) WITH (fillfactor = 50);
DELETE FROM kontor_marks WHERE at < now() - INTERVAL '7 days';
` + createPrimaries

const (
	selectSchema = `SELECT version, oldest FROM kontor_schema ORDER BY version DESC LIMIT 1`
	insertSchema = `INSERT INTO kontor_schema (version, oldest) VALUES ($1, $2)`
)

func createOwnTables(m maintenance) error { return m.conn.script(ownTables) }

// script runs several statements in one round trip, with the simple protocol.
func (c *conn) script(sql string) error {
	if err := c.roundTrip(); err != nil {
		return err
	}
	out, err := (&pgproto3.Query{String: sql}).Encode(c.out)
	if err != nil {
		return err
	}
	c.out = out
	c.requests = append(c.requests, request{kind: askScript})
	c.synced = len(c.requests)
	c.busy.Store(true)
	if err := c.send(); err != nil {
		return err
	}
	return c.roundTrip()
}

// migration is a numbered file of statements.
type migration struct {
	version int64
	name    string
	sql     string
}

// readMigrations returns the migrations after a version, in their order.
func readMigrations(files fs.FS, after int64) (found []migration, err error) {
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		digits, _, _ := strings.Cut(path.Base(name), "_")
		version, err := strconv.ParseInt(digits, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("migration %s has no number", name)
		}
		if version <= after {
			continue
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		_, up, _ := strings.Cut(string(text), "-- +goose Up")
		up, _, _ = strings.Cut(up, "-- +goose Down")
		found = append(found, migration{version: version, name: name, sql: up})
	}
	sort.Slice(found, func(i, j int) bool { return found[i].version < found[j].version })
	return found, nil
}

// latestVersion returns the number of the newest migration.
func latestVersion(files fs.FS) (int64, error) {
	all, err := readMigrations(files, 0)
	if err != nil || len(all) == 0 {
		return 0, err
	}
	return all[len(all)-1].version, nil
}

// migrate applies the migrations after a version, in the transaction of the start.
func migrate(m maintenance, files fs.FS, from, to int64) error {
	missing, err := readMigrations(files, from)
	if err != nil {
		return err
	}
	for _, one := range missing {
		if err := m.conn.script(portable(one.sql)); err != nil {
			return fmt.Errorf("migrate the schema: %s: %w", one.name, err)
		}
	}
	oldest := from
	if from == 0 {
		oldest = to
	}
	_, err = query.Exec(context.Background(), m, insertSchema, []any{to, oldest})
	return err
}

// portable returns the statements of a migration as PostgreSQL needs them to behave like the other engine: texts are compared byte
// by byte, and integers have 64 bits. Migrations write the names of types in capitals.
func portable(sql string) string {
	var b strings.Builder
	before := ""
	for i := 0; i < len(sql); {
		n, skip := tokenLength(sql[i:])
		token := sql[i : i+n]
		i += n
		switch {
		case token == "TEXT" && before != "AS":
			b.WriteString(`TEXT COLLATE "C"`)
		case token == "INTEGER":
			b.WriteString("BIGINT")
		default:
			b.WriteString(token)
		}
		if !skip {
			before = token
		}
	}
	return b.String()
}
