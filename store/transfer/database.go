package transfer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// connect opens a connection to a PostgreSQL database. Its errors contain no password.
func connect(ctx context.Context, p Place) (postgresReader, error) {
	config, err := pgconn.ParseConfig(p.URL)
	if err != nil {
		return postgresReader{}, fmt.Errorf("%s cannot be used: %w", p.Name, errors.Unwrap(err))
	}
	config.RuntimeParams["application_name"] = "kontor copy"
	config.RuntimeParams["client_encoding"] = "UTF8"
	config.RuntimeParams["bytea_output"] = "hex"
	conn, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return postgresReader{}, fmt.Errorf("%s cannot be reached: %w", p.Name, explainPostgres(err))
	}
	return postgresReader{conn}, nil
}

// sessionWait is how long a copy waits for sessions of other programs to end. PostgreSQL ends the session of a program some time
// after the program: the copy of an operator who repeats an interrupted one must not find the former one in its way.
var sessionWait = 10 * time.Second

const (
	lockCopy   = `SELECT pg_try_advisory_lock(hashtext('kontor copy'))::text`
	sleepShort = `SELECT pg_sleep(0.05)`
)

// await asks the database until free reports true, for up to sessionWait, and returns the last answer.
func (p postgresReader) await(ctx context.Context, free func() (bool, error)) (bool, error) {
	for begun := time.Now(); ; {
		ok, err := free()
		if ok || err != nil || time.Since(begun) >= sessionWait {
			return ok, err
		}
		if err := p.run(ctx, sleepShort); err != nil {
			return false, err
		}
	}
}

// lock keeps other copies away from the database until the connection is closed. It waits for the end of an interrupted copy.
func (p postgresReader) lock(ctx context.Context, place Place) error {
	locked, err := p.await(ctx, func() (bool, error) {
		text, _, err := p.queryText(ctx, lockCopy)
		return text == "true", err
	})
	if err == nil && !locked {
		err = fmt.Errorf("another copy uses %s; wait for its end: %w", place.Name, ErrInUse)
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
	found, _, err := conn.queryText(ctx, `SELECT (to_regclass('kontor_schema') IS NULL)::text`)
	return found == "true", p.wrap(err)
}

// close ends the connection, whatever state it is in.
func (p postgresReader) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_ = p.conn.Close(ctx) // nothing is lost with it
}

// closeTimeout bounds telling the server about the end of a connection.
const closeTimeout = 2 * time.Second
