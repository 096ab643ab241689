package store

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"kontor/store/engine"
	"kontor/store/query"
)

// clockSlack is how far the clock may go back without a correction.
const clockSlack = Time(time.Second / time.Millisecond)

// A Moment is the time of something that has happened, in a table. When it lies in the future, the clock was set back since. Queries
// count it as now. So that this comes to an end, the next transaction moves it to now, with the columns that are counted from it.
type Moment struct {
	Table string
	Of    string               // column or expression with the moment
	Moves []string             // columns that move with it, such as an expiry; and Of itself, if it is a column
	Now   func(now Time) int64 // the present time as Of counts it; nil: in milliseconds
}

// AnswerMoment is the time of a stored answer.
var AnswerMoment = Moment{Table: "idempotency_keys", Of: "created_at", Moves: []string{"created_at", "expires_at"}}

// moments are the registered moments, and which of them the clock has left behind.
type moments struct {
	seen    atomic.Int64 // time of the last transaction
	waiting atomic.Bool  // some are to be moved

	mu       sync.Mutex
	all      []Moment
	due      []bool
	lostTime bool // the clock was behind the last entry when the database was opened
}

// RegisterMoments registers moments. Call it before transactions that depend on them.
func (db *DB) RegisterMoments(list ...Moment) {
	m := &db.moments
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, one := range list {
		m.all, m.due = append(m.all, one), append(m.due, m.lostTime)
	}
	if m.lostTime {
		m.waiting.Store(true)
	}
}

// openAt notes the time of the last entry of an earlier process.
func (m *moments) openAt(now, last Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen.Store(int64(now))
	m.lostTime = last-now >= clockSlack
}

// back notes the time of a transaction, and returns how far the clock was set back.
func (m *moments) back(now Time) Time {
	seen := Time(m.seen.Load())
	if now > seen {
		m.seen.Store(int64(now))
	}
	if seen-now < clockSlack {
		return 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen.Store(int64(now))
	for i := range m.due {
		m.due[i] = true
	}
	m.waiting.Store(len(m.due) > 0)
	return seen - now
}

// base returns the time by which steps of the clock are noticed: a clock that is moved on purpose, as in a sandbox, is not set.
func (db *DB) base() Time {
	if moved, ok := db.clock.(*ShiftedClock); ok {
		return TimeOf(moved.Base())
	}
	return db.Now()
}

// followClock moves what lies in the future after the clock was set back. If it fails, the next transaction tries again.
func (db *DB) followClock(ctx context.Context) {
	m, now := &db.moments, db.Now()
	if by := m.back(db.base()); by > 0 {
		db.log.Warn("the clock was set back; times in the future count as now", "by", (time.Duration(by) * time.Millisecond).String())
	}
	if !m.waiting.Load() || db.engine.InJob() || !m.mu.TryLock() {
		return
	}
	defer m.mu.Unlock()
	err := db.engine.Write(ctx, func(tx engine.Tx) error {
		for i, one := range m.all {
			if !m.due[i] {
				continue
			}
			if _, err := query.Exec(ctx, tx, one.statement(), []any{one.now(now)}); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		clear(m.due)
		m.waiting.Store(false)
	} else if !Temporary(err) && !errors.Is(err, ErrNested) && ctx.Err() == nil {
		db.log.Error("could not move what lies in the future", "cause", err)
	}
}

// statement returns the statement that moves the moment to $1.
func (one Moment) statement() string {
	set := make([]string, len(one.Moves))
	for i, column := range one.Moves {
		set[i] = column + " = " + column + " - (" + one.Of + " - $1)"
	}
	return "UPDATE " + one.Table + " SET " + strings.Join(set, ", ") + " WHERE " + one.Of + " > $1"
}

func (one Moment) now(now Time) int64 {
	if one.Now == nil {
		return int64(now)
	}
	return one.Now(now)
}
