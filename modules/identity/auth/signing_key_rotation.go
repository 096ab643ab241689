package auth

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"

	"kontor/store"
)

// RotateSigningKey makes a new key sign access tokens. Tokens of the former keys stay valid for their life; with drop they are
// rejected from now on, and clients refresh them.
func (s *Service) RotateSigningKey(ctx context.Context, drop bool) error {
	s.changingKeys.Lock()
	defer s.changingKeys.Unlock()
	return s.addSigningKey(ctx, drop, func(store.Time, store.Time) bool { return true })
}

// addSigningKey adds a key that signs from now on, unless it is not due: due gets the time at which the newest key was created, or
// 0, and the present time. Another node may have added one in the meantime. Callers must hold the lock.
func (s *Service) addSigningKey(ctx context.Context, drop bool, due func(newest, now store.Time) bool) error {
	seed := make([]byte, ed25519.SeedSize)
	rand.Read(seed) // does not fail: it would end the program
	added := newSigningKey(seed)
	sealed, err := s.db.Seal(signingTable, signingColumn, added.kid, seed)
	if err != nil {
		return err
	}
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		sealed, err := tx.Reseal(signingTable, signingColumn, added.kid, sealed)
		if err != nil {
			return err
		}
		var number int64
		var newest store.Time
		err = tx.QueryRow(ctx, selectNewestSigningKey).Scan(&number, &newest)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		if !due(newest, tx.Now()) {
			return nil
		}
		return s.insertSigningKey(ctx, tx, added.kid, number+1, sealed, drop)
	})
	if err != nil {
		return fmt.Errorf("store a signing key: %w", err)
	}
	return s.requireSigningKeys(ctx)
}

func (s *Service) insertSigningKey(ctx context.Context, tx *store.Tx, kid string, number int64, sealed string, drop bool) error {
	tx.Announce(s.topics.signing, "")
	if _, err := tx.Exec(ctx, insertSigningKey, kid, number, sealed, tx.Now()); err != nil {
		return err
	}
	auditSigning(tx, "signing_keys.create", kid)
	if !drop {
		_, err := tx.Exec(ctx, retireSigningKeys, number, tx.Now())
		return err
	}
	former, err := store.All(ctx, tx, store.Text, selectFormerSigningKeys, number)
	if err != nil {
		return err
	}
	for _, kid := range former {
		auditSigning(tx, "signing_keys.drop", kid)
	}
	_, err = tx.Exec(ctx, deleteFormerSigningKeys, number)
	return err
}

// auditSigning writes an audit entry about a signing key.
func auditSigning(tx *store.Tx, action, kid string) {
	tx.Audit(store.AuditEntry{Actor: store.NilID, Action: action, RecType: signingTable, RecID: kid})
}

// reloadSigningKeys reads the keys again and rejects, also from the cache, the tokens of those that are gone.
func (s *Service) reloadSigningKeys(ctx context.Context) error {
	s.loadingKeys.Lock()
	defer s.loadingKeys.Unlock()
	before := s.signing.Load()
	if err := s.loadSigningKeys(ctx); err != nil {
		s.signingStale.Store(true)
		return err
	}
	after := s.signing.Load()
	if before != nil {
		before.reject(after)
	}
	s.signingStale.Store(false)
	return nil
}

// reject rejects the tokens of the keys that are gone.
func (k *signingKeys) reject(after *signingKeys) {
	for kid, key := range k.byID {
		if after.byID[kid] == nil {
			key.rejected.Store(true)
		}
	}
	if k.formerKey != nil && after.formerKey == nil {
		k.formerKey.rejected.Store(true)
	}
}

// requireSigningKeys reads the keys if the latest try has failed, or if this node may have missed a change.
func (s *Service) requireSigningKeys(ctx context.Context) error {
	if s.signingStale.Load() || !s.db.Remembers() {
		return s.renewSigningKeys(ctx)
	}
	return nil
}

// renewSigningKeys reads the keys again, once for concurrent callers.
func (s *Service) renewSigningKeys(ctx context.Context) error {
	return s.signingLoads.Do(ctx, s.reloadSigningKeys)
}

// MaintainSigningKeys replaces the active key when it is old, and deletes keys whose tokens have expired. Call it about once an
// hour.
func (s *Service) MaintainSigningKeys(ctx context.Context) error {
	s.changingKeys.Lock()
	defer s.changingKeys.Unlock()
	keys, now := s.signing.Load(), s.db.Now()
	old := func(newest, now store.Time) bool {
		return s.options.SigningKeyAge > 0 && now >= newest.Add(s.options.SigningKeyAge)
	}
	if old(keys.active.created, now) {
		if err := s.addSigningKey(ctx, false, old); err != nil {
			return err
		}
	}
	expired, err := store.All(ctx, s.db, store.Text, selectExpiredSigningKeys, now.Add(-keyOverlap)-clockLeeway)
	if err != nil || len(expired) == 0 {
		return err
	}
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		tx.Announce(s.topics.signing, "")
		for _, kid := range expired {
			deleted, err := tx.Exec(ctx, deleteSigningKey, kid)
			if err != nil {
				return err
			}
			if deleted > 0 {
				auditSigning(tx, "signing_keys.delete", kid)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("delete signing keys: %w", err)
	}
	return s.requireSigningKeys(ctx)
}

// masterKeyReplaced follows a rotation of the master key: who has the former one may have read the signing keys, too.
func (s *Service) masterKeyReplaced(ctx context.Context, r store.KeyReplaced) error {
	s.changingKeys.Lock()
	defer s.changingKeys.Unlock()
	if s.signing.Load() == nil {
		return errNotStarted
	}
	return s.addSigningKey(ctx, r.Compromised, func(store.Time, store.Time) bool { return true })
}
