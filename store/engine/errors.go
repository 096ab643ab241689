package engine

import "errors"

// The kinds of errors. An engine must return an error that is one of them, by errors.Is, in the situation described. It
// should wrap what the database or the system reported.
var (
	// ErrNotFound says that a query for one row found none.
	ErrNotFound = errors.New("no such row")
	// ErrDuplicate means that a unique value exists already.
	ErrDuplicate = errors.New("duplicate value")
	// ErrMissingReference says that a row points to a missing one, or that other rows still point to it.
	ErrMissingReference = errors.New("missing reference")
	// ErrConflict says that a value breaks another rule of the table: CHECK or NOT NULL.
	ErrConflict = errors.New("value rejected by the table")
	// ErrBusy says that too many callers wait; the same call may succeed later.
	ErrBusy = errors.New("database is busy")
	// ErrFull says that there is no space for a write. Reads continue, and writes succeed again once there is space.
	ErrFull = errors.New("no space to write")
	// ErrIO says that the disk failed. After a failed write or sync the process ends, see Config.Fatal.
	ErrIO = errors.New("the disk failed")
	// ErrReadOnly says that the files cannot be written.
	ErrReadOnly = errors.New("database cannot be written")
	// ErrCorrupt says that the database is damaged, or is no database.
	ErrCorrupt = errors.New("database is damaged")
	// ErrNested says that a job, or a function that runs after a commit, called the database instead of its own
	// transaction. It is a mistake in the program: the call would wait for itself.
	ErrNested = errors.New("database was called from within a transaction")
	// ErrOutcomeUnknown says that a job has run but its commit could not be confirmed in time. It may still become durable.
	// Repeating it with the same idempotency key is safe.
	ErrOutcomeUnknown = errors.New("the outcome of the write is not known yet")
	// ErrStalled says that the database makes no progress although callers wait.
	ErrStalled = errors.New("database makes no progress")
	// ErrClosed says that the database, the transaction or the rows were closed before.
	ErrClosed = errors.New("already closed")
	// ErrNewerSchema says that a newer version of the program has migrated the database.
	ErrNewerSchema = errors.New("database was made by a newer version of Kontor")
	// ErrLoss says that the database lacks acknowledged writes. It opens only with Config.AcceptLoss.
	ErrLoss = errors.New("acknowledged writes are missing")
)

// Temporary reports whether the same call may succeed later. The client's answer is 503 then.
func Temporary(err error) bool {
	for _, kind := range []error{ErrBusy, ErrFull, ErrIO, ErrReadOnly, ErrStalled, ErrOutcomeUnknown, ErrClosed} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}
