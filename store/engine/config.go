package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"strconv"
	"strings"
	"time"

	"kontor/store/clock"
	"kontor/store/datadir"
)

// Config is what an engine opens a database with. The function that opens it returns an [Engine] and a [Report].
//
// Opening must either succeed or leave an existing database unchanged. It must fail, with a message of one line that says
// what to do: a damaged database (ErrCorrupt), one of a newer program (ErrNewerSchema), one whose acknowledged writes are
// missing (ErrLoss, unless AcceptLoss), and everything that the Guard rejects. A start that is killed at any point must not
// keep the next one from succeeding.
type Config struct {
	// Dir is the locked data directory, for an engine that keeps its data there.
	Dir *datadir.Directory
	// URL is the address of the database, for an engine of a database server.
	URL string
	// Memory keeps what an engine of a database server has seen of the database; without one it remembers that while it runs.
	Memory Memory
	// Readers is the size of the pool of readers; 0 is the engine's default. An engine may ignore it.
	Readers int
	// Clock is the clock that decisions use; nil is the engine's own, see Cluster.Clock.
	Clock clock.Clock
	// Node is the name of this process among those that share the database; empty is the host's name and the process id.
	Node string
	// Settings is a text about the settings of this process, for Node.Settings.
	Settings string
	// Program is the version of the program, for Node.Version.
	Program string
	// Log receives failures in the background.
	Log *slog.Logger
	// Migrations holds files NNNN_name.sql. The engine must apply each once, in the order of the numbers and each in a
	// transaction, before it serves. They must create a table meta (name TEXT PRIMARY KEY, value TEXT), in which the
	// engine owns the rows whose names are declared in this package.
	Migrations fs.FS
	// AppendOnly are tables whose rows no statement may update or delete. An engine must reject such statements, and must
	// restore a protection that was removed, see Report.
	AppendOnly []string
	// Texts is the table that the engine indexes word by word; nil: none.
	Texts *TextIndex
	// Guard returns what the layers above add. The engine calls it once, as soon as it is certain whether the database is
	// new, and before it creates a new one.
	Guard func(fresh bool) (Guard, error)
	// Fatal is called once when a write or a sync of a data file has failed, with an error that names the file. From
	// then on the engine must not change any file and must not acknowledge any write. Fatal should end the process; nil
	// prints the error and ends it with status 1.
	Fatal func(error)
	// AcceptLoss opens a database that lacks acknowledged writes.
	AcceptLoss bool
	// LogLimit is the size of the engine's log in bytes from which an alarm is raised; 0 is the engine's default.
	LogLimit int64
}

// Report is what an engine found while it opened a database.
type Report struct {
	// Loss is the loss that AcceptLoss has accepted, or nil.
	Loss *Loss
	// Unprotected lists the protections of AppendOnly that a database in use lacked. They are in place again.
	Unprotected []string
}

// A Guard is what the layers above contribute to an engine: they recognise the database by the master key, verify its
// content at the start, and add the end of the audit trail to each group.
//
// The engine calls a Guard from one goroutine at a time.
type Guard interface {
	// Keyed returns a keyed digest of data, different for each purpose. The engine uses it where it stores, beside or
	// inside the database, how far the database has come.
	Keyed(purpose string, data []byte) []byte

	// FormerKeyed returns the keyed digest under the key before, which counts while the key is being replaced. It returns nil
	// at all other times.
	FormerKeyed(purpose string, data []byte) []byte

	// Recognise compares the master key with the one that the database was made with. known is false for a database that
	// does not say. It fails when the key is another one.
	Recognise(ctx context.Context, s Source) (known bool, err error)

	// Settle verifies what a database must hold at a start, and adds what a new one needs. The engine calls it after
	// Recognise, when the schema is up to date, before it serves.
	Settle(ctx context.Context, m Maintenance) error

	// Tampered returns the error that refuses a database whose content was changed without the key.
	Tampered(cause error) error

	// VerifyAll verifies all content, whatever time that takes. The engine calls it before it serves a database whose loss
	// was accepted, because what is left may be of different times.
	VerifyAll(ctx context.Context, s Source) error

	// Anchor returns the newest entry of the audit trail, and its time. Both are zero for an empty trail.
	Anchor(ctx context.Context, s Source) (Anchor, clock.Time, error)

	// CheckAnchor returns an error when an entry is missing or is not the one that the engine has recorded.
	CheckAnchor(ctx context.Context, s Source, want Anchor) error

	Ledger
}

// A Ledger follows the rows that the jobs of a group append to a chain of entries, so that it need not read the end of the
// chain for each. It is used with the engine's transaction only.
//
// An engine must call Save before each run of a job. It must call Restore when that run failed and was undone while the
// others of its group stand. It must call Forget when the whole transaction was undone or another process may have changed
// the rows. An engine whose tables several processes write must call Forget at the beginning of each group, after it has locked out the
// others: the chain's end and last moment are then read from the tables.
type Ledger interface {
	Save()
	Restore()
	Forget()
	// Seal writes the signed end of the chain. The engine calls it once for each group, last before the commit.
	Seal(tx Source) error
	// End returns the newest entry. known is false when the ledger has not looked.
	End() (end Anchor, known bool)
	// EndStatement returns the statement, without arguments, that the ledger reads the end of the chain with. It runs the
	// statement only before the first entry of a group. So an engine may run it at the beginning of each group, together with
	// others, and use the result when the ledger prepares it.
	EndStatement() string
}

// An Anchor names an entry of a chain by its number and hash.
type Anchor struct {
	Seq  int64
	Hash [32]byte
}

// Maintenance is exclusive access to a database that is not being served.
type Maintenance interface {
	Source
	// Tables returns the names of the tables, without those that belong to the engine or to its migrations.
	Tables(ctx context.Context) ([]string, error)
	// Transact runs fn in a write transaction, which is undone when fn fails.
	Transact(fn func() error) error
}

// The rows of the table meta that belong to the engine.
const (
	MetaCommits    = "commits"     // how far the database has come
	MetaLineage    = "lineage"     // which history of commits it continues
	MetaWriteProbe = "write_probe" // empty but for a moment, see Engine.Ready
)

// MetaPurpose is the row of the table meta that says what the data is for.
const MetaPurpose = "purpose"

// CopyTable is the table by which a copy from another engine marks its target as incomplete. An engine whose database other
// programs may fill must not open one that has the table.
const CopyTable = "kontor_copy"

// The statements of the table meta.
const (
	SelectMeta = `SELECT value FROM meta WHERE name = $1`

	UpsertMeta = `
	INSERT INTO meta (name, value) VALUES ($1, $2)
	ON CONFLICT (name) DO UPDATE SET value = excluded.value`

	DeleteMeta = `DELETE FROM meta WHERE name = $1`
)

// Loss says which acknowledged writes a database lacks.
type Loss struct {
	File    string // that is missing, damaged or older than it was
	Reason  string
	Commits int64      // that are missing; 0 when that is unknown
	Entries int64      // of the audit trail that are missing
	Since   clock.Time // of the newest entry that is present; 0 when there is none
	Until   clock.Time // of the newest commit that was acknowledged; 0 when that is unknown
	Advice  string     `json:"-"` // what to do about it; empty: restore the files
}

// Error says what is missing and what to do.
func (l *Loss) Error() string {
	return l.Summary() + "; " + cmp.Or(l.Advice, "put the files back or restore a backup") + ", or continue without these writes: kontor serve --accept-loss"
}

// Summary says what is missing.
func (l *Loss) Summary() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", l.File, l.Reason)
	switch {
	case l.Commits > 0 && l.Entries == 0:
		fmt.Fprintf(&b, ": %d commits are missing that were acknowledged", l.Commits)
	case l.Commits > 0 || l.Entries > 0:
		fmt.Fprintf(&b, ": %d commits with %d audit entries are missing that were acknowledged", l.Commits, l.Entries)
	default:
		b.WriteString(": writes that were acknowledged may be missing")
	}
	if l.Since > 0 {
		fmt.Fprintf(&b, " after %s", l.Since.Std().UTC().Format(time.RFC3339))
	}
	if l.Until > 0 {
		fmt.Fprintf(&b, ", up to %s", l.Until.Std().UTC().Format(time.RFC3339))
	}
	return b.String()
}

// Unwrap makes a Loss an ErrLoss.
func (l *Loss) Unwrap() error { return ErrLoss }

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

// LatestMigration returns the number of the newest of the migrations.
func LatestMigration(migrations fs.FS) (latest int64, err error) {
	names, err := fs.Glob(migrations, "*.sql")
	for _, name := range names {
		n, err := MigrationNumber(name)
		if err != nil {
			return 0, err
		}
		latest = max(latest, n)
	}
	return latest, err
}

// MigrationNumber returns the number in the name of a migration.
func MigrationNumber(name string) (int64, error) {
	digits, _, _ := strings.Cut(path.Base(name), "_")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("migration %s has no number", name)
	}
	return n, nil
}
