package audittrail

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"kontor/store/clock"
	"kontor/store/engine"
	"kontor/store/query"
	"kontor/store/sealing"
)

// ErrTampered means that the database was changed without the program.
var ErrTampered = errors.New("tampered with")

// Guard verifies a database at its start, and keeps its trail. It implements engine.Guard.
type Guard struct {
	Ledger
	path   string // of the database, for messages
	state  keyState
	lastAt clock.Time
}

// NewGuard returns the guard of the database at a path.
func NewGuard(keys *sealing.Keys, path string) *Guard {
	return &Guard{Ledger: Ledger{keys: keys}, path: path}
}

// Keyed returns a keyed digest for the engine's own purposes.
func (g *Guard) Keyed(purpose string, data []byte) []byte { return g.keys.Sign(purpose, data) }

// FormerKeyed returns the keyed digest under the master key before, while it is being replaced.
func (g *Guard) FormerKeyed(purpose string, data []byte) []byte {
	return g.keys.SignedBefore(purpose, data)
}

// Recognise finds the master key that the database was made with, among those that may be. It returns sealing.ErrWrongKey.
func (g *Guard) Recognise(ctx context.Context, s engine.Source) (known bool, err error) {
	g.state, err = recognise(ctx, query.NewView(s, 0), g.keys, g.path)
	return g.state != keyUnset, err
}

// Tampered returns one line with the reason why the start is rejected, and the next step.
func (g *Guard) Tampered(cause error) error {
	return fmt.Errorf("%s was %w and was left as it is: %w; keep the file as evidence, run \"kontor check\", and restore a backup", g.path, ErrTampered, cause)
}

// Settle verifies the head of a database that must have one. It adds a head to a new database, and to one of an earlier
// version with an empty trail. It rejects every other database without a head, because continuing would sign the rest of
// the trail.
func (g *Guard) Settle(ctx context.Context, m engine.Maintenance) error {
	q := query.NewView(m, 0)
	if g.state == keyUnset {
		blank, err := isBlank(ctx, m)
		if err != nil {
			return err
		}
		if !blank {
			return g.Tampered(&Break{Reason: "the check value of the secret key is missing"})
		}
	} else if err := verifyHead(ctx, q, g.keys); err != nil {
		if broken := (*Break)(nil); errors.As(err, &broken) {
			return g.Tampered(err)
		}
		return err
	}
	if g.state == keyBound || g.state == keyRing {
		return nil
	}
	return m.Transact(func() error {
		newest, _, err := readHead(ctx, q)
		if err == nil {
			err = putMeta(m, metaHead, signHead(g.keys, newest))
		}
		if err == nil {
			err = putMeta(m, metaKeyCheck, boundCheck(g.keys))
		}
		return err
	})
}

// VerifyAll verifies the check value of the key and the whole trail.
func (g *Guard) VerifyAll(ctx context.Context, s engine.Source) error {
	q := query.NewView(s, 0)
	if _, err := recognise(ctx, q, g.keys, g.path); err != nil {
		return err
	}
	_, err := Verify(ctx, q, g.keys)
	return err
}

const selectNewest = `SELECT seq, hash, at FROM audit_entries ORDER BY seq DESC LIMIT 1`

// LastEntryAt returns the time of the newest entry that the last Anchor found.
func (g *Guard) LastEntryAt() clock.Time { return g.lastAt }

// Anchor returns the newest entry and its time.
func (g *Guard) Anchor(ctx context.Context, s engine.Source) (a engine.Anchor, at clock.Time, err error) {
	var hash string
	err = query.NewView(s, 0).QueryRow(ctx, selectNewest).Scan(&a.Seq, &hash, &at)
	if errors.Is(err, engine.ErrNotFound) {
		return engine.Anchor{}, 0, nil
	}
	if err == nil {
		a.Hash, err = parseHash(hash)
	}
	g.lastAt = at
	return a, at, err
}

// CheckAnchor returns a *Break when the trail lacks an entry that the engine has recorded. That is no loss when no commit
// is missing: the trail was changed.
func (g *Guard) CheckAnchor(ctx context.Context, s engine.Source, want engine.Anchor) error {
	hash, err := HashOf(ctx, s, want.Seq)
	if err != nil && !errors.Is(err, engine.ErrNotFound) {
		return err
	}
	if err == nil && hash == hex.EncodeToString(want.Hash[:]) {
		return nil
	}
	return &Break{Seq: want.Seq, Reason: "it is missing, or not the one that the mark beside the database names"}
}

// HashOf returns the hash of an entry, in hexadecimal. It returns engine.ErrNotFound when there is no such entry.
func HashOf(ctx context.Context, s engine.Source, seq int64) (hash string, err error) {
	err = query.NewView(s, 0).QueryRow(ctx, selectHash, seq).Scan(&hash)
	return hash, err
}

// CheckKey compares the master key with a database that is being checked. It returns sealing.ErrWrongKey, or a *Break when
// the check value is missing although the database is not empty.
func CheckKey(ctx context.Context, m Tables, keys *sealing.Keys, path string) error {
	state, err := recognise(ctx, query.NewView(m, 0), keys, path)
	if err != nil || state != keyUnset {
		return err
	}
	blank, err := isBlank(ctx, m)
	if err == nil && !blank {
		err = &Break{Reason: "the check value of the secret key is missing"}
	}
	return err
}

// Tables is a source that lists its tables.
type Tables interface {
	engine.Source
	Tables(ctx context.Context) ([]string, error)
}

// isBlank reports whether a database has a schema and not a single row: its first start was interrupted.
func isBlank(ctx context.Context, t Tables) (bool, error) {
	names, err := t.Tables(ctx)
	if err != nil {
		return false, err
	}
	q := query.NewView(t, 0)
	for _, name := range names {
		var filled bool
		if err := q.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM "`+name+`")`).Scan(&filled); err != nil || filled {
			return false, err
		}
	}
	return true, nil
}

// AppendOnlyTables returns the tables whose rows no statement may update or delete.
func AppendOnlyTables() []string { return []string{"audit_entries"} }
