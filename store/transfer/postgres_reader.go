package transfer

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"kontor/store/engine"
)

// postgresReader reads a PostgreSQL database on one connection.
type postgresReader struct {
	conn *pgconn.PgConn
}

const selectPostgresTables = `
	SELECT relname FROM pg_class
	WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND relname NOT LIKE 'kontor\_%'
	ORDER BY relname COLLATE "C"`

func (p postgresReader) tables(ctx context.Context) (names []string, err error) {
	err = p.query(ctx, selectPostgresTables, nil, func(r [][]byte) error {
		names = append(names, string(r[0]))
		return nil
	})
	return names, err
}

// query runs a statement and calls fn with each row in the text format. The row is valid during the call.
func (p postgresReader) query(ctx context.Context, sql string, args [][]byte, fn func([][]byte) error) error {
	result := p.conn.ExecParams(ctx, sql, args, nil, nil, nil)
	var failed error
	for failed == nil && result.NextRow() {
		failed = fn(result.Values())
	}
	if failed != nil {
		_ = p.conn.Close(ctx) // the rest of the rows may be long
		return failed
	}
	_, err := result.Close()
	return explainPostgres(err)
}

// queryText runs a statement that returns one text. found is false without a row.
func (p postgresReader) queryText(ctx context.Context, sql string, args ...string) (text string, found bool, err error) {
	given := make([][]byte, len(args))
	for i, a := range args {
		given[i] = []byte(a)
	}
	err = p.query(ctx, sql, given, func(r [][]byte) error {
		text, found = string(r[0]), true
		return nil
	})
	return text, found, err
}

// run runs statements without arguments.
func (p postgresReader) run(ctx context.Context, sql string) error {
	_, err := p.conn.Exec(ctx, sql).ReadAll()
	return explainPostgres(err)
}

func (p postgresReader) count(ctx context.Context, t *table) (int64, error) {
	text, _, err := p.queryText(ctx, t.selectCount())
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(text, 10, 64)
}

// each reads the rows as the server sends them.
func (p postgresReader) each(ctx context.Context, t *table, after row, fn func(row) error) error {
	r := make(row, len(t.columns))
	return p.query(ctx, t.selectRows(after != nil), t.textValues(after), func(values [][]byte) error {
		if err := t.parse(values, t.allColumns(), r); err != nil {
			return err
		}
		return fn(r)
	})
}

// last returns the primary key of the last row.
func (p postgresReader) last(ctx context.Context, t *table) (last row, err error) {
	err = p.query(ctx, t.selectLast(), nil, func(values [][]byte) error {
		last = make(row, len(t.key))
		if err := t.parse(values, t.key, last); err != nil {
			return err
		}
		last = last.clone()
		return nil
	})
	return last, err
}

// parse reads values in the text format.
func (t *table) parse(values [][]byte, columns []int, into row) (err error) {
	for i, c := range columns {
		text := values[i]
		if text == nil {
			into[i] = value{null: true}
			continue
		}
		switch t.columns[c].class {
		case integers:
			into[i].n, err = strconv.ParseInt(string(text), 10, 64)
			into[i] = value{n: into[i].n}
		case booleans:
			into[i] = value{}
			if string(text) == "t" {
				into[i].n = 1
			}
		case texts:
			into[i] = value{b: text}
		case byteas:
			into[i], err = parseBytes(text)
		}
		if err != nil {
			return fmt.Errorf("%s.%s: %w: %w", t.name, t.columns[c].name, engine.ErrCorrupt, err)
		}
	}
	return nil
}

// parseBytes reads a value of the type bytea, whose output format is hex by default.
func parseBytes(text []byte) (value, error) {
	digits, ok := strings.CutPrefix(string(text), `\x`)
	if !ok {
		return value{}, errors.New("bytea_output is not hex")
	}
	b, err := hex.DecodeString(digits)
	return value{b: b}, err
}

// textValues returns a primary key as arguments in the text format.
func (t *table) textValues(key row) [][]byte {
	var args [][]byte
	for i, v := range key {
		text := []byte(nil)
		switch c := t.columns[t.key[i]].class; {
		case v.null:
		case c == integers:
			text = strconv.AppendInt(nil, v.n, 10)
		case c == booleans:
			text = strconv.AppendBool(nil, v.n == 1)
		case c == texts:
			text = append([]byte{}, v.b...)
		default:
			text = hex.AppendEncode([]byte(`\x`), v.b)
		}
		args = append(args, text)
	}
	return args
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
