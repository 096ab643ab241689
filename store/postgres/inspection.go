package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"kontor/store/engine"
	"kontor/store/query"
)

// Inspection reads a database as a client of its own, beside the nodes or without one. It cannot write. It implements
// engine.Inspection.
type Inspection struct {
	maintenance
	address address
	bytes   int64
	end     func() // of the context of Begin
}

const (
	beginInspection = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
	selectBytes     = "SELECT pg_database_size(current_database())"
)

// Inspect connects to the database at a URL.
func Inspect(ctx context.Context, url string) (*Inspection, error) {
	a, err := parseAddress(url)
	if err != nil {
		return nil, err
	}
	pg, err := a.connect(ctx, inspectionSettings, nil)
	if err != nil {
		return nil, err
	}
	c := newConn(pg, &texts{})
	i := &Inspection{maintenance: maintenance{own{conn: c}}, address: a, end: func() {}}
	if err := checkServer(a, pg); err != nil {
		return nil, errors.Join(err, i.Close())
	}
	if err := query.NewRow(ctx, i, selectBytes, nil).Scan(&i.bytes); err != nil {
		return nil, errors.Join(i.explain(err), i.Close())
	}
	return i, nil
}

// inspectionSettings are the settings of the session. A check may take hours between two statements of the program.
var inspectionSettings = map[string]string{"default_transaction_read_only": "on", "idle_in_transaction_session_timeout": "0"}

// Path names the database, without the password.
func (i *Inspection) Path() string { return i.address.String() }

// Bytes returns the size of the database.
func (i *Inspection) Bytes() int64 { return i.bytes }

// IgnoreChecksums does nothing: the server decides whether it reads damaged pages.
func (i *Inspection) IgnoreChecksums() {}

// Begin makes everything that follows see one state of the database, and end with the context.
func (i *Inspection) Begin(ctx context.Context) error {
	stop := context.AfterFunc(ctx, i.conn.interrupt)
	i.conn.ended = ctx.Err
	i.end = func() {
		stop()
		i.conn.ended = nil
		i.conn.afterCancel()
	}
	return i.explain(i.conn.run(beginInspection))
}

const selectNewestSchema = `SELECT version FROM kontor_schema ORDER BY version DESC LIMIT 1`

// Schema returns the version of the schema, 0 for a database without one.
func (i *Inspection) Schema() (version int64, err error) {
	var known, copying bool
	var tables int64
	ctx := context.Background() // that of Begin counts
	if err := query.NewRow(ctx, i, selectState, nil).Scan(&known, &copying, &tables); err != nil {
		return 0, i.explain(err)
	}
	switch {
	case !known && tables > 0:
		return 0, i.explain(errors.New("it is the database of another program"))
	case !known:
		return 0, nil
	}
	return version, i.explain(query.NewRow(ctx, i, selectNewestSchema, nil).Scan(&version))
}

const (
	selectChecksums = `SELECT current_setting('data_checksums') = 'on'`

	// selectRead reads all of a table, whose name is added: the server compares checksums of pages as it reads them.
	selectRead = `SELECT COUNT(*), pg_relation_size($1::regclass) / current_setting('block_size')::bigint FROM `

	selectInvalid = `SELECT conrelid::regclass::text, conname::text FROM pg_constraint
		WHERE connamespace = current_schema()::regnamespace AND NOT convalidated ORDER BY 1, 2 LIMIT 1`

	selectReferences = `
		SELECT c.conname::text, c.conrelid::regclass::text, c.confrelid::regclass::text,
			(SELECT string_agg(format('child.%I = parent.%I', a.attname, f.attname), ' AND ')
				FROM unnest(c.conkey, c.confkey) AS k (mine, other)
				JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = k.mine
				JOIN pg_attribute f ON f.attrelid = c.confrelid AND f.attnum = k.other),
			(SELECT string_agg(format('child.%I IS NOT NULL', a.attname), ' AND ')
				FROM unnest(c.conkey) AS k (mine)
				JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = k.mine)
		FROM pg_constraint c
		WHERE c.connamespace = current_schema()::regnamespace AND c.contype = 'f' ORDER BY 1`
)

// Verify reads all tables, so that the server finds damaged pages, and verifies the references between rows. It returns the
// number of pages if the server has checksums of them, otherwise 0.
func (i *Inspection) Verify(ctx context.Context) (pages int64, err error) {
	var checksums bool
	if err := query.NewRow(ctx, i, selectChecksums, nil).Scan(&checksums); err != nil {
		return 0, i.explain(err)
	}
	tables, err := i.Tables(ctx)
	if err != nil {
		return 0, i.explain(err)
	}
	for _, name := range tables {
		var rows, read int64
		if err := query.NewRow(ctx, i, selectRead+quoteName(name), []any{name}).Scan(&rows, &read); err != nil {
			return pages, i.explain(fmt.Errorf("read %s: %w", name, err))
		}
		if checksums {
			pages += read
		}
	}
	return pages, i.verifyReferences(ctx)
}

// reference is a foreign key.
type reference struct{ name, table, parent, equal, present string }

func (i *Inspection) verifyReferences(ctx context.Context) error {
	var table, constraint string
	err := query.NewRow(ctx, i, selectInvalid, nil).Scan(&table, &constraint)
	if err == nil {
		return i.explain(fmt.Errorf("%w: the rule %s of %s is not enforced", engine.ErrCorrupt, constraint, table))
	} else if !errors.Is(err, engine.ErrNotFound) {
		return i.explain(err)
	}
	references, err := query.All(ctx, query.NewView(i, 0), func(row query.Scanner) (r reference, err error) {
		err = row.Scan(&r.name, &r.table, &r.parent, &r.equal, &r.present)
		return r, err
	}, selectReferences)
	if err != nil {
		return i.explain(err)
	}
	for _, r := range references {
		var broken bool
		sql := "SELECT EXISTS (SELECT FROM " + r.table + " child WHERE " + r.present +
			" AND NOT EXISTS (SELECT FROM " + r.parent + " parent WHERE " + r.equal + "))"
		if err := query.NewRow(ctx, i, sql, nil).Scan(&broken); err != nil {
			return i.explain(err)
		}
		if broken {
			return i.explain(fmt.Errorf("%w: a row of %s points to a row of %s that is missing (%s)", engine.ErrCorrupt, r.table, r.parent, r.name))
		}
	}
	return nil
}

// quoteName quotes the name of a table for a statement.
func quoteName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// Unprotected returns the names of the triggers of append-only tables that are missing, disabled or were replaced.
func (i *Inspection) Unprotected(ctx context.Context, tables []string) ([]string, error) {
	missing, err := missingTriggers(ctx, i, tables)
	return triggerNames(missing), err
}

// CopyTo returns an error: PostgreSQL makes its own backups.
func (i *Inspection) CopyTo(context.Context, string) error {
	return fmt.Errorf("%s is backed up with pg_dump", i.address)
}

// Close ends the connection.
func (i *Inspection) Close() error {
	i.end()
	i.conn.close()
	return nil
}

func (i *Inspection) explain(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("%s cannot be used: %w", i.address, translate(err))
}
