package store

import (
	"context"
	"errors"

	"kontor/store/sealing"
)

// On a shared database any node may replace the master key. The others are informed before the replacement is acknowledged, and go on
// with the new key if they were started with it. A node that was not must neither write nor answer.

// keysTopic is the topic of changes to the master key and the keyring.
const keysTopic = "store.keys"

// announceKeys makes other nodes follow a change of the keys.
func (tx *Tx) announceKeys() {
	if tx.db.Shared() {
		tx.Announce(tx.db.keysChanged, "")
	}
}

// followTries is how often changed keys are read before requests have to try.
const followTries = 3

// keysHaveChanged follows a change of the keys on any node.
func (db *DB) keysHaveChanged(string) {
	var err error
	for range followTries {
		if err = db.RenewKeys(context.Background()); err == nil || errors.Is(err, ErrWrongKey) || errors.Is(err, ErrClosed) {
			return
		}
	}
	db.log.Error("the keys of the database cannot be read; requests are rejected until the next successful try", "cause", err)
}

// KeysCurrent reports whether this process has the present keys of the database, after all announcements so far. While it
// returns false, requests must call RenewKeys.
func (db *DB) KeysCurrent() bool { return db.keysStale.Load() == nil }

// RenewKeys reads the keys of the database again, for a node that may have missed a change. It returns ErrWrongKey when another node
// has replaced the master key and this process was not started with the new one.
func (db *DB) RenewKeys(ctx context.Context) error {
	err := db.guard.Follow(ctx, db)
	if err == nil {
		db.keysStale.Store(nil)
		return nil
	}
	if before := db.keysStale.Swap(&err); errors.Is(err, ErrWrongKey) && (before == nil || !errors.Is(*before, ErrWrongKey)) {
		db.log.Error("the secret key was replaced by another node; start this node again with the new one in KONTOR_SECRET_KEY. Until then it rejects requests", "cause", err)
	}
	return err
}

// keysLost returns ErrWrongKey once the master key was replaced by one that this process does not have.
func (db *DB) keysLost() error {
	if err := db.keysStale.Load(); err != nil && errors.Is(*err, ErrWrongKey) {
		return *err
	}
	return nil
}

// missesKey reports whether a value could not be opened because another node has sealed it with keys that this one does not have
// yet. Then the keys are read again, and it is worth another try.
func (db *DB) missesKey(ctx context.Context, err error) bool {
	return errors.Is(err, sealing.ErrGeneration) && db.Shared() && !db.engine.InJob() && db.RenewKeys(ctx) == nil
}
