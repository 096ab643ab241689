package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgproto3"

	"kontor/store/clock"
	"kontor/store/engine"
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
		version, err := engine.MigrationNumber(name)
		if err != nil {
			return nil, err
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
	slices.SortFunc(found, func(a, b migration) int { return cmp.Compare(a.version, b.version) })
	return found, nil
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
		n, skip := engine.TokenLength(sql[i:])
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

// rejectChange is the body of the function that the triggers of append-only tables call. The message calls the rows after the
// table.
const rejectChange = `BEGIN RAISE EXCEPTION '% are append-only', replace(TG_TABLE_NAME, '_', ' ') USING ERRCODE = 'check_violation'; END`

const createRejectFunction = `CREATE OR REPLACE FUNCTION kontor_append_only() RETURNS trigger LANGUAGE plpgsql AS $kontor$` + rejectChange + `$kontor$`

// appendOnlyEvents are the bits of a trigger that runs before UPDATE, DELETE and TRUNCATE, once for each statement.
const appendOnlyEvents = 2 | 8 | 16 | 32

const selectTrigger = `
	SELECT COUNT(*) FROM pg_trigger t
	JOIN pg_class c ON c.oid = t.tgrelid
	JOIN pg_namespace n ON n.oid = c.relnamespace
	JOIN pg_proc p ON p.oid = t.tgfoid
	WHERE n.nspname = current_schema() AND c.relname = $1 AND t.tgname = $2
		AND t.tgenabled = 'A' AND t.tgtype = $3 AND t.tgqual IS NULL AND p.prosrc = $4`

// triggerOf returns the name of the trigger that protects a table.
func triggerOf(table string) string { return table + "_append_only" }

// createTrigger returns the statements that create the trigger of a table, also for sessions that replicate.
func createTrigger(table string) string {
	return strings.NewReplacer("TABLE_NAME", table, "TRIGGER_NAME", triggerOf(table)).Replace(`
		DROP TRIGGER IF EXISTS TRIGGER_NAME ON TABLE_NAME;
		CREATE TRIGGER TRIGGER_NAME BEFORE UPDATE OR DELETE OR TRUNCATE ON TABLE_NAME
			FOR EACH STATEMENT EXECUTE FUNCTION kontor_append_only();
		ALTER TABLE TABLE_NAME ENABLE ALWAYS TRIGGER TRIGGER_NAME;`)
}

// missingTriggers returns the tables whose trigger is missing, disabled or another one.
func missingTriggers(ctx context.Context, s engine.Source, tables []string) (missing []string, err error) {
	for _, table := range tables {
		var found int64
		err := query.NewRow(ctx, s, selectTrigger, []any{table, triggerOf(table), appendOnlyEvents, rejectChange}).Scan(&found)
		if err != nil && !errors.Is(err, engine.ErrNotFound) {
			return nil, err
		}
		if found == 0 {
			missing = append(missing, table)
		}
	}
	return missing, nil
}

// restoreTriggers creates missing triggers and returns their names.
func restoreTriggers(ctx context.Context, m maintenance, tables []string) (names []string, err error) {
	missing, err := missingTriggers(ctx, m, tables)
	if err != nil || len(missing) == 0 {
		return nil, err
	}
	if err := m.conn.script(createRejectFunction); err != nil {
		return nil, err
	}
	for _, table := range missing {
		if err := m.conn.script(createTrigger(table)); err != nil {
			return nil, err
		}
	}
	return triggerNames(missing), nil
}

func triggerNames(tables []string) (names []string) {
	for _, table := range tables {
		names = append(names, triggerOf(table))
	}
	return names
}

// Unprotected returns the names of the triggers of append-only tables that are missing, disabled or were replaced. Without them a
// statement can change or delete rows.
func (e *Engine) Unprotected(ctx context.Context, s engine.Source) ([]string, error) {
	missing, err := missingTriggers(ctx, s, e.config.AppendOnly)
	return triggerNames(missing), err
}

// wordsIndex is the full-text index of engine.TextIndex: an inverted index over the words of a row. The server keeps it current.
const wordsIndex = "kontor_words"

// wordsOf returns the expression of the words of a row. The texts are words already, so that no text search configuration is used.
func wordsOf(x *engine.TextIndex) string {
	return "array_to_tsvector(string_to_array(btrim(replace(" + strings.Join(x.Columns, " || ") + ", '  ', ' ')), ' '))"
}

// restoreWords creates a missing full-text index.
func restoreWords(m maintenance, x *engine.TextIndex) error {
	if x == nil {
		return nil
	}
	return m.conn.script("CREATE INDEX IF NOT EXISTS " + wordsIndex + " ON " + x.Table + " USING gin (" + wordsOf(x) + ")")
}

// Texts returns how statements search the full-text index.
func (e *Engine) Texts() engine.TextSearch {
	x := e.config.Texts
	if x == nil {
		return engine.TextSearch{}
	}
	matching := "SELECT " + x.Number + " FROM " + x.Table + " WHERE " + wordsOf(x) + " @@ CAST($1 AS tsquery)"
	return engine.TextSearch{Matching: matching, Some: matching + " LIMIT $2", Expression: matchExpression}
}

// matchExpression returns a query in the language of tsquery. Words are quoted, so that none is an operator.
func matchExpression(q engine.TextQuery) string {
	quoted := strings.NewReplacer("'", "''", `\`, `\\`)
	return q.Expression(" | ", " & ", ":*", func(word string) string { return "'" + quoted.Replace(word) + "'" })
}

// ErrCopying says that a copy to the database is not complete.
var ErrCopying = errors.New("a copy to it is not complete; repeat kontor copy")

// CreateSchema creates the tables of a database that a copy fills. The copy has created engine.CopyTable before, so that no node
// opens the database. An incomplete schema does not exist: it is created in one transaction.
func CreateSchema(ctx context.Context, url string, migrations fs.FS, appendOnly []string) error {
	e := &Engine{
		config: engine.Config{Migrations: migrations, AppendOnly: appendOnly, Guard: func(bool) (engine.Guard, error) { return anyContent{}, nil }},
		clock:  clock.System{}, log: slog.Default(), loads: true,
	}
	var err error
	if e.address, err = parseAddress(url); err != nil {
		return err
	}
	if e.schema, err = engine.LatestMigration(migrations); err != nil {
		return err
	}
	c, err := e.connectWriter(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	return e.prepare(ctx, c)
}

// checkCopy returns ErrCopying for a database that a copy has not completed, unless this is the copy.
func (e *Engine) checkCopy(copying bool) error {
	if copying && !e.loads {
		return fmt.Errorf("%s: %w", e.address, ErrCopying)
	}
	return nil
}

// anyContent is the guard of a database whose content is checked after the copy.
type anyContent struct{ engine.Guard }

func (anyContent) Recognise(context.Context, engine.Source) (bool, error) { return false, nil }

func (anyContent) Settle(context.Context, engine.Maintenance) error { return nil }

func (anyContent) Anchor(context.Context, engine.Source) (a engine.Anchor, at clock.Time, err error) {
	return a, 0, nil
}
