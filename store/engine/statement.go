package engine

import "context"

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
	// Size returns how many bytes a text or bytes in column i take, and 0 for other types.
	Size(i int) int

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
