package enginetest

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"testing"

	"kontor/store/clock"
	"kontor/store/engine"
	"kontor/store/query"
)

// errorKinds tests that failures have the kinds of the contract.
var errorKinds = map[string]func(*testing.T, *database){
	"broken rules are distinguished": func(t *testing.T, db *database) {
		exec := func(sql string, args ...any) error {
			return db.Write(t.Context(), func(tx engine.Tx) error {
				_, err := query.Exec(t.Context(), tx, sql, args)
				return err
			})
		}
		none(t, "write", db.write(t.Context(), "a"))
		for _, c := range []struct {
			name, sql string
			args      []any
			want      error
		}{
			{"a value that is taken", insertItem, []any{"a"}, engine.ErrDuplicate},
			{"a row that points to nothing", `INSERT INTO children (name, item) VALUES ('c', $1)`, []any{"missing"}, engine.ErrMissingReference},
			{"a row that points to another", `INSERT INTO children (name, item) VALUES ('c', $1)`, []any{"a"}, nil},
			{"a row that is pointed to", `DELETE FROM items WHERE name = $1`, []any{"a"}, engine.ErrMissingReference},
			{"CHECK", `UPDATE items SET amount = $1`, []any{-1}, engine.ErrConflict},
			{"NOT NULL", `UPDATE items SET amount = $1`, []any{nil}, engine.ErrConflict},
		} {
			if err := exec(c.sql, c.args...); !errors.Is(err, c.want) {
				t.Errorf("%s: got %v, want %v", c.name, err, c.want)
			}
		}
	},
	"wrong statements fail and change nothing": func(t *testing.T, db *database) {
		none(t, "write", db.write(t.Context(), "a"))
		for name, read := range map[string]func() error{
			"too few arguments":  func() error { return db.queryRow(t.Context(), `SELECT $1`).Scan(new(int)) },
			"too many arguments": func() error { return db.queryRow(t.Context(), `SELECT 1`, 1).Scan(new(int)) },
			"a question mark":    func() error { return db.queryRow(t.Context(), `SELECT ?`, 1).Scan(new(int)) },
			"two statements":     func() error { return db.queryRow(t.Context(), `SELECT 1; DELETE FROM items`).Scan(new(int)) },
			"an unknown table":   func() error { return db.queryRow(t.Context(), `SELECT 1 FROM nowhere`).Scan(new(int)) },
			"a write by a reader": func() error {
				_, err := query.Exec(t.Context(), db.Engine, `DELETE FROM items`, nil)
				return err
			},
		} {
			if err := read(); err == nil || errors.Is(err, engine.ErrNotFound) {
				t.Errorf("%s: got %v, want an error", name, err)
			}
		}
		db.has(t, 1, "a")
	},
}

// values tests that values are read as they were written.
var values = map[string]func(*testing.T, *database){
	"values keep their type": func(t *testing.T, db *database) {
		var (
			text     string
			integer  int64
			yes      bool
			fraction float64
			null     *string
		)
		none(t, "write", db.Write(t.Context(), func(tx engine.Tx) error {
			_, err := query.Exec(t.Context(), tx, `INSERT INTO items (name, amount) VALUES ($1, $2)`, []any{"grüezi", int64(1) << 60})
			return err
		}))
		none(t, "read", db.queryRow(t.Context(), `SELECT name, amount FROM items`).Scan(&text, &integer))
		if text != "grüezi" || integer != 1<<60 {
			t.Errorf("got %q and %d", text, integer)
		}
		none(t, "constants", db.queryRow(t.Context(), `SELECT amount > 0, 0.5 * 3, NULL FROM items`).Scan(&yes, &fraction, &null))
		if !yes || fraction != 1.5 || null != nil {
			t.Errorf("got %v, %v, %v", yes, fraction, null)
		}
	},
	"a parameter may be repeated": func(t *testing.T, db *database) {
		none(t, "write", db.Write(t.Context(), func(tx engine.Tx) error {
			_, err := query.Exec(t.Context(), tx, `INSERT INTO items (name, amount) SELECT $1, $2 WHERE $2 = $2 AND $1 <> ''`, []any{"a", 7})
			return err
		}))
		db.has(t, 1, "a")
	},
	"Exec returns how many rows changed": func(t *testing.T, db *database) {
		none(t, "write", db.write(t.Context(), "a", "b", "c"))
		none(t, "update", db.Write(t.Context(), func(tx engine.Tx) error {
			for sql, want := range map[string]int64{
				`UPDATE items SET amount = 1 WHERE name < 'c'`: 2,
				`UPDATE items SET amount = 1 WHERE name = 'x'`: 0,
			} {
				if n, err := query.Exec(t.Context(), tx, sql, nil); err != nil || n != want {
					t.Errorf("%s: %d, %v, want %d", sql, n, err, want)
				}
			}
			return nil
		}))
	},
	"RETURNING returns rows of a write": func(t *testing.T, db *database) {
		var name string
		none(t, "write", db.Write(t.Context(), func(tx engine.Tx) error {
			return query.NewRow(t.Context(), tx, `INSERT INTO items (name) VALUES ($1) RETURNING name`, []any{"a"}).Scan(&name)
		}))
		if name != "a" {
			t.Errorf("got %q", name)
		}
		db.has(t, 1, "a")
	},
	"a statement may run within itself": func(t *testing.T, db *database) {
		none(t, "write", db.write(t.Context(), "a", "b", "c"))
		seen := 0
		var leaked *query.Rows
		none(t, "read", db.Write(t.Context(), func(tx engine.Tx) error {
			const names = `SELECT name FROM items`
			outer, err := query.Query(t.Context(), tx, names, nil)
			if err != nil {
				return err
			}
			for outer.Next() {
				inner, err := query.Query(t.Context(), tx, names, nil)
				if err != nil {
					return err
				}
				for inner.Next() {
					seen++
				}
			}
			leaked, err = query.Query(t.Context(), tx, names, nil)
			return errors.Join(outer.Err(), err)
		}))
		if seen != 9 {
			t.Errorf("%d rows, want 9", seen)
		}
		if leaked.Next() || !errors.Is(leaked.Err(), engine.ErrClosed) {
			t.Errorf("rows outlive their transaction: %v", leaked.Err())
		}
	},
	"LIKE distinguishes case": func(t *testing.T, db *database) {
		compare := func(s engine.Source) error {
			var same, other bool
			err := query.NewRow(t.Context(), s, `SELECT 'abc' LIKE 'ab%', 'ABC' LIKE 'ab%'`, nil).Scan(&same, &other)
			if !same || other {
				t.Errorf("same case %v, other case %v", same, other)
			}
			return err
		}
		none(t, "read", compare(db.Engine))
		none(t, "read in a job", db.Write(t.Context(), func(tx engine.Tx) error { return compare(tx) }))
	},
}

// reading tests the pool of readers and views.
var reading = map[string]func(*testing.T, *database){
	"a view sees one state": func(t *testing.T, db *database) {
		none(t, "write", db.write(t.Context(), "a"))
		var kept engine.Source
		none(t, "view", db.View(t.Context(), func(s engine.Source) error {
			kept = s
			count := func() (n int) {
				none(t, "read", query.NewRow(t.Context(), s, `SELECT COUNT(*) FROM items`, nil).Scan(&n))
				return n
			}
			before := count()
			if err := db.write(t.Context(), "b"); err != nil {
				return err
			}
			if n := count(); n != before {
				t.Errorf("the view saw %d rows, then %d", before, n)
			}
			return nil
		}))
		is(t, "a statement after the view", query.NewRow(t.Context(), kept, "SELECT 1", nil).Scan(new(int)), engine.ErrClosed)
		db.has(t, 2, "a", "b")
	},
	"a write is seen by every reader when it was acknowledged": func(t *testing.T, db *database) {
		for i := range 20 {
			name := fmt.Sprint(i)
			none(t, "write", db.write(t.Context(), name))
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() { db.has(t, 1, name) })
			}
			wg.Wait()
		}
	},
	"views and rows return their readers": func(t *testing.T, db *database) {
		for range 50 {
			ctx, cancel := context.WithCancel(t.Context())
			rows, err := query.Query(ctx, db.Engine, twoRows, nil)
			if err != nil {
				t.Fatal(err)
			}
			rows.Next()
			rows.Close()
			if err := rows.Scan(new(int)); !errors.Is(err, engine.ErrClosed) {
				t.Errorf("closed rows: %v", err)
			}
			_ = db.View(ctx, func(s engine.Source) error {
				_, err := query.Query(ctx, s, endlessRows, nil) // never closed
				cancel()
				return err
			})
			cancel()
		}
		db.has(t, 0, "a")
	},
	"the error of a view's function is returned": func(t *testing.T, db *database) {
		is(t, "view", db.View(t.Context(), func(engine.Source) error { return errRejected }), errRejected)
	},
}

// ledger numbers the rows of the table entries. It is a chain of entries as simple as the contract allows.
type ledger struct {
	known      bool
	last       int64
	saved      int64
	savedKnown bool
	sealed     int64 // last entry that was sealed
	seals      int
}

func (l *ledger) Save()    { l.saved, l.savedKnown = l.last, l.known }
func (l *ledger) Restore() { l.last, l.known = l.saved, l.savedKnown }
func (l *ledger) Forget()  { l.known = false }

func (l *ledger) End() (engine.Anchor, bool) { return anchorOf(l.last), l.known }

// append appends an entry within a job.
func (l *ledger) append(tx engine.Tx, text string) error {
	if !l.known {
		if err := query.NewRow(context.Background(), tx, l.EndStatement(), nil).Scan(&l.last); err != nil {
			return err
		}
		l.known, l.sealed = true, l.last
	}
	l.last++
	_, err := query.Exec(context.Background(), tx, `INSERT INTO entries (seq, text) VALUES ($1, $2)`, []any{l.last, text})
	return err
}

func (l *ledger) EndStatement() string { return `SELECT COALESCE(MAX(seq), 0) FROM entries` }

func (l *ledger) Seal(tx engine.Source) error {
	if !l.known || l.sealed == l.last {
		return nil
	}
	l.sealed = l.last
	l.seals++
	_, err := query.Exec(context.Background(), tx, engine.UpsertMeta, []any{"sealed", fmt.Sprint(l.last)})
	return err
}

func anchorOf(seq int64) engine.Anchor {
	return engine.Anchor{Seq: seq, Hash: sha256.Sum256(fmt.Append(nil, seq))}
}

// guard accepts every database.
type guard struct{ *ledger }

func (guard) FormerKeyed(string, []byte) []byte { return nil }

func (guard) Keyed(purpose string, data []byte) []byte {
	mac := hmac.New(sha256.New, []byte(purpose))
	mac.Write(data)
	return mac.Sum(nil)
}

func (guard) Recognise(context.Context, engine.Source) (bool, error) { return true, nil }
func (guard) Settle(context.Context, engine.Maintenance) error       { return nil }
func (guard) Tampered(cause error) error                             { return cause }
func (guard) VerifyAll(context.Context, engine.Source) error         { return nil }
func (guard) Anchor(ctx context.Context, s engine.Source) (engine.Anchor, clock.Time, error) {
	var seq int64
	err := query.NewRow(ctx, s, `SELECT COALESCE(MAX(seq), 0) FROM entries`, nil).Scan(&seq)
	return anchorOf(seq), 0, err
}

func (guard) CheckAnchor(ctx context.Context, s engine.Source, want engine.Anchor) error {
	var n int
	return query.NewRow(ctx, s, `SELECT 1 FROM entries WHERE seq = $1`, []any{want.Seq}).Scan(&n)
}

// ledgers test how an engine uses a Ledger, and append-only tables.
var ledgers = map[string]func(*testing.T, *database){
	"a ledger is restored for a failed job and sealed once for a group": func(t *testing.T, db *database) {
		release := db.busyWriter(t)
		before := db.Stats().Commits
		var results []chan error
		for i := range 6 {
			results = append(results, db.enqueue(t.Context(), func(tx engine.Tx) error {
				if err := db.ledger.append(tx, fmt.Sprint(i)); err != nil {
					return err
				}
				if i%3 == 2 {
					return errRejected
				}
				return nil
			}))
		}
		release()
		for i, result := range results {
			if err := <-result; (i%3 == 2) != (err != nil) {
				t.Errorf("job %d: %v", i, err)
			}
		}
		var n, last int64
		none(t, "read", db.queryRow(t.Context(), `SELECT COUNT(*), MAX(seq) FROM entries`).Scan(&n, &last))
		if n != 4 || last != 4 {
			t.Errorf("%d entries, the last has number %d, want 4 without gaps", n, last)
		}
		var sealed string
		none(t, "read", db.queryRow(t.Context(), engine.SelectMeta, "sealed").Scan(&sealed))
		if commits := db.Stats().Commits - before; sealed != "4" || db.ledger.seals > int(commits) {
			t.Errorf("entry %s is sealed by %d seals in %d commits, want entry 4 and one seal a commit", sealed, db.ledger.seals, commits)
		}
	},
	"rows of an append-only table cannot be changed": func(t *testing.T, db *database) {
		none(t, "append", db.Write(t.Context(), func(tx engine.Tx) error { return db.ledger.append(tx, "a") }))
		for _, sql := range []string{`UPDATE entries SET text = 'x'`, `DELETE FROM entries`} {
			is(t, sql, db.Write(t.Context(), func(tx engine.Tx) error {
				_, err := query.Exec(t.Context(), tx, sql, nil)
				return err
			}), engine.ErrConflict)
		}
		missing, err := db.Unprotected(t.Context(), db.Engine)
		if err != nil || len(missing) != 0 {
			t.Errorf("unprotected: %v, %v", missing, err)
		}
	},
}
