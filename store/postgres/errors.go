package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"kontor/store/engine"
)

// The codes of PostgreSQL's errors that the engine distinguishes.
const (
	codeUniqueViolation     = "23505"
	codeExclusionViolation  = "23P01"
	codeForeignKeyViolation = "23503"
	codeAppendOnly          = "23514" // check_violation, which our triggers raise too
	codeNoSpace             = "53100"
	codeOutOfMemory         = "53200"
	codeReadOnly            = "25006"
	codeCanceled            = "57014"
	codeLockTimeout         = "55P03"
	codeDataCorrupted       = "XX001"
	codeIndexCorrupted      = "XX002"
	codeIOError             = "58030"
	codeUnknownStatement    = "26000"
	codeFeature             = "0A000" // "cached plan must not change result type"
	codeUndefinedFunction   = "42883"
	codeDatatypeMismatch    = "42804"
	codeIndeterminateType   = "42P18"
	codeAmbiguousFunction   = "42725"
	codeNoNul               = "22021" // a byte that UTF-8 does not have, or NUL in a text
)

// errUnreachable wraps errors of connections.
var errUnreachable = fmt.Errorf("%w: PostgreSQL cannot be reached", engine.ErrBusy)

// translate adds the kind of the error to an error of PostgreSQL or of a connection.
func translate(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, engine.ErrBusy) {
		return err
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		if kind := classify(pg.Code); kind != nil {
			return fmt.Errorf("%w: %w", kind, err)
		}
		return err
	}
	if isConnectionError(err) {
		return fmt.Errorf("%w: %w", errUnreachable, err)
	}
	return err
}

// classify returns the kind of an error by its code, or nil when callers do not distinguish it.
func classify(code string) error {
	switch code {
	case codeUniqueViolation, codeExclusionViolation:
		return engine.ErrDuplicate
	case codeForeignKeyViolation:
		return engine.ErrMissingReference
	case codeNoSpace, codeOutOfMemory:
		return engine.ErrFull
	case codeReadOnly:
		return engine.ErrReadOnly
	case codeDataCorrupted, codeIndexCorrupted:
		return engine.ErrCorrupt
	case codeIOError:
		return engine.ErrIO
	case codeNoNul:
		return engine.ErrConflict
	}
	switch {
	case strings.HasPrefix(code, "23"):
		return engine.ErrConflict
	case code == codeCanceled, code == codeLockTimeout, strings.HasPrefix(code, "40"), strings.HasPrefix(code, "08"),
		strings.HasPrefix(code, "53"), strings.HasPrefix(code, "57"), strings.HasPrefix(code, "25P03"):
		return engine.ErrBusy
	}
	return nil
}

// isConnectionError reports whether a connection was lost or could not be made.
func isConnectionError(err error) bool {
	var network net.Error
	var connect *pgconn.ConnectError
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.As(err, &network) || errors.As(err, &connect) || errors.Is(err, errBroken)
}

// hasCode reports whether an error is one of PostgreSQL with one of the codes.
func hasCode(err error, codes ...string) bool {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return false
	}
	for _, code := range codes {
		if pg.Code == code {
			return true
		}
	}
	return false
}

// errorOf returns an error that the server has sent.
func errorOf(msg *pgproto3.ErrorResponse) error { return pgconn.ErrorResponseToPgError(msg) }
