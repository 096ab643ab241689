package transfer

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"kontor/store/audittrail"
	"kontor/store/inspect"
	"kontor/store/postgres"
)

// databaseSource is a PostgreSQL database that is copied, in one state.
type databaseSource struct {
	postgresReader
	place Place
	other postgresReader // sees later states
	id    string
}

const (
	beginSnapshot     = `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`
	selectSchema      = `SELECT COALESCE(MAX(version), 0)::text FROM kontor_schema`
	selectKeyCheck    = `SELECT value FROM meta WHERE name = 'key_check'`
	selectEndText     = `SELECT seq::text || ' ' || hash FROM audit_entries ORDER BY seq DESC LIMIT 1`
	selectLiveNodes   = `SELECT string_agg(DISTINCT n.name, ', ') FROM kontor_nodes n JOIN pg_stat_activity a ON a.pid = n.backend`
	selectIncomplete  = `SELECT (to_regclass('` + markTable + `') IS NOT NULL)::text`
	selectHasSchema   = `SELECT (to_regclass('kontor_schema') IS NOT NULL)::text`
	selectHasNodes    = `SELECT (to_regclass('kontor_nodes') IS NOT NULL)::text`
	selectOtherTables = `SELECT relname::text FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'v', 'm') LIMIT 1`
)

// openDatabase begins to read a database that no node serves.
func openDatabase(ctx context.Context, o *Options) (_ *databaseSource, err error) {
	s := &databaseSource{place: o.From}
	if s.other, err = connect(ctx, o.From); err != nil {
		return nil, err
	}
	if s.postgresReader, err = connect(ctx, o.From); err != nil {
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
		sql, want string
		err       error
	}{
		{selectHasSchema, "true", fmt.Errorf("there is no data in %s", s.place.Name)},
		{selectIncomplete, "false", fmt.Errorf("%s: %w", s.place.Name, postgres.ErrCopying)},
	} {
		if found, _, err := s.queryText(ctx, c.sql); err != nil {
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
	text, _, err := s.queryText(ctx, selectSchema)
	if err != nil {
		return s.place.wrap(err)
	}
	schema, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return s.place.wrap(err)
	}
	if err := checkSchema(o, schema); err != nil {
		return err
	}
	s.id, err = s.postgresReader.identify(ctx, schema)
	return s.place.wrap(err)
}

// identify returns the identity of the database as the connection sees it.
func (p postgresReader) identify(ctx context.Context, schema int64) (string, error) {
	check, _, err := p.queryText(ctx, selectKeyCheck)
	if err != nil {
		return "", err
	}
	end, found, err := p.queryText(ctx, selectEndText)
	if err != nil {
		return "", err
	}
	var seq int64
	var hash string
	if found {
		if _, err := fmt.Sscan(end, &seq, &hash); err != nil {
			return "", err
		}
	}
	return identity(schema, check, seq, hash), nil
}

// checkNodes returns ErrInUse when a node is connected to the database. It waits for the sessions of nodes that have ended.
func (s *databaseSource) checkNodes(ctx context.Context) error {
	has, _, err := s.other.queryText(ctx, selectHasNodes)
	if err != nil || has != "true" {
		return s.place.wrap(err)
	}
	var names string
	free, err := s.other.await(ctx, func() (_ bool, err error) {
		names, _, err = s.other.queryText(ctx, selectLiveNodes)
		return names == "", err
	})
	if err == nil && !free {
		err = fmt.Errorf("nodes use it (%s); stop them: %w", names, ErrInUse)
	}
	return s.place.wrap(err)
}

func (s *databaseSource) identity() string { return s.id }

func (s *databaseSource) unchanged(ctx context.Context) error {
	if err := s.checkNodes(ctx); err != nil {
		return err
	}
	text, _, err := s.other.queryText(ctx, selectSchema)
	if err != nil {
		return s.place.wrap(err)
	}
	schema, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return s.place.wrap(err)
	}
	now, err := s.other.identify(ctx, schema)
	if err == nil && now != s.id {
		err = ErrChanged
	}
	return s.place.wrap(err)
}

// Close ends the connections.
func (s *databaseSource) Close() error {
	s.postgresReader.close()
	s.other.close()
	return nil
}

// databaseTarget is an empty PostgreSQL database that is filled.
type databaseTarget struct {
	postgresReader
	options *Options
}

func newDatabaseTarget(ctx context.Context, o *Options) (*databaseTarget, error) {
	conn, err := connect(ctx, o.To)
	if err != nil {
		return nil, err
	}
	t := &databaseTarget{postgresReader: conn, options: o}
	if err := t.lock(ctx, o.To); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
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
	incomplete, _, err := t.queryText(ctx, selectIncomplete)
	if err != nil {
		return false, err
	}
	if incomplete == "true" {
		found, _, err := t.queryText(ctx, selectMark)
		if err == nil && found != identity {
			err = fmt.Errorf("%w, or of an earlier state; create an empty database", ErrOtherSource)
		}
		return true, err
	}
	if name, found, err := t.queryText(ctx, selectOtherTables); err != nil {
		return false, err
	} else if found {
		return false, fmt.Errorf("it holds the table %s: %w", name, ErrNotEmpty)
	}
	if err := t.run(ctx, createMark); err != nil {
		return false, err
	}
	_, _, err = t.queryText(ctx, insertMark, identity)
	return false, err
}

// finish checks the database and removes the mark.
func (t *databaseTarget) finish(ctx context.Context) (report inspect.Report, err error) {
	from := inspect.Source{URL: t.options.To.URL, SecretKey: t.options.SecretKey, PreviousKey: t.options.PreviousKey, Clock: t.options.Clock}
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
