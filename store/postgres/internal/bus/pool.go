package bus

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

var errPool = errors.New("the address of the database is that of a connection pool in transaction mode, on which LISTEN does not work; " +
	"use the address of PostgreSQL itself, or a pool in session mode")

// arrivalLimit is how long a notification may take to arrive.
const arrivalLimit = 3 * time.Second

// RejectPool returns an error when notifications do not arrive on a connection, because a pool lends the connection to the
// server for single transactions. conn must be idle. connect returns another connection to the same address.
func RejectPool(ctx context.Context, conn *pgconn.PgConn, connect func(context.Context) (*pgconn.PgConn, error)) error {
	results, err := conn.Exec(ctx, `SELECT pg_backend_pid()`).ReadAll()
	if err != nil || len(results) != 1 || len(results[0].Rows) != 1 {
		return fmt.Errorf("ask for the process of the database server: %w", err)
	}
	if string(results[0].Rows[0][0]) == strconv.FormatUint(uint64(conn.PID()), 10) {
		return nil // the process that has accepted the connection serves it
	}
	channel := "kontor_probe_" + strings.ToLower(rand.Text())
	if _, err := conn.Exec(ctx, `LISTEN `+channel).ReadAll(); err != nil {
		return fmt.Errorf("listen for a notification: %w", err)
	}
	other, err := connect(ctx)
	if err != nil {
		return err
	}
	defer other.Close(ctx) //nolint:errcheck // it has done its work
	if _, err := other.Exec(ctx, `NOTIFY `+channel).ReadAll(); err != nil {
		return fmt.Errorf("send a notification: %w", err)
	}
	waiting, cancel := context.WithTimeout(ctx, arrivalLimit)
	defer cancel()
	if err := conn.WaitForNotification(waiting); err != nil {
		if ctx.Err() != nil || !pgconn.Timeout(err) {
			return fmt.Errorf("wait for a notification: %w", err)
		}
		return errPool
	}
	_, err = conn.Exec(ctx, `UNLISTEN `+channel).ReadAll()
	return err
}

// rejectPool does the same for the connections of the bus.
func (s *session) rejectPool(ctx context.Context) error {
	conn, err := s.bus.config.Connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(ctx) //nolint:errcheck // it has done its work
	return RejectPool(ctx, conn, s.bus.config.Connect)
}
