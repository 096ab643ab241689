package auth

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"

	"kontor/store"
)

// RotateSigningKey makes a new key sign access tokens. Tokens of the former keys stay valid for their life; with drop they are
// rejected from now on, and clients refresh them.
func (s *Service) RotateSigningKey(ctx context.Context, drop bool) error {
	s.changingKeys.Lock()
	defer s.changingKeys.Unlock()
	return s.addSigningKey(ctx, drop)
}

// addSigningKey adds a key that signs from now on. Callers must hold the lock.
func (s *Service) addSigningKey(ctx context.Context, drop bool) error {
	seed := make([]byte, ed25519.SeedSize)
	rand.Read(seed) // does not fail: it would end the program
	added := newSigningKey(seed)
	before := s.signing.Load()
	added.number = 1
	if before.active != nil {
		added.number = before.active.number + 1
	}
	sealed, err := s.db.Seal(signingTable, signingColumn, added.kid, seed)
	if err != nil {
		return err
	}
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		sealed, err := tx.Reseal(signingTable, signingColumn, added.kid, sealed)
		if err != nil {
			return err
		}
		added.created = tx.Now()
		if _, err := tx.Exec(ctx, insertSigningKey, added.kid, added.number, sealed, added.created); err != nil {
			return err
		}
		auditSigning(tx, "signing_keys.create", added.kid)
		if !drop {
			_, err = tx.Exec(ctx, retireSigningKeys, added.number, tx.Now())
			return err
		}
		for kid := range before.byID {
			auditSigning(tx, "signing_keys.drop", kid)
		}
		_, err = tx.Exec(ctx, deleteFormerSigningKeys, added.number)
		return err
	})
	if err != nil {
		return fmt.Errorf("store a signing key: %w", err)
	}
	return s.reloadSigningKeys(ctx)
}

// auditSigning writes an audit entry about a signing key.
func auditSigning(tx *store.Tx, action, kid string) {
	tx.Audit(store.AuditEntry{Actor: store.NilID, Action: action, RecType: signingTable, RecID: kid})
}

// reloadSigningKeys reads the keys again and rejects, also from the cache, the tokens of those that are gone.
func (s *Service) reloadSigningKeys(ctx context.Context) error {
	before := s.signing.Load()
	if err := s.loadSigningKeys(ctx); err != nil {
		return err
	}
	after := s.signing.Load()
	for kid, k := range before.byID {
		if after.byID[kid] == nil {
			k.rejected.Store(true)
		}
	}
	if before.formerKey != nil && after.formerKey == nil {
		before.formerKey.rejected.Store(true)
	}
	return nil
}

// MaintainSigningKeys replaces the active key when it is old, and deletes keys whose tokens have expired. Call it about once an
// hour.
func (s *Service) MaintainSigningKeys(ctx context.Context) error {
	s.changingKeys.Lock()
	defer s.changingKeys.Unlock()
	keys, now := s.signing.Load(), s.db.Now()
	if age := s.options.SigningKeyAge; age > 0 && now >= keys.active.created.Add(age) {
		if err := s.addSigningKey(ctx, false); err != nil {
			return err
		}
	}
	expired, err := store.All(ctx, s.db, store.Text, selectExpiredSigningKeys, now.Add(-keyOverlap)-clockLeeway)
	if err != nil || len(expired) == 0 {
		return err
	}
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		for _, kid := range expired {
			if _, err := tx.Exec(ctx, deleteSigningKey, kid); err != nil {
				return err
			}
			auditSigning(tx, "signing_keys.delete", kid)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("delete signing keys: %w", err)
	}
	return s.reloadSigningKeys(ctx)
}

// masterKeyReplaced follows a rotation of the master key: who has the former one may have read the signing keys, too.
func (s *Service) masterKeyReplaced(ctx context.Context, r store.KeyReplaced) error {
	s.changingKeys.Lock()
	defer s.changingKeys.Unlock()
	s.generations.End(keyGeneration) // API keys in memory are read again, and so hashed again
	if s.signing.Load() == nil {
		return errNotStarted
	}
	return s.addSigningKey(ctx, r.Compromised)
}
