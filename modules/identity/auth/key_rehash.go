package auth

import (
	"context"
	"encoding/hex"
	"errors"
	"strconv"

	"kontor/store"
)

// After a rotation of the master key, the stored hash of an API key is under a former key until the API key is used: only then
// its text is known. The hash begins with the generation of its key; that of generation 0 has no such beginning.

// keyPurpose is the purpose of the hashes of API keys.
const keyPurpose = "api key"

// generationPrefix leads the hashes of a generation.
func generationPrefix(generation int) string {
	if generation == 0 {
		return ""
	}
	return strconv.Itoa(generation) + ":"
}

// olderKeyHashes returns the hashes of a key under former generations, the newest first.
func (s *Service) olderKeyHashes(key string) (hashes []string) {
	generation := s.db.KeyGeneration()
	for _, older := range s.db.KeyedOlder(keyPurpose, []byte(key)) {
		generation--
		hashes = append(hashes, generationPrefix(generation)+hex.EncodeToString(older))
	}
	return hashes
}

// rehashed is the new hash of a key that was used.
type rehashed struct{ older, newest string }

const updateKeyHash = `
	UPDATE api_keys SET key_hash = $3, version = version + 1
	WHERE id = $1 AND key_hash = $2`

// writeRehashed stores the new hashes of the keys that were used since the last call.
func (s *Service) writeRehashed(ctx context.Context) error {
	var failed error
	s.rehash.Range(func(id, value any) bool {
		hash := value.(rehashed)
		failed = s.db.InTx(ctx, func(tx *store.Tx) error {
			was, err := readKeyRow(ctx, tx, id.(string))
			if errors.Is(err, store.ErrNotFound) {
				return nil
			}
			if err != nil {
				return err
			}
			changed, err := tx.Exec(ctx, updateKeyHash, id, hash.older, hash.newest)
			if err != nil || changed == 0 {
				return err
			}
			return keyProof.AuditEntry(ctx, tx, store.AuditEntry{Actor: store.NilID, Action: "api_keys.rehash",
				RecType: keyProof.Type, RecID: id.(string), Before: was})
		})
		if failed == nil {
			s.rehash.CompareAndDelete(id, value)
		}
		return failed == nil
	})
	return failed
}

const (
	// The parameters are the pattern of the newest hashes, and the present time.
	countOlderKeys = `
		SELECT COUNT(*) FROM api_keys
		WHERE key_hash NOT LIKE $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $2)`

	selectUnusedKeys = `
		SELECT id FROM api_keys
		WHERE key_hash NOT LIKE $1 AND revoked_at IS NULL AND COALESCE(last_used_at, created_at) < $2
		ORDER BY id`
)

// newestHashes returns the pattern of the newest hashes. Without a rotation every hash is one.
func (s *Service) newestHashes() string { return generationPrefix(s.db.KeyGeneration()) + "%" }

// OlderKeys returns how many valid API keys have not been used since the last rotation of the master key.
func (s *Service) OlderKeys(ctx context.Context) (n int64, err error) {
	err = s.db.QueryRow(ctx, countOlderKeys, s.newestHashes(), s.db.Now()).Scan(&n)
	return n, err
}

// RevokeUnusedKeys revokes the API keys that have not been used since the last rotation of the master key, nor since a time.
// It returns how many.
func (s *Service) RevokeUnusedKeys(ctx context.Context, since store.Time) (revoked int, err error) {
	if err := s.FlushKeyUse(ctx); err != nil {
		return 0, err
	}
	unused, err := store.All(ctx, s.db, store.Text, selectUnusedKeys, s.newestHashes(), since)
	if err != nil {
		return 0, err
	}
	for _, id := range unused {
		if err := s.RevokeKey(ctx, id); err != nil {
			return revoked, err
		}
		revoked++
	}
	return revoked, nil
}

// ForgetOlderHashes removes the former keys of hashes of API keys when no valid API key needs them. Call it about once an hour.
func (s *Service) ForgetOlderHashes(ctx context.Context) error {
	if len(s.db.KeyedOlder(keyPurpose, nil)) == 0 {
		return nil
	}
	n, err := s.OlderKeys(ctx)
	if err != nil || n > 0 {
		return err
	}
	return s.db.ForgetKeyed(ctx, keyPurpose)
}
