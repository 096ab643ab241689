package transfer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"kontor/store/engine"
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
