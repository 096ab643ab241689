package serviceaccounts

import (
	"context"
	"errors"
	"sync/atomic"

	"kontor/store"
)

// FlushUse writes the times of last use of the tokens, and the new hashes of tokens whose hash is under a former key. Requests
// write nothing themselves. Call it about once a minute. The times leave no audit entry.
func (s *Service) FlushUse(ctx context.Context) error {
	if err := s.writeRehashed(ctx); err != nil {
		return err
	}
	uses := map[string]int64{}
	s.uses.Range(func(id, used any) bool {
		if at := used.(*atomic.Int64).Swap(0); at > 0 {
			uses[id.(string)] = at
		}
		return true
	})
	if len(uses) == 0 {
		return nil
	}
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		for id, at := range uses {
			if _, err := tx.Exec(ctx, updateUse, id, store.Time(at)); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		return nil
	}
	for id, at := range uses { // restore the times, except of tokens that were used since
		if used, ok := s.uses.Load(id); ok {
			used.(*atomic.Int64).CompareAndSwap(0, at)
		}
	}
	return err
}

// rehashed is the new hash of a token that was used.
type rehashed struct{ older, newest string }

// writeRehashed stores the new hashes of the tokens that were used since the last call.
func (s *Service) writeRehashed(ctx context.Context) error {
	var failed error
	s.rehash.Range(func(id, value any) bool {
		hash := value.(rehashed)
		failed = s.db.InTx(ctx, func(tx *store.Tx) error {
			was, _, err := readToken(ctx, tx, id.(string))
			if errors.Is(err, store.ErrNotFound) {
				return nil
			}
			if err != nil {
				return err
			}
			changed, err := tx.Exec(ctx, updateHash, id, hash.older, hash.newest)
			if err != nil || changed == 0 {
				return err
			}
			return tokenProof.AuditEntry(ctx, tx, store.AuditEntry{Actor: store.NilID, Action: actionRehash, RecType: tokenProof.Type,
				RecID: id.(string), Before: was})
		})
		if failed == nil {
			s.rehash.CompareAndDelete(id, value)
		}
		return failed == nil
	})
	return failed
}

// ForgetOlderHashes removes the former keys of hashes when no valid token needs them. Call it about once an hour.
func (s *Service) ForgetOlderHashes(ctx context.Context) error {
	if len(s.db.KeyedOlder(hashPurpose, nil)) == 0 {
		return nil
	}
	var n int64
	if err := s.db.QueryRow(ctx, countOlderHashes, generationPrefix(s.db.KeyGeneration())+"%", s.db.Now()).Scan(&n); err != nil || n > 0 {
		return err
	}
	return s.db.ForgetKeyed(ctx, hashPurpose)
}
