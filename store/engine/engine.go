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
	"strings"
	"time"
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

// A Source prepares statements: on a reader of the pool, on one state of the database, or in a transaction.
type Source interface {
	// Prepare returns a statement to run once. The engine may keep its compiled form and find it again by the text, so
	// texts must not contain values. The text must be exactly one statement.
	//
	// In a View and in a Tx the context is not used: the View's own context, or none, interrupts the statement.
	Prepare(ctx context.Context, sql string) (Statement, error)

	// Failed must be called with the error of a statement that failed in Step. It returns that error.
	Failed(err error) error
}

// A Statement is prepared, run once and closed, in this order:
//
//	run := s.Begin()      marks the beginning of the run
//	s.BindText(1, "x")    once for each argument from 1 to Args
//	s.Step()              until it returns false or an error; after each true the columns hold a row
//	s.Close()
//
// The value of a Statement may be used again by a later Prepare with the same text, after Close and never before. Holders
// of a run compare its number with Running before they touch a Statement that its owner may have closed.
type Statement interface {
	// Args returns how many arguments the statement takes: the highest n of its parameters $n.
	Args() int

	// Begin begins a run and returns its number.
	Begin() (run uint64)
	// Running reports whether the run with this number has begun and was not closed.
	Running(run uint64) bool

	// The Bind methods set argument n, counted from 1. An argument that no parameter names is ignored. The engine must not
	// keep the memory of a value after the call.
	BindNull(n int) error
	BindInt(n int, v int64) error
	BindBool(n int, v bool) error
	BindFloat(n int, v float64) error
	BindText(n int, v string) error
	BindTextBytes(n int, v []byte) error // a text that is held as bytes
	BindBytes(n int, v []byte) error

	// Step runs the statement up to its next row and reports whether there is one. Its errors have the kinds of this
	// package, or are the error of a context that has ended.
	Step() (more bool, err error)
	// Changed returns how many rows the run inserted, updated or deleted. It is valid after Step has returned false.
	Changed() int64

	// Columns returns the number of columns of a row.
	Columns() int
	// Name returns the name of column i, counted from 0.
	Name(i int) string
	// Type returns the type of column i in the current row. Call it before reading the value.
	Type(i int) Type
	// Int, Float, Text and Bytes return the value of column i in the current row. A boolean is 0 or 1. The memory belongs
	// to the caller.
	Int(i int) int64
	Float(i int) float64
	Text(i int) string
	Bytes(i int) []byte
	// AppendText appends the text in column i to b.
	AppendText(b []byte, i int) []byte

	// Close ends the run and frees what it holds: for a statement of the pool, its reader. A second Close does nothing.
	Close()
}

// Type is the type of a value in a row.
type Type int

// The types. An engine without a boolean type returns Integer.
const (
	Null Type = iota
	Integer
	Boolean
	Float
	Text
	Bytes
)

// An Inspection reads a database without its Engine: beside the process that uses it, or without one. It must not change
// the database. Its methods belong to one goroutine at a time.
type Inspection interface {
	Source
	// Tables returns the names of the tables, as in Maintenance.
	Tables(ctx context.Context) ([]string, error)

	// Path names the database in messages, and Bytes is its size.
	Path() string
	Bytes() int64

	// Begin makes everything that follows see one state of the database, and end with the context.
	Begin(ctx context.Context) error
	// Schema returns the number of the newest migration that was applied, 0 for an empty database.
	Schema() (int64, error)
	// Verify verifies all of the storage: pages, indexes, and references between rows. The error is ErrCorrupt for damage,
	// and ErrIO for a read that failed. It returns how many pages were compared with a checksum.
	Verify(ctx context.Context) (pages int64, err error)
	// IgnoreChecksums makes reads accept damaged pages, to find out what differs. Call it before Begin.
	IgnoreChecksums()
	// Unprotected returns what is missing of the protection of append-only tables.
	Unprotected(ctx context.Context, tables []string) ([]string, error)

	// CopyTo writes one state of the database to an empty file.
	CopyTo(ctx context.Context, path string) error
	// Close ends the inspection.
	Close() error
}

// A TextIndex is a table whose texts an engine indexes word by word. The texts hold words in lower case, separated by blanks. The
// index is derived from the table: an engine creates a missing one, and keeps it current within the transactions that write
// to the table. Words that a statement removes from the table must not stay in the index, not even in unused bytes.
type TextIndex struct {
	Table   string
	Number  string   // the column with the primary key, an integer
	Columns []string // the columns with texts; a row is found by the words of all of them
	// Progress is a table whose rows are deleted, with those of Table, when the index was missing: the table is filled again.
	Progress string
}

// A TextQuery selects the rows in which all words of one of the alternatives occur.
type TextQuery []TextWords

// Expression returns the query in the language of an engine, with its operators, the mark after a prefix, and its form of a word.
func (q TextQuery) Expression(or, and, prefix string, quote func(word string) string) string {
	alternatives := make([]string, len(q))
	for i, alternative := range q {
		words := make([]string, len(alternative.Words))
		for j, word := range alternative.Words {
			words[j] = quote(word)
		}
		alternatives[i] = "(" + strings.Join(words, and)
		if alternative.Prefix {
			alternatives[i] += prefix
		}
		alternatives[i] += ")"
	}
	return strings.Join(alternatives, or)
}

// TextWords are words that must occur in one row, in any order. They consist of letters, digits and marks. With Prefix the last
// one may be the beginning of a word.
type TextWords struct {
	Words  []string
	Prefix bool
}

// TextSearch is how the statements of an engine search a TextIndex.
type TextSearch struct {
	// Matching is a SELECT of the numbers of the matching rows, and Some one of at most $2 of them. $1 is the text of Expression.
	Matching, Some string
	// Expression returns the form of a query, which is not empty.
	Expression func(TextQuery) string
}

// Stats are counts since the database was opened, and the state of the moment.
type Stats struct {
	Writes      uint64        // jobs that were committed
	Commits     uint64        // groups that wrote, each with one sync
	Refused     uint64        // jobs rejected because too many waited
	Checkpoints uint64        // that copied committed pages from the log into the database
	Queued      int           // jobs that wait now
	Readers     int           // queries and views that wait for a reader now
	ClockSteps  uint64        // how often the clock of a database server was set by more than a few seconds
	Revoked     uint64        // statements ended because their caller held more than its share while others waited
	Working     time.Duration // how long the current piece of work has taken; near 0 while all goes well
	Stalled     bool          // Working is too long, and Ready fails

	LogBytes     int64 // size of the write-ahead log
	LogUncopied  int64 // pages of it that are not in the database file yet
	LogLimit     int64 // from which an alarm is raised
	LogOverLimit bool
	Sync         Timing // of the log, for a group
	Checkpoint   Timing // those that copied something
}

// Timing is how often something was done, and how long it took.
type Timing struct {
	Count       int64
	Total, Last time.Duration
}

// A Counting is a statement that counts rows and that an engine may bring up to date instead of running it again.
type Counting struct {
	// SQL is SELECT value AS value, count(*) AS rows FROM … WHERE … [GROUP BY 1].
	SQL  string
	Args []any
	// Each is the statement of SQL before it counts and groups: SELECT value AS value FROM … WHERE …. An engine may run it instead and
	// count the values itself. Empty for a count without groups.
	Each string
	// Whole is another statement with the result of SQL, which counts all rows faster, and WholeArgs are its arguments. Empty: SQL does.
	Whole     string
	WholeArgs []any
	// Rows are the tables whose rows are counted or decide what is counted, each with its key. Whether a row counts must depend only
	// on rows of these tables with the same key. A table may occur only once in FROM; SQL must name it without its schema.
	Rows []KeyedTable
	// Tables are the other tables that SQL reads. When one of them changes, the rows are counted again.
	Tables []string
	// MaxGroups bounds the groups: with more, counting is not worth remembering. Zero is no bound.
	MaxGroups int
	// Only returns conditions that each row of the first table of Rows must meet to be counted; nil: there are none. They need not be
	// all of its conditions: they tell which rows need not be looked at. It is called only when a count is brought up to date.
	Only func(ctx context.Context) ([]Alternatives, error)
}

// A KeyedTable is a table with the column whose value the rows that belong together share.
type KeyedTable struct {
	Table string
	Key   string
	// View is the view by which SQL names the table, if it is one. It must have the columns of the table under the same names.
	View string
}

// Alternatives is a condition that holds when one of its parts does.
type Alternatives struct {
	Equal []Equal
	Keys  map[string]bool // the row's key is one of these
}

// Equal is the condition that a column has a value: a string, an int64 or a bool.
type Equal struct {
	Column string
	Value  any
}

// A Group is a counted value with the number of its rows.
type Group struct {
	Value any
	Rows  int64
}

// Counter is implemented by engines that know which rows each commit touched. Commits are numbered; zero is before the first.
type Counter interface {
	// Count runs the statement and returns the number of the commit whose state it has counted.
	Count(ctx context.Context, c *Counting) (groups []Group, at int64, err error)
	// Committed returns the number of the newest commit that may have been acknowledged.
	Committed() int64
	// Unchanged reports that no acknowledged commit after the one with the number at has touched the tables of c.Rows. It takes
	// no reader. False means that it is not known.
	Unchanged(c *Counting, at int64) bool
	// Difference returns what must be added to the groups as of the commit at, and the commit as of which they are right then. It
	// returns false when the engine does not know, or when counting would be cheaper.
	Difference(ctx context.Context, c *Counting, at int64) (groups []Group, now int64, known bool, err error)
}
