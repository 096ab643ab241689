package enginetest

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"testing"

	"kontor/store/clock"
	"kontor/store/engine"
	"kontor/store/query"
)

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
