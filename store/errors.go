package store

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"kontor/store/internal/sqlite"
)

// The failures that callers tell apart, with errors.Is. Those that the database reported also wrap
// what it said.
var (
	// ErrNotFound says that a query for one row found none.
	ErrNotFound = errors.New("no such row")
	// ErrDuplicate says that a unique value is taken.
	ErrDuplicate = errors.New("duplicate value")
	// ErrMissingReference says that a row points to one that is missing, or is still pointed to.
	ErrMissingReference = errors.New("missing reference")
	// ErrConflict says that a value breaks another rule of the table: CHECK or NOT NULL.
	ErrConflict = errors.New("value refused by the table")
	// ErrBusy says that too much waits already; try again later.
	ErrBusy = errors.New("database is busy")
	// ErrFull says that there is no room for a write. Reading goes on, and so does writing as soon as
	// there is room.
	ErrFull = errors.New("no room to write")
	// ErrIO says that the disk failed. After a write or a sync that failed the process ends, see Options.Fatal.
	ErrIO = errors.New("the disk failed")
	// ErrReadOnly says that the files cannot be written.
	ErrReadOnly = errors.New("database cannot be written")
	// ErrCorrupt says that the database file is damaged or no database.
	ErrCorrupt = errors.New("database is damaged")
	// ErrClosed says that the database, the transaction or the rows were closed before.
	ErrClosed = errors.New("already closed")
)

// Temporary tells whether the same call may well succeed later: the answer to the client is 503.
func Temporary(err error) bool {
	return errors.Is(err, ErrBusy) || errors.Is(err, ErrFull) || errors.Is(err, ErrIO) ||
		errors.Is(err, ErrReadOnly) || errors.Is(err, ErrClosed)
}

// isFull reports whether an error says that there is no room for a write.
func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// translate gives an error of the engine its kind.
func translate(err error) error {
	var e *sqlite.Error
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &e) {
		return err
	}
	if kind := classify(e); kind != nil {
		return fmt.Errorf("%w: %w", kind, err)
	}
	return err
}
