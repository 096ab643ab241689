package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"kontor/store/audittrail"
	"kontor/store/engine"
	"kontor/store/inspect"
	"kontor/store/postgres"
	"kontor/store/query"
)

// side is a database that is read or filled.
type side interface {
	// tables returns the names of all tables that are copied, sorted.
	tables(ctx context.Context) ([]string, error)
	// rows runs a statement. The values of a row are int64, bool, string, []byte or nil. The loop must not end before the last row, but
	// after an error.
	rows(ctx context.Context, sql string, args ...any) iter.Seq2[[]any, error]
}

// one returns the first column of the only row of a statement. found is false without a row.
func one[T any](ctx context.Context, s side, sql string, args ...any) (value T, found bool, err error) {
	for row, err := range s.rows(ctx, sql, args...) {
		if err != nil {
			return value, false, err
		}
		ok := false
		if value, ok = row[0].(T); !ok && row[0] != nil { // NULL is the zero value
			return value, false, fmt.Errorf("%s returned %T, not %T", sql, row[0], value)
		}
		found = true
	}
	return value, found, nil
}

// sqliteSide is the database of a data directory.
type sqliteSide struct {
	from interface {
		engine.Source
		Tables(ctx context.Context) ([]string, error)
	}
}

func (s sqliteSide) tables(ctx context.Context) ([]string, error) {
	names, err := s.from.Tables(ctx)
	names = slices.DeleteFunc(names, func(name string) bool { return name == markTable })
	slices.Sort(names)
	return names, err
}

func (s sqliteSide) rows(ctx context.Context, sql string, args ...any) iter.Seq2[[]any, error] {
	return func(yield func([]any, error) bool) {
		rows, err := query.Query(ctx, s.from, sql, args)
		if err != nil {
			yield(nil, err)
			return
		}
		defer rows.Close()
		for rows.Next() {
			row := make([]any, rows.Columns())
			into := make([]any, len(row))
			for i := range row {
				into[i] = &row[i]
			}
			err := rows.Scan(into...)
			if err == nil {
				err = ctx.Err()
			}
			if !yield(row, err) || err != nil {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(nil, err)
		}
	}
}

// postgresSide is a PostgreSQL database on one connection.
type postgresSide struct{ *pgx.Conn }

// connect opens a connection to a PostgreSQL database. Its errors contain no password.
func connect(ctx context.Context, p Place) (postgresSide, error) {
	config, err := pgx.ParseConfig(p.URL)
	if err != nil {
		return postgresSide{}, fmt.Errorf("%s cannot be used: %w", p.Name, errors.Unwrap(err))
	}
	config.RuntimeParams["application_name"] = "kontor copy"
	config.RuntimeParams["client_encoding"] = "UTF8"
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return postgresSide{}, fmt.Errorf("%s cannot be reached: %w", p.Name, explainPostgres(err))
	}
	return postgresSide{conn}, nil
}

const selectPostgresTables = `
	SELECT relname::text FROM pg_class
	WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND relname NOT LIKE 'kontor\_%'
	ORDER BY relname COLLATE "C"`

func (p postgresSide) tables(ctx context.Context) (names []string, err error) {
	for row, err := range p.rows(ctx, selectPostgresTables) {
		if err != nil {
			return nil, err
		}
		names = append(names, row[0].(string))
	}
	return names, nil
}

func (p postgresSide) rows(ctx context.Context, sql string, args ...any) iter.Seq2[[]any, error] {
	return func(yield func([]any, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		rows, err := p.Query(ctx, sql, args...)
		if err != nil {
			cancel()
			yield(nil, explainPostgres(err))
			return
		}
		defer rows.Close()
		defer cancel() // the rest of the rows may be long
		for rows.Next() {
			row, err := rows.Values()
			for i, v := range row {
				if n, ok := v.(int32); ok {
					row[i] = int64(n)
				}
			}
			if !yield(row, err) || err != nil {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(nil, explainPostgres(err))
		}
	}
}

// run runs statements without arguments.
func (p postgresSide) run(ctx context.Context, sql string) error {
	_, err := p.Exec(ctx, sql)
	return explainPostgres(err)
}

// close ends the connection, whatever state it is in.
func (p postgresSide) close() {
	const most = 2 * time.Second // to tell the server
	ctx, cancel := context.WithTimeout(context.Background(), most)
	defer cancel()
	_ = p.Conn.Close(ctx) // nothing is lost with it
}

// explainPostgres adds the kind of an error, without the address of the server.
func explainPostgres(err error) error {
	reported, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return err
	}
	message := fmt.Errorf("%s (SQLSTATE %s)", reported.Message, reported.Code)
	switch code := reported.Code; {
	case code == "42501":
		return fmt.Errorf("%w; the user of the database must own its schema", message)
	case strings.HasPrefix(code, "53"):
		return fmt.Errorf("%w: %w", engine.ErrFull, message)
	case strings.HasPrefix(code, "57"), strings.HasPrefix(code, "08"):
		return fmt.Errorf("%w: %w", engine.ErrBusy, message)
	}
	return message
}

// databaseSource is a PostgreSQL database that is copied, in one state.
type databaseSource struct {
	postgresSide
	place Place
	other postgresSide // sees later states
	id    string
}

const (
	beginSnapshot     = `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`
	selectSchema      = `SELECT COALESCE(MAX(version), 0) FROM kontor_schema`
	selectLiveNodes   = `SELECT string_agg(DISTINCT n.name, ', ') FROM kontor_nodes n JOIN pg_stat_activity a ON a.pid = n.backend`
	selectIncomplete  = `SELECT (to_regclass('` + markTable + `') IS NOT NULL)`
	selectHasSchema   = `SELECT (to_regclass('kontor_schema') IS NOT NULL)`
	selectHasNodes    = `SELECT (to_regclass('kontor_nodes') IS NOT NULL)`
	selectOtherTables = `SELECT relname::text FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'v', 'm') LIMIT 1`
)

// openDatabase begins to read a database that no node serves.
func openDatabase(ctx context.Context, o *Options) (_ *databaseSource, err error) {
	s := &databaseSource{place: o.From}
	if s.other, err = connect(ctx, o.From); err != nil {
		return nil, err
	}
	if s.postgresSide, err = connect(ctx, o.From); err != nil {
		s.other.close()
		return nil, err
	}
	if err := s.check(ctx, o); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *databaseSource) check(ctx context.Context, o *Options) error {
	for _, c := range []struct {
		sql  string
		want bool
		err  error
	}{
		{selectHasSchema, true, fmt.Errorf("there is no data in %s", s.place.Name)},
		{selectIncomplete, false, fmt.Errorf("%s: %w", s.place.Name, postgres.ErrCopying)},
	} {
		if found, _, err := one[bool](ctx, s, c.sql); err != nil {
			return s.place.wrap(err)
		} else if found != c.want {
			return c.err
		}
	}
	if err := s.checkNodes(ctx); err != nil {
		return err
	}
	from := inspect.Source{URL: o.From.URL, SecretKey: o.SecretKey, PreviousKey: o.PreviousKey}
	if _, err := inspect.PublicExportKeys(ctx, from); err != nil { // compares the master key
		return err
	}
	if err := s.run(ctx, beginSnapshot); err != nil {
		return s.place.wrap(err)
	}
	schema, _, err := one[int64](ctx, s, selectSchema)
	if err != nil {
		return s.place.wrap(err)
	}
	if err := checkSchema(o, schema); err != nil {
		return err
	}
	s.id, err = identify(ctx, s, schema)
	return s.place.wrap(err)
}

// checkNodes returns ErrInUse when a node is connected to the database. It waits for the sessions of nodes that have ended.
func (s *databaseSource) checkNodes(ctx context.Context) error {
	has, _, err := one[bool](ctx, s.other, selectHasNodes)
	if err != nil || !has {
		return s.place.wrap(err)
	}
	var names string
	free, err := s.other.await(ctx, func() (_ bool, err error) {
		names, _, err = one[string](ctx, s.other, selectLiveNodes)
		return names == "", err
	})
	if err == nil && !free {
		err = fmt.Errorf("nodes use it (%s); stop them: %w", names, ErrInUse)
	}
	return s.place.wrap(err)
}

// sessionWait is how long a copy waits for sessions of other programs to end. PostgreSQL ends the session of a program some time
// after the program: the copy of an operator who repeats an interrupted one must not find the former one in its way.
var sessionWait = 10 * time.Second

// await asks the database until free reports true, for up to sessionWait, and returns the last answer.
func (p postgresSide) await(ctx context.Context, free func() (bool, error)) (bool, error) {
	for begun := time.Now(); ; {
		ok, err := free()
		if ok || err != nil || time.Since(begun) >= sessionWait {
			return ok, err
		}
		if err := p.run(ctx, `SELECT pg_sleep(0.05)`); err != nil {
			return false, err
		}
	}
}

func (s *databaseSource) identity() string { return s.id }

func (s *databaseSource) unchanged(ctx context.Context) error {
	if err := s.checkNodes(ctx); err != nil {
		return err
	}
	schema, _, err := one[int64](ctx, s.other, selectSchema)
	if err != nil {
		return s.place.wrap(err)
	}
	now, err := identify(ctx, s.other, schema)
	if err == nil && now != s.id {
		err = ErrChanged
	}
	return s.place.wrap(err)
}

// Close ends the connections.
func (s *databaseSource) Close() error {
	s.postgresSide.close()
	s.other.close()
	return nil
}

// databaseTarget is an empty PostgreSQL database that is filled.
type databaseTarget struct {
	postgresSide
	options *Options
}

func newDatabaseTarget(ctx context.Context, o *Options) (*databaseTarget, error) {
	conn, err := connect(ctx, o.To)
	if err != nil {
		return nil, err
	}
	t := &databaseTarget{postgresSide: conn, options: o}
	if err := t.lock(ctx); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// lock keeps other copies away from the database until the connection is closed. It waits for the end of an interrupted copy.
func (t *databaseTarget) lock(ctx context.Context) error {
	locked, err := t.await(ctx, func() (locked bool, err error) {
		locked, _, err = one[bool](ctx, t, `SELECT pg_try_advisory_lock(hashtext('kontor copy'))`)
		return locked, err
	})
	if err == nil && !locked {
		err = fmt.Errorf("another copy uses %s; wait for its end: %w", t.options.To.Name, ErrInUse)
	}
	return err
}

// Empty reports whether a PostgreSQL database has no tables of Kontor.
func Empty(ctx context.Context, p Place) (empty bool, err error) {
	conn, err := connect(ctx, p)
	if err != nil {
		return false, err
	}
	defer conn.close()
	found, _, err := one[bool](ctx, conn, selectHasSchema)
	return !found, p.wrap(err)
}

// lockStarts keeps nodes from opening the database in the transaction, see store/postgres.
const lockStarts = `SELECT pg_advisory_xact_lock(1802465908, 0)`

// begin marks an empty database as incomplete and creates its schema, or finds the mark of an interrupted copy.
func (t *databaseTarget) begin(ctx context.Context, identity string) (resumed bool, err error) {
	if resumed, err = t.mark(ctx, identity); err != nil {
		return false, t.options.To.wrap(err)
	}
	if err := postgres.CreateSchema(ctx, t.options.To.URL, t.options.Migrations, audittrail.AppendOnlyTables()); err != nil {
		return false, err
	}
	// The last commit, which removes the mark, waits for the disk and so for all before it.
	return resumed, t.options.To.wrap(t.run(ctx, `SET synchronous_commit = off`))
}

func (t *databaseTarget) mark(ctx context.Context, identity string) (resumed bool, err error) {
	if err := t.run(ctx, `BEGIN; `+lockStarts); err != nil {
		return false, err
	}
	defer func() {
		end := `COMMIT`
		if err != nil {
			end = `ROLLBACK`
		}
		err = errors.Join(err, t.run(ctx, end))
	}()
	incomplete, _, err := one[bool](ctx, t, selectIncomplete)
	if err != nil {
		return false, err
	}
	if incomplete {
		found, _, err := one[string](ctx, t, selectMark)
		if err == nil && found != identity {
			err = fmt.Errorf("%w, or of an earlier state; create an empty database", ErrOtherSource)
		}
		return true, err
	}
	if name, found, err := one[string](ctx, t, selectOtherTables); err != nil {
		return false, err
	} else if found {
		return false, fmt.Errorf("it holds the table %s: %w", name, ErrNotEmpty)
	}
	if err := t.run(ctx, createMark); err != nil {
		return false, err
	}
	_, err = t.Exec(ctx, insertMark, identity)
	return false, explainPostgres(err)
}

// insert adds rows with COPY.
func (t *databaseTarget) insert(ctx context.Context, to *table, batch [][]any) error {
	columns := make([]string, len(to.columns))
	for i, c := range to.columns {
		columns[i] = c.name
	}
	for _, row := range batch {
		if err := to.storable(row); err != nil {
			return err
		}
	}
	_, err := t.CopyFrom(ctx, pgx.Identifier{to.name}, columns, pgx.CopyFromRows(batch))
	return explainPostgres(err)
}

// finish checks the database and removes the mark.
func (t *databaseTarget) finish(ctx context.Context) (report inspect.Report, err error) {
	from := inspect.Source{URL: t.options.To.URL, SecretKey: t.options.SecretKey, PreviousKey: t.options.PreviousKey}
	if report, err = inspect.Check(ctx, from, t.options.Further); err != nil {
		return report, err
	}
	for _, sql := range []string{`ANALYZE`, `SET synchronous_commit = on`, dropMark} {
		if err := t.run(ctx, sql); err != nil {
			return report, t.options.To.wrap(err)
		}
	}
	return report, nil
}

// Close ends the connection.
func (t *databaseTarget) Close() error {
	t.close()
	return nil
}

// markTable is the table of an incomplete target. Its only row is the identity of the source. No engine opens a database that has
// the table.
const markTable = engine.CopyTable

const (
	createMark = `CREATE TABLE ` + markTable + ` (source TEXT NOT NULL PRIMARY KEY)`
	insertMark = `INSERT INTO ` + markTable + ` (source) VALUES ($1)`
	selectMark = `SELECT source FROM ` + markTable
	dropMark   = `DROP TABLE ` + markTable
)

// notOfEngines has the conditions for tables some of whose rows belong to an engine.
var notOfEngines = map[string]string{"meta": `name NOT IN ('` + engine.MetaCommits + `', '` + engine.MetaLineage + `', '` + engine.MetaWriteProbe + `')`}

const (
	selectKeyCheck = `SELECT value FROM meta WHERE name = 'key_check'`
	selectEnd      = `SELECT seq, hash FROM audit_entries ORDER BY seq DESC LIMIT 1`
)

// identify returns the identity of a database and its state. Every acknowledged change of a record is in the audit trail.
func identify(ctx context.Context, s side, schema int64) (string, error) {
	check, _, err := one[string](ctx, s, selectKeyCheck)
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	fmt.Fprintln(hash, schema, check)
	for row, err := range s.rows(ctx, selectEnd) {
		if err != nil {
			return "", err
		}
		fmt.Fprintln(hash, row...)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
