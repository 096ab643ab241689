package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"kontor/store/engine"
	"kontor/store/postgres/internal/bus"
	"kontor/store/query"
)

// The statements of a start.
const (
	// lockStarts lets one process at a time open the database. The lock ends with the transaction.
	lockStarts = "SELECT pg_advisory_xact_lock(1802465908, 0)"

	selectState = `
		SELECT to_regclass('kontor_schema') IS NOT NULL, to_regclass('kontor_copy') IS NOT NULL,
			(SELECT COUNT(*) FROM pg_tables WHERE schemaname = current_schema() AND tablename NOT LIKE 'kontor\_%')`

	selectTables = `
		SELECT tablename::text FROM pg_tables
		WHERE schemaname = current_schema() AND tablename NOT LIKE 'kontor\_%' ORDER BY 1`
)

// Open opens the database at the URL of the configuration. It creates the tables of an empty database. See [engine.Config] for
// what it guarantees.
func Open(ctx context.Context, c engine.Config) (engine.Engine, engine.Report, error) {
	e := &Engine{config: c, clock: c.Clock, log: c.Log}
	if e.log == nil {
		e.log = slog.Default()
	}
	e.self = engine.ThisNode(c, 0) // the bus reads the server's time later
	var err error
	if e.address, err = parseAddress(c.URL); err != nil {
		return nil, engine.Report{}, err
	}
	if e.schema, err = engine.LatestMigration(c.Migrations); err != nil {
		return nil, engine.Report{}, err
	}
	if e.primaries.memory, e.primaries.seen, err = openMemory(c.Memory, e.log); err != nil {
		return nil, engine.Report{}, err
	}
	conn, err := e.connectWriter(ctx)
	if loss, ok := errors.AsType[*engine.Loss](err); ok && c.AcceptLoss {
		e.report.Loss, e.primaries.accepts = loss, true
		conn, err = e.connectWriter(ctx)
	}
	if err != nil {
		return nil, engine.Report{}, err
	}
	if err = e.prepare(ctx, conn); err == nil {
		err = e.start(ctx, conn)
	}
	if err != nil {
		conn.close()
		return nil, engine.Report{}, err
	}
	return e, e.report, nil
}

// Describe names the database of a URL in messages, without the password.
func Describe(url string) string {
	a, err := parseAddress(url)
	if err != nil {
		return "the database"
	}
	return a.String()
}

// prepare verifies the database and brings its schema up to date, in one transaction, so that a start that fails or is killed
// changes nothing. Other nodes do not write meanwhile.
func (e *Engine) prepare(ctx context.Context, c *conn) (err error) {
	if err := bus.RejectPool(ctx, c.pg, e.connectBus); err != nil {
		return e.explain(err)
	}
	if err := checkServer(e.address, c.pg); err != nil {
		return err
	}
	// A migration may take long. The locks of a lost connection end with it.
	if err := c.run("SELECT set_config('lock_timeout', '0', FALSE), set_config('idle_in_transaction_session_timeout', '0', FALSE)"); err != nil {
		return e.explain(err)
	}
	server, err := e.identify(ctx, c.pg)
	if err != nil {
		return e.explain(err)
	}
	c.patience = 0
	stop := context.AfterFunc(ctx, c.interrupt)
	defer func() {
		stop()
		c.afterCancel()
	}()
	for _, sql := range []string{beginWrite, lockStarts, lockWriters} {
		c.ask(sql, nil)
	}
	m := maintenance{own{conn: c}}
	fresh, version, err := e.readState(ctx, m)
	if err != nil {
		return e.explain(err)
	}
	if e.guard, err = e.config.Guard(fresh); err != nil {
		return err
	}
	if err := e.bringUp(ctx, m, version, server); err != nil {
		return e.explain(err)
	}
	c.ask(commit, nil)
	if err := c.roundTrip(); err != nil {
		return e.explain(err)
	}
	e.primaries.accepts = false
	if err := e.verify(ctx, c.pg); err != nil {
		return e.explain(err)
	}
	if err := c.run(restoreSettings); err != nil {
		return e.explain(err)
	}
	c.patience = writerPatience
	return nil
}

var restoreSettings = fmt.Sprintf("SELECT set_config('lock_timeout', '%s', FALSE), set_config('idle_in_transaction_session_timeout', '%s', FALSE)",
	writerSettings["lock_timeout"], writerSettings["idle_in_transaction_session_timeout"])

// readState returns whether the database is new, and the version of its schema.
func (e *Engine) readState(ctx context.Context, m maintenance) (fresh bool, version int64, err error) {
	var known, copying bool
	var tables int64
	if err := query.NewRow(ctx, m, selectState, nil).Scan(&known, &copying, &tables); err != nil {
		return false, 0, err
	}
	if err := e.checkCopy(copying); err != nil {
		return false, 0, err
	}
	if !known {
		if tables > 0 {
			return false, 0, errors.New("it has the tables of another program; create an empty database")
		}
		return true, 0, nil
	}
	var oldest int64
	if err := query.NewRow(ctx, m, selectSchema, nil).Scan(&version, &oldest); err != nil {
		return false, 0, err
	}
	if e.schema < oldest {
		return false, 0, fmt.Errorf("it has schema %d, this program knows %d and may serve from %d on: %w", version, e.schema, oldest, engine.ErrNewerSchema)
	}
	return false, version, nil
}

// bringUp verifies a database and brings its schema and triggers up to date.
func (e *Engine) bringUp(ctx context.Context, m maintenance, version int64, server string) (err error) {
	known := false
	if version > 0 {
		if known, err = e.guard.Recognise(ctx, m); err != nil {
			return err
		}
	}
	if err := createOwnTables(m); err != nil {
		return err
	}
	if err := e.register(ctx, m.conn, server); err != nil {
		return err
	}
	if version < e.schema {
		if version > 0 { // what was tampered with is not changed
			if err := e.guard.Settle(ctx, m); err != nil {
				return err
			}
		}
		if err := migrate(m, e.config.Migrations, version, e.schema); err != nil {
			return err
		}
	}
	if err := e.guard.Settle(ctx, m); err != nil {
		return err
	}
	if _, _, err := e.guard.Anchor(ctx, m); err != nil { // the guard remembers the time of the newest entry
		return err
	}
	if err := restoreWords(m, e.config.Texts); err != nil {
		return err
	}
	missing, err := restoreTriggers(ctx, m, e.config.AppendOnly)
	if known {
		e.report.Unprotected = missing
	}
	return err
}

// explain names the database in an error of the server or of the connection. Errors of the guard name it already.
func (e *Engine) explain(err error) error {
	if _, broken := errors.AsType[*unreachable](err); broken || errors.Is(err, engine.ErrLoss) {
		return err
	}
	return fmt.Errorf("%s cannot be used: %w", e.address, translate(err))
}

// maintenance is the connection of a start, within its transaction.
type maintenance struct{ own }

// Tables returns the names of the tables, without those of the engine.
func (m maintenance) Tables(ctx context.Context) ([]string, error) {
	return query.All(ctx, query.NewView(m, 0), query.Text, selectTables)
}

// Transact runs fn. If it fails, so does the start, which undoes everything.
func (m maintenance) Transact(fn func() error) error {
	if err := fn(); err != nil {
		return err
	}
	return m.conn.roundTrip()
}
