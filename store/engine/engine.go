// Package engine is the contract between the store and a database engine. Nothing above it depends on a particular engine.
//
// An engine stores tables and runs SQL statements. It reads through a bounded pool of readers and writes jobs in groups.
// The meaning of rows, the audit trail, idempotency keys and encryption belong to the layers above; an engine calls them
// through [Guard].
//
// The words must, may and does not have their ordinary meaning. [kontor/store/engine/enginetest] proves every must and
// every does not of this package that can be shown from outside. The package kontor/store/sqlite implements the contract.
//
// # SQL
//
// Statements are portable texts with parameters $1 to $n, each of which may be repeated. Values are typed: text, integer,
// boolean, floating point, bytes and NULL. Times are integers. An engine must accept the statements of the modules
// unchanged; a statement that only one engine understands stays inside that engine.
//
// # Callers and goroutines
//
// All methods of an Engine may be called from any goroutine. A Source, a Tx, and the statements of both belong to one
// goroutine at a time.
package engine

import (
	"context"
)

// An Engine is an open database.
type Engine interface {
	// Source runs single statements. Each prepared statement takes a reader of the pool and holds it until it is closed.
	//
	// Reads must see every write that was acknowledged before they began. They may see a committed write a moment before it
	// is acknowledged. They must not see anything of a job that has not been committed.
	//
	// The pool is bounded. A caller waits while no reader is free: at most for a time that the engine sets (then ErrBusy),
	// and at most until its context ends (then the context's error). A statement must end, with the context's error, soon
	// after its context has ended. While callers wait, one caller (see CallerKey) does not keep more than half of the
	// readers: the engine ends its oldest statements with ErrBusy. Statements without a caller are not ended.
	//
	// Preparing a statement fails with ErrNested within a job, and with ErrClosed after Close. Within a function of
	// AfterCommit it is allowed. The statements cannot write.
	Source

	// View calls fn with a source whose statements all see the same state of the database, whatever is committed.
	// The source holds one reader. It is closed when fn returns, and its statements return ErrClosed from then on. The
	// errors are those of Source, and the error of fn.
	View(ctx context.Context, fn func(Source) error) error

	// Write runs a job in a write transaction and returns when its outcome is durable.
	//
	// Atomicity. Either everything that the job wrote is committed, or nothing is. A job fails when it returns an
	// error, panics, ends its goroutine (runtime.Goexit), or when a statement of it has failed, whether or not it
	// returns that error. The writes of a failed job must be undone, and only they: other jobs of its group must be
	// committed.
	//
	// Isolation. Jobs run one after another; each sees the writes of all jobs before it that have not failed.
	//
	// Groups. An engine may commit several jobs in one transaction. It may therefore run a job more than once, when its
	// transaction was lost through another job's failure. Only the writes and after-commit functions of the last run
	// count. A job has no other effects than through its Tx.
	//
	// Late errors. A statement that writes may return before its success is certain. If it fails, the engine
	// must undo the job and run it again, so that the statement returns its error.
	//
	// Durability. Write must not return nil before the commit is durable: it survives a crash of the process and a loss
	// of power. It must not return the error of a failed job before everything that the job could have read is durable,
	// because a failed job may have read uncommitted rows of its group.
	//
	// Deadlines. When the context ends before the job has begun, the job does not run and Write returns the context's
	// error. The context does not interrupt a running job, because that would end the transaction of others. When the
	// context ends after the job has run and the outcome is not known within a few seconds, Write returns
	// ErrOutcomeUnknown.
	//
	// Backpressure. When too many jobs wait, Write returns ErrBusy at once, and the job does not run.
	//
	// Panics. A panic of the job reaches the caller of Write, as a text with the stack of the job. It must not
	// affect other callers.
	//
	// Nesting. Within a job and within a function of AfterCommit, Write fails at once with ErrNested, whatever context
	// is passed. An engine need not recognise a goroutine that a job started.
	//
	// After Close, Write returns ErrClosed. Storage failures are ErrFull, ErrIO, ErrReadOnly or ErrCorrupt.
	Write(ctx context.Context, job func(Tx) error) error

	// InJob reports whether the calling goroutine runs a job.
	InJob() bool

	// Cluster is what concerns the processes that share the database.
	Cluster

	// Version returns a number that grows whenever a committed job wrote to one of the tables. After Write has returned
	// nil, Version must return the new number, to every caller. A job that failed does not change it. Writes that the
	// database makes by itself, such as those of ON DELETE CASCADE, need not be counted. An engine whose tables several
	// processes write must count the commits of all of them, and reads the number from the database; its errors are those of Source.
	Version(ctx context.Context, tables ...string) (uint64, error)

	// Texts returns how statements search Config.Texts.
	Texts() TextSearch

	// Ready returns nil when the engine can read and write, and writes make progress. It returns ErrStalled when one piece
	// of work has taken too long. After a storage failure it must try a write of its own, so that it notices when there is
	// space again. It must return within a few seconds.
	Ready(ctx context.Context) error

	// Stats returns counts since the database was opened.
	Stats() Stats

	// Statements returns the texts of the statements that callers have run and that are kept compiled, sorted and without
	// repetition. The engine's own statements are not among them. It waits until every reader was free once.
	Statements(ctx context.Context) ([]string, error)

	// Explain returns the statement that asks how the database would run another one, with the same parameters, and the column of its rows that
	// has the answer as text. Nothing is run.
	Explain(sql string) (statement string, column int)

	// Clean returns nil when no file of the database holds content that was overwritten or deleted before the call, as far as
	// the engine writes the files. It may wait for readers that see an earlier state, until the context ends.
	Clean(ctx context.Context) error

	// CleanOldPages does the part of Clean that a database of an earlier version needs once. It may be interrupted.
	CleanOldPages(ctx context.Context) error

	// Unprotected returns what is missing of the protection of Config.AppendOnly, in the engine's own names.
	Unprotected(ctx context.Context, s Source) (missing []string, err error)

	// Close waits until every job that was accepted has its outcome and every after-commit function has returned. Then it
	// closes the database. After an orderly Close the next Open finds no loss. A second Close does nothing.
	Close() error
}

// A Tx is the transaction of one job. It ends when the job returns; from then on its statements return ErrClosed.
type Tx interface {
	// Source prepares statements that read and write. After a statement has failed, the Tx accepts no further ones: the job
	// must return, and it fails.
	Source

	// Err returns the error of the first statement that failed, or nil.
	Err() error

	// AfterCommit registers f, which is called once, after the commit of the job is durable and before Write returns. The
	// functions of all jobs are called one after another, in the order of the commits. Those of a failed job are not
	// called. A panic of f is logged; it affects neither the job nor other functions.
	AfterCommit(f func())

	// Announce announces the commit of the job to the receivers of a topic: on this node as a function of AfterCommit does,
	// and on other nodes as Announcement.Delivery says. Nothing of a failed job is announced.
	Announce(a Announcement)
}

// CallerKey is the key under which a context holds, as a string, the caller that its statements are run for: a user, an API
// key or a client network. Statements without a caller are the program's own.
type CallerKey struct{}

// Caller returns the caller of a context, or "".
func Caller(ctx context.Context) string {
	name, _ := ctx.Value(CallerKey{}).(string)
	return name
}
