package store

import (
	"context"
	"fmt"
	"time"

	"kontor/store/audittrail"
	"kontor/store/clock"
	"kontor/store/datadir"
	"kontor/store/engine"
	"kontor/store/idempotency"
	"kontor/store/query"
	"kontor/store/sealing"
)

// The types that modules use, from the packages below.
type (
	// Clock returns the present time.
	Clock = clock.Clock
	// ShiftedClock shows another time than the clock below it.
	ShiftedClock = clock.Shifted
	// Time is a moment in Unix milliseconds, UTC.
	Time = clock.Time

	// Querier runs statements that read: *DB, *View and *Tx.
	Querier = query.Querier
	// Rows steps through the result of a query.
	Rows = query.Rows
	// Row is a query for one row.
	Row = query.Row
	// View reads one state of the database.
	View = query.View

	// Stats are counts since the database was opened.
	Stats = engine.Stats
	// Timing is how often something was done, and how long it took.
	Timing = engine.Timing
	// Loss says which acknowledged writes a database lacks.
	Loss = engine.Loss
	// CallerKey is the context key of the caller that statements are run for.
	CallerKey = engine.CallerKey

	// AuditEntry says who did what to which record.
	AuditEntry = audittrail.Entry
	// Origin is where a change or an event came from.
	Origin = audittrail.Origin
	// Record is a record as the audit trail sees it.
	Record = audittrail.Record
	// Digest is what the audit trail stores of a record.
	Digest = audittrail.Digest

	// Idempotency identifies a request that may be repeated.
	Idempotency = idempotency.Request
	// Answer is the answer of a request, encoded once. Make one with [DB.Answer] and hand it to [Tx.Respond].
	Answer = idempotency.Answer
	// Encoded is an answer in the forms in which it is digested, sent and kept for repetitions.
	Encoded = idempotency.Encoded
	// Responder is a request that encodes the answers of its transactions. When it encodes, it must read the database with
	// [QuerierFrom].
	Responder = idempotency.Responder
	// ResponderKey is the context key of the responder.
	ResponderKey = idempotency.ResponderKey
	// Replay is the error of a request that was answered before. It holds the answer.
	Replay = idempotency.Replay
)

// ReusedText is a destination of texts whose memory is used again by the next scan.
type ReusedText = query.ReusedText

// Ignored is the destination of a column that Scan does not read.
var Ignored = query.Ignored

// The kinds of errors, to distinguish with errors.Is. See the packages below for their meaning.
var (
	ErrNotFound         = engine.ErrNotFound
	ErrDuplicate        = engine.ErrDuplicate
	ErrMissingReference = engine.ErrMissingReference
	ErrConflict         = engine.ErrConflict
	ErrBusy             = engine.ErrBusy
	ErrFull             = engine.ErrFull
	ErrIO               = engine.ErrIO
	ErrReadOnly         = engine.ErrReadOnly
	ErrCorrupt          = engine.ErrCorrupt
	ErrNested           = engine.ErrNested
	ErrOutcomeUnknown   = engine.ErrOutcomeUnknown
	ErrStalled          = engine.ErrStalled
	ErrClosed           = engine.ErrClosed
	ErrNewerSchema      = engine.ErrNewerSchema
	ErrLoss             = engine.ErrLoss
	ErrTampered         = audittrail.ErrTampered
	ErrWrongKey         = sealing.ErrWrongKey
	ErrNoKey            = sealing.ErrNoKey
	ErrInUse            = datadir.ErrInUse
)

// Temporary reports whether the same call may succeed later. The client's answer is 503 then.
func Temporary(err error) bool { return engine.Temporary(err) }

// TimeOf returns t, cut to milliseconds.
func TimeOf(t time.Time) Time { return clock.Of(t) }

// ParseTime reads RFC 3339 with any offset and fraction.
func ParseTime(s string) (Time, error) { return clock.Parse(s) }

// CheckLog returns an error while the write-ahead log is larger than its limit. The database can be used nevertheless.
func (db *DB) CheckLog(context.Context) error {
	if s := db.Stats(); s.LogOverLimit {
		return fmt.Errorf("the write-ahead log has %d bytes and cannot be emptied; its limit is %d", s.LogBytes, s.LogLimit)
	}
	return nil
}
