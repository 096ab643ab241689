package audittrail

import (
	"context"
	"crypto/hmac"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"kontor/store/engine"
	"kontor/store/query"
	"kontor/store/sealing"
)

// Several processes may use a database, and one of them replaces its master key. The others must not sign the head of the trail
// with the former one, nor seal values with it.

// follower compares the keys of this process with those of the database.
type follower struct {
	mu       sync.Mutex // held while the present keys change
	followed string     // the wrapped keyring that Follow has found last
	expected atomic.Pointer[sealing.Keys]
}

// Expect says that this process is about to replace the master key by that of other keys; nil ends it.
func (l *Ledger) Expect(next *sealing.Keys) { l.follower.expected.Store(next) }

// Adopt runs a function that changes the present keys.
func (l *Ledger) Adopt(change func() error) error {
	l.follower.mu.Lock()
	defer l.follower.mu.Unlock()
	l.follower.followed = ""
	return change()
}

const selectKeys = `SELECT name, value FROM meta WHERE name IN ('key_check', 'keyring')`

// Follow makes the master key and the keyring of the database the present ones. It returns sealing.ErrWrongKey if the master key was
// replaced by one that this process was not started with.
func (l *Ledger) Follow(ctx context.Context, q query.Querier) error {
	f := &l.follower
	f.mu.Lock()
	defer f.mu.Unlock()
	check, wrapped, err := readKeys(ctx, q)
	if err != nil || check == "" {
		return err
	}
	if isCheckOf(l.keys, check) {
		if wrapped == "" || wrapped == f.followed {
			return nil
		}
		if err := l.keys.Load(wrapped); err != nil {
			return fmt.Errorf("%w: %w", engine.ErrCorrupt, err)
		}
		f.followed = wrapped
		return nil
	}
	for candidate := range l.keys.Candidates() {
		next, err := l.keys.Candidate(candidate)
		if err != nil {
			return err
		}
		if !isCheckOf(next, check) {
			continue
		}
		if err := next.Load(wrapped); err != nil {
			return fmt.Errorf("%w: %w", engine.ErrCorrupt, err)
		}
		l.keys.Become(next)
		f.followed = wrapped
		return nil
	}
	return explainWrongKey(ctx, q, l.keys, "the database")
}

// readKeys returns the check value of the master key and the wrapped keyring, or empty texts.
func readKeys(ctx context.Context, q query.Querier) (check, wrapped string, err error) {
	rows, err := q.Query(ctx, selectKeys)
	if err != nil {
		return "", "", err
	}
	defer rows.Close()
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return "", "", err
		}
		if name == metaKeyring {
			wrapped = value
		} else {
			check = value
		}
	}
	return check, wrapped, rows.Err()
}

// isCheckOf reports whether a check value is that of the master key.
func isCheckOf(keys *sealing.Keys, check string) bool {
	for _, of := range []func(*sealing.Keys) string{ringCheck, boundCheck, oldCheck} {
		if hmac.Equal([]byte(check), []byte(of(keys))) {
			return true
		}
	}
	return false
}

// checkKeys returns nil if the database still has the master key of this process, or one that it can follow. An empty check value is
// that of a new database.
func (l *Ledger) checkKeys(ctx context.Context, q query.Querier, check string) error {
	if check == "" || isCheckOf(l.keys, check) {
		return nil
	}
	if next := l.follower.expected.Load(); next != nil && isCheckOf(next, check) {
		return nil
	}
	return l.Follow(ctx, q)
}

// PresentKeyring returns the keyring that the database has. It returns sealing.ErrWrongKey if the master key was replaced.
func (l *Ledger) PresentKeyring(ctx context.Context, q query.Querier) (sealing.Keyring, error) {
	check, wrapped, err := readKeys(ctx, q)
	if err != nil {
		return sealing.Keyring{}, err
	}
	if !isCheckOf(l.keys, check) {
		return sealing.Keyring{}, explainWrongKey(ctx, q, l.keys, "the database")
	}
	return l.keys.Unwrap(wrapped)
}

// errReplaced says that another process has replaced the master key.
var errReplaced = errors.New("another process has replaced the secret key in the meantime")
