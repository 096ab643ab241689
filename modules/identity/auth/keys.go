package auth

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"

	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/modules/kit/revocable"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

const (
	keySecretBytes = 32
	minKeyLength   = 16 // of a key chosen by the operator
	maxKeyLength   = 256
	maxKeyName     = 100

	// keyGeneration is the generation that all API keys share: revocations are rare, and each causes all keys to be read
	// again.
	keyGeneration = "api keys"

	actionKeyCreate = "api_keys.create"
	actionKeyRevoke = "api_keys.revoke"
)

// ErrKeyForm reports a malformed API key: a key has 16 to 256 visible ASCII characters.
var ErrKeyForm = fmt.Errorf("an API key needs %d to %d visible ASCII characters", minKeyLength, maxKeyLength)

// APIKey is a key as the API lists it. The secret is only shown by the response that creates the key.
type APIKey struct {
	ID         string      `json:"id"`
	Name       string      `json:"name" example:"Registration form"`
	CreatedAt  store.Time  `json:"created_at"`
	CreatedBy  string      `json:"created_by" doc:"The nil id for the key of the first start."`
	LastUsedAt *store.Time `json:"last_used_at"`
	RevokedAt  *store.Time `json:"revoked_at"`
	Scopes     []string    `json:"scopes" example:"users.register" doc:"Names of the endpoints that the key may call; * for all that accept a key."`
	ExpiresAt  *store.Time `json:"expires_at" doc:"When the key expires; null for never."`

	version int64
}

// ETag names the state of the record.
func (k APIKey) ETag() string { return endpoint.VersionTag(k.version) }

// EachUser names the creator of the key.
func (k APIKey) EachUser(add func(id string)) { add(k.CreatedBy) }

// NewAPIKey is a new API key with its secret.
type NewAPIKey struct {
	APIKey
	Key string `json:"key" doc:"The secret. It is not shown again."`
}

// keyEntry is the cache entry of a valid key.
type keyEntry struct {
	caller  *access.Caller
	expires *store.Time
	read    revocable.Generation
	hashed  int // generation of the master key under which the key was looked up
	used    *atomic.Int64
}

// APIKey returns the caller with a key. It returns apierr.Unauthorized for an unknown, revoked or expired key. It returns
// apierr.AuthUnavailable when the key is not in memory and cannot be read.
func (s *Service) APIKey(ctx context.Context, key string) (*access.Caller, error) {
	entry, ok := s.keys.Get(key)
	if !ok || !entry.read.Valid() || entry.hashed != s.db.KeyGeneration() {
		var err error
		if entry, err = s.readKey(ctx, key); err != nil {
			return nil, err
		}
	}
	if entry.expires != nil && s.db.Now() >= *entry.expires {
		return nil, apierr.Unauthorized
	}
	entry.used.Store(int64(s.db.Now()))
	return entry.caller, nil
}

func (s *Service) readKey(ctx context.Context, key string) (*keyEntry, error) {
	if !isKeyForm(key) {
		return nil, apierr.Unauthorized
	}
	read := s.generations.Now(keyGeneration)
	var id, scopes string
	var expires *store.Time
	hashed, hash := s.db.KeyGeneration(), s.keyHash(key)
	err := s.db.QueryRow(ctx, selectKeyByHash, hash).Scan(&id, &scopes, &expires)
	if errors.Is(err, store.ErrNotFound) {
		for _, older := range s.olderKeyHashes(key) {
			if err = s.db.QueryRow(ctx, selectKeyByHash, older).Scan(&id, &scopes, &expires); err == nil {
				s.keyUses.Rehash(id, older, hash)
			}
			if !errors.Is(err, store.ErrNotFound) {
				break
			}
		}
	}
	if errors.Is(err, store.ErrNotFound) {
		return nil, apierr.Unauthorized
	}
	if err != nil {
		return nil, apierr.AuthUnavailable.Wrap(err)
	}
	caller := &access.Caller{KeyID: id, Scopes: callerScopes(scopes)}
	entry := &keyEntry{caller: caller, expires: expires, read: read, hashed: hashed, used: s.keyUses.Of(id)}
	s.keys.Put(strings.Clone(key), entry)
	return entry, nil
}

// keyHash returns the stored hash of a key: SHA-256, keyed because a key chosen by the operator may be guessable.
func (s *Service) keyHash(key string) string {
	return generationPrefix(s.db.KeyGeneration()) + hex.EncodeToString(s.db.Keyed(keyPurpose, []byte(key)))
}

// isKeyForm reports whether a text may be an API key.
func isKeyForm(key string) bool {
	if len(key) < minKeyLength || len(key) > maxKeyLength {
		return false
	}
	for i := range len(key) {
		if key[i] < 0x21 || key[i] > 0x7e {
			return false
		}
	}
	return true
}

// CreateKey creates a key: kontor_<id>_<secret>. It returns apierr.InvalidInput for invalid limits.
func (s *Service) CreateKey(ctx context.Context, name string, limits KeyLimits) (NewAPIKey, error) {
	limits, err := s.checkLimits(limits)
	if err != nil {
		return NewAPIKey{}, err
	}
	var made NewAPIKey
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		var err error
		if made, err = s.issueKey(ctx, tx, name, limits); err != nil {
			return err
		}
		tx.Respond(made)
		return nil
	})
	return made, err
}

// IssueKey creates a key without limits in a transaction.
func (s *Service) IssueKey(ctx context.Context, tx *store.Tx, name string) (NewAPIKey, error) {
	return s.issueKey(ctx, tx, name, KeyLimits{})
}

func (s *Service) issueKey(ctx context.Context, tx *store.Tx, name string, limits KeyLimits) (NewAPIKey, error) {
	scopes := strings.Join(limits.Scopes, ",")
	id := store.NewID()
	made := NewAPIKey{
		APIKey: APIKey{ID: id, Name: name, CreatedBy: records.Actor(ctx), Scopes: shownScopes(scopes), ExpiresAt: limits.Expires, version: 1},
		Key:    "kontor_" + strings.ReplaceAll(id, "-", "") + "_" + newSecret(keySecretBytes),
	}
	return made, s.insertKey(ctx, tx, &made.APIKey, scopes, made.Key)
}

// StoreKey stores a key chosen by the operator, at the first start. It returns ErrKeyForm.
func (s *Service) StoreKey(ctx context.Context, tx *store.Tx, name, key string) error {
	if !isKeyForm(key) {
		return ErrKeyForm
	}
	return s.insertKey(ctx, tx, &APIKey{ID: store.NewID(), Name: name, CreatedBy: store.NilID, Scopes: shownScopes("")}, "", key)
}

func (s *Service) insertKey(ctx context.Context, tx *store.Tx, k *APIKey, scopes, key string) error {
	k.CreatedAt = tx.Now()
	if _, err := tx.Exec(ctx, insertKey, k.ID, k.Name, s.keyHash(key), k.CreatedAt, k.CreatedBy, scopes, k.ExpiresAt); err != nil {
		return fmt.Errorf("store an API key: %w", err)
	}
	return keyProof.AuditEntry(ctx, tx, store.AuditEntry{Actor: k.CreatedBy, Action: actionKeyCreate, RecType: keyProof.Type, RecID: k.ID})
}

// Keys lists the keys that the caller may read, including revoked keys, with their last use up to now.
func (s *Service) Keys(ctx context.Context, query list.Params) (list.Page[APIKey], error) {
	if err := s.FlushKeyUse(ctx); err != nil { // keys can be listed while the disk accepts no writes
		s.options.Log.Warn("last use of API keys not written", "cause", err)
	}
	return keyList.Page(ctx, s.db, query, keyTable.Visible(access.From(ctx)))
}

// RevokeKey revokes a key; the next request with it is rejected. Revoking it again changes nothing. It returns
// apierr.APIKeyNotFound and apierr.NoAccess.
func (s *Service) RevokeKey(ctx context.Context, id string) error {
	return s.db.InTx(ctx, func(tx *store.Tx) error {
		if _, err := keyTable.Get(ctx, tx, id, access.Delete); err != nil {
			return err
		}
		tx.Announce(s.topics.apiKeys, "")
		return keyProof.ChangeRow(ctx, tx, actionKeyRevoke, id, updateKeyRevoked, id, tx.Now())
	})
}

// FlushKeyUse writes the times of last use of the API keys. Requests with a key write nothing themselves. Call it about once
// a minute, before the keys are listed, and at shutdown. It leaves no audit entry.
func (s *Service) FlushKeyUse(ctx context.Context) error { return s.keyUses.Flush(ctx, s.db) }

// KeyLimits restrict an API key.
type KeyLimits struct {
	Scopes  []string    // names of the endpoints that it may call; nil: all that accept a key
	Expires *store.Time // nil: never
}

// allScopes is the scope of a key that may call all endpoints that accept a key.
const allScopes = "*"

// checkLimits returns the limits in their stored form. It returns apierr.InvalidInput for unknown scopes, an empty list of
// scopes, and a time of expiry in the past.
func (s *Service) checkLimits(l KeyLimits) (KeyLimits, error) {
	var problems apierr.Fields
	switch {
	case l.Scopes == nil || slices.Equal(l.Scopes, []string{allScopes}):
		l.Scopes = nil
	case len(l.Scopes) == 0:
		problems.Add("scopes", "invalid.min_items", apierr.Args{"Min": 1})
	default:
		l.Scopes = slices.Compact(slices.Sorted(slices.Values(l.Scopes)))
		for _, scope := range l.Scopes {
			if !slices.Contains(s.Peers.Scopes, scope) {
				problems.Add("scopes", "invalid.one_of", apierr.Args{"Values": strings.Join(s.Peers.Scopes, ", ")})
			}
		}
	}
	if l.Expires != nil && *l.Expires <= s.db.Now() {
		problems.Add("expires_at", "invalid.date_past")
	}
	if !problems.Empty() {
		return l, &apierr.Error{Kind: apierr.InvalidInput, Fields: &problems}
	}
	return l, nil
}

// shownScopes returns the stored scopes of a key as the API shows them.
func shownScopes(stored string) []string {
	if stored == "" {
		return []string{allScopes}
	}
	return strings.Split(stored, ",")
}

// callerScopes returns the scopes of a caller with the key; nil means all.
func callerScopes(stored string) []string {
	if stored == "" {
		return nil
	}
	return strings.Split(stored, ",")
}

const keyColumns = "id, name, created_at, created_by, last_used_at, revoked_at, scopes, expires_at, version"

func scanKey(row records.Row) (APIKey, error) {
	var k APIKey
	var scopes string
	err := row.Scan(&k.ID, &k.Name, &k.CreatedAt, &k.CreatedBy, &k.LastUsedAt, &k.RevokedAt, &scopes, &k.ExpiresAt, &k.version)
	k.Scopes = shownScopes(scopes)
	return k, err
}

var keyTable = records.Table[APIKey]{
	Type: access.APIKeys, From: "api_keys", Columns: keyColumns, Scan: scanKey,
	Relations: []records.Relation{records.CreatorWhile(access.APIKeys, "api_keys")}, Missing: apierr.APIKeyNotFound,
}

var keyList = list.New(list.Source[APIKey]{
	From: "api_keys", Columns: keyColumns, ID: "id", Created: "created_at", Tables: []string{"api_keys"}, Scan: scanKey,
	Fields: list.Fields{
		{Name: "id", Type: list.UUID, Column: "id"},
		{Name: "name", Type: list.Text, Column: "name"},
		{Name: "created_at", Type: list.Time, Column: "created_at"},
		{Name: "created_by", Type: list.UUID, Column: "created_by"},
		{Name: "last_used_at", Type: list.Time, Column: "last_used_at", Null: true},
		{Name: "revoked_at", Type: list.Time, Column: "revoked_at", Null: true},
		{Name: "expires_at", Type: list.Time, Column: "expires_at", Null: true},
	},
})

const (
	insertKey = `
		INSERT INTO api_keys (id, name, key_hash, created_at, created_by, scopes, expires_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7)`

	selectKeyByHash = `SELECT id, scopes, expires_at FROM api_keys WHERE key_hash = $1 AND revoked_at IS NULL`

	updateKeyRevoked = `UPDATE api_keys SET revoked_at = $2, version = version + 1 WHERE id = $1 AND revoked_at IS NULL`

	// The clock of the node that saw the use may be behind the one that created the key, or was set back since.
	updateKeyUse = `
		UPDATE api_keys SET last_used_at = CASE WHEN created_at > $2 THEN created_at ELSE $2 END
		WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < $2)`
)

// ServiceTokens verifies the tokens of service accounts.
type ServiceTokens interface {
	// Prefix begins every token. No access token begins so.
	Prefix() string
	// Known returns the caller of a token from memory alone. from is the client's address.
	Known(token string, from netip.Addr) (*access.Caller, bool)
	// Verify returns the caller of a token. It returns apierr.Unauthorized and apierr.AuthUnavailable.
	Verify(ctx context.Context, token string, from netip.Addr) (*access.Caller, error)
	// Active returns the caller of an open stream as of now, with the same errors.
	Active(ctx context.Context, caller *access.Caller) (*access.Caller, error)
	// Expiry returns when a verified token expires.
	Expiry(ctx context.Context, token string) (store.Time, bool)
}

// isServiceToken reports whether a bearer token claims to be that of a service account.
func (s *Service) isServiceToken(token string) bool {
	return s.Peers.ServiceTokens != nil && strings.HasPrefix(token, s.Peers.ServiceTokens.Prefix())
}
