package records

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"kontor/store"
)

// Uses notes when secrets of programs were last used, and which of them need a hash under the newest key. Requests write nothing
// themselves: [Uses.Flush] does. The zero value with the first four members is ready.
type Uses struct {
	Proof      Proof
	Action     string // of the audit entry of a new hash
	UpdateUse  string // statement that stores the time of the last use: id, time
	UpdateHash string // statement that replaces a hash: id, older hash, newest hash

	times  sync.Map // id of a secret → *atomic.Int64 with the time of its latest use
	hashes sync.Map // id of a secret → rehashed, until it is written
}

// rehashed is the new hash of a secret that was used.
type rehashed struct{ older, newest string }

// Of returns where the time of the latest use of a secret is noted.
func (u *Uses) Of(id string) *atomic.Int64 {
	used, _ := u.times.LoadOrStore(id, new(atomic.Int64))
	return used.(*atomic.Int64)
}

// Rehash notes that the hash of a secret must be replaced.
func (u *Uses) Rehash(id, older, newest string) { u.hashes.Store(id, rehashed{older, newest}) }

// Flush writes the times of the latest uses, and the new hashes. Call it about once a minute. The times leave no audit entry.
func (u *Uses) Flush(ctx context.Context, db *store.DB) error {
	if err := u.writeHashes(ctx, db); err != nil {
		return err
	}
	uses := map[string]int64{}
	u.times.Range(func(id, used any) bool {
		if at := used.(*atomic.Int64).Swap(0); at > 0 {
			uses[id.(string)] = at
		}
		return true
	})
	if len(uses) == 0 {
		return nil
	}
	err := db.InTx(ctx, func(tx *store.Tx) error {
		for id, at := range uses {
			if _, err := tx.Exec(ctx, u.UpdateUse, id, store.Time(at)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		for id, at := range uses { // restore the times, except of secrets that were used since
			u.Of(id).CompareAndSwap(0, at)
		}
	}
	return err
}

func (u *Uses) writeHashes(ctx context.Context, db *store.DB) error {
	var failed error
	u.hashes.Range(func(id, value any) bool {
		hash := value.(rehashed)
		failed = db.InTx(ctx, func(tx *store.Tx) error {
			was, err := u.Proof.Read(ctx, tx, id.(string))
			if errors.Is(err, store.ErrNotFound) {
				return nil
			}
			if err != nil {
				return err
			}
			changed, err := tx.Exec(ctx, u.UpdateHash, id, hash.older, hash.newest)
			if err != nil || changed == 0 {
				return err
			}
			return u.Proof.AuditEntry(ctx, tx, store.AuditEntry{Actor: store.NilID, Action: u.Action, RecType: u.Proof.Type, RecID: id.(string), Before: was})
		})
		if failed == nil {
			u.hashes.CompareAndDelete(id, value)
		}
		return failed == nil
	})
	return failed
}
