package auth

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

const (
	keySecretBytes = 32
	minKeyLength   = 16 // of a key that the operator chose
	maxKeyLength   = 256
	maxKeyName     = 100

	// keyGeneration is the one generation of all API keys: a revocation is rare and makes all be read again.
	keyGeneration = "api keys"

	actionKeyCreate = "api_keys.create"
	actionKeyRevoke = "api_keys.revoke"
)

// ErrKeyForm says that a chosen API key is none: it needs 16 to 256 visible ASCII characters.
var ErrKeyForm = fmt.Errorf("an API key needs %d to %d visible ASCII characters", minKeyLength, maxKeyLength)

// APIKey is a key as it is listed. The key itself is shown once, when it is made.
type APIKey struct {
	ID         string      `json:"id"`
	Name       string      `json:"name" example:"Registration form"`
	CreatedAt  store.Time  `json:"created_at"`
	CreatedBy  string      `json:"created_by" doc:"The nil id for the key of the first start."`
	LastUsedAt *store.Time `json:"last_used_at"`
	RevokedAt  *store.Time `json:"revoked_at"`
	Scopes     []string    `json:"scopes" example:"users.register" doc:"Names of the endpoints that the key may call; * for all that take a key."`
	ExpiresAt  *store.Time `json:"expires_at" doc:"From then on the key is refused; null for one that does not expire."`

	version int64
}

// ETag names the state of the record.
func (k APIKey) ETag() string { return endpoint.VersionTag(k.version) }

// NewAPIKey is the answer to the making of a key.
type NewAPIKey struct {
	APIKey
	Key string `json:"key" doc:"The key itself. It is shown this once."`
}

// keyEntry is what is remembered of a valid key.
type keyEntry struct {
	caller  *access.Caller
	expires *store.Time
	read    generation
	used    *atomic.Int64
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
	Relations: []records.Relation{records.Created}, Missing: apierr.APIKeyNotFound,
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

	updateKeyUse = `UPDATE api_keys SET last_used_at = $2 WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < $2)`
)

// APIKey returns the holder of a key. It returns apierr.Unauthorized for one that is unknown, revoked or expired, and
// apierr.AuthUnavailable when the key stands neither in memory nor can be read.
func (s *Service) APIKey(ctx context.Context, key string) (*access.Caller, error) {
	entry, ok := s.keys.get(key)
	if !ok || !entry.read.stands() {
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
	read := s.generations.now(keyGeneration)
	var id, scopes string
	var expires *store.Time
	err := s.db.QueryRow(ctx, selectKeyByHash, s.keyHash(key)).Scan(&id, &scopes, &expires)
	if errors.Is(err, store.ErrNotFound) {
		return nil, apierr.Unauthorized
	}
	if err != nil {
		return nil, apierr.AuthUnavailable.Wrap(err)
	}
	used, _ := s.keyUse.LoadOrStore(id, new(atomic.Int64))
	caller := &access.Caller{KeyID: id, Scopes: callerScopes(scopes)}
	entry := &keyEntry{caller: caller, expires: expires, read: read, used: used.(*atomic.Int64)}
	s.keys.put(strings.Clone(key), entry)
	return entry, nil
}

// keyHash is what is stored of a key: SHA-256, keyed because a key that the operator chose may be guessable.
func (s *Service) keyHash(key string) string {
	return hex.EncodeToString(s.db.Keyed("api key", []byte(key)))
}

// isKeyForm tells what can be a key at all.
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

// CreateKey makes a key: kontor_<id>_<secret>. It returns apierr.InvalidInput for limits that cannot be.
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
		tx.Respond(http.StatusCreated, made)
		return nil
	})
	return made, err
}

// IssueKey makes a key without limits as a part of a transaction.
func (s *Service) IssueKey(ctx context.Context, tx *store.Tx, name string) (NewAPIKey, error) {
	return s.issueKey(ctx, tx, name, KeyLimits{})
}

func (s *Service) issueKey(ctx context.Context, tx *store.Tx, name string, limits KeyLimits) (NewAPIKey, error) {
	scopes := strings.Join(limits.Scopes, ",")
	id := store.NewID()
	secret := make([]byte, keySecretBytes)
	rand.Read(secret) // never fails: it ends the program instead
	made := NewAPIKey{
		APIKey: APIKey{ID: id, Name: name, CreatedBy: records.Actor(ctx), Scopes: shownScopes(scopes), ExpiresAt: limits.Expires, version: 1},
		Key:    "kontor_" + strings.ReplaceAll(id, "-", "") + "_" + base64.RawURLEncoding.EncodeToString(secret),
	}
	return made, s.insertKey(ctx, tx, &made.APIKey, scopes, made.Key)
}

// StoreKey stores a key that the operator chose, at the first start. It returns ErrKeyForm.
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

// Keys lists the keys that the caller may see, the revoked ones too, with their last use up to now.
func (s *Service) Keys(ctx context.Context, query list.Params) (list.Page[APIKey], error) {
	if err := s.FlushKeyUse(ctx); err != nil { // a disk that takes no writes does not keep anybody from reading
		s.options.Log.Warn("last use of API keys not written", "cause", err)
	}
	return keyList.Page(ctx, s.db, query, keyTable.Visible(access.From(ctx)))
}

// RevokeKey makes a key worthless from the next request on. Revoking it again changes nothing. It returns
// apierr.APIKeyNotFound and apierr.NoAccess.
func (s *Service) RevokeKey(ctx context.Context, id string) error {
	return s.db.InTx(ctx, func(tx *store.Tx) error {
		if _, err := keyTable.Get(ctx, tx, id, access.Delete); err != nil {
			return err
		}
		was, err := readKeyRow(ctx, tx, id)
		if err != nil {
			return err
		}
		changed, err := tx.Exec(ctx, updateKeyRevoked, id, tx.Now())
		if err != nil || changed == 0 {
			return err
		}
		tx.AfterCommit(func() { s.generations.end(keyGeneration) })
		return keyProof.Audit(ctx, tx, actionKeyRevoke, id, was)
	})
}

// FlushKeyUse writes when the keys were last used, to be called about once a minute, before they are listed and at the
// end: a request with a key writes nothing itself. It is no change that somebody makes, and leaves no audit entry.
func (s *Service) FlushKeyUse(ctx context.Context) error {
	uses := map[string]int64{}
	s.keyUse.Range(func(id, used any) bool {
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
			if _, err := tx.Exec(ctx, updateKeyUse, id, store.Time(at)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		s.keepKeyUse(uses)
	}
	return err
}

// keepKeyUse puts back what could not be written, unless a key was used again since.
func (s *Service) keepKeyUse(uses map[string]int64) {
	for id, at := range uses {
		if used, ok := s.keyUse.Load(id); ok {
			used.(*atomic.Int64).CompareAndSwap(0, at)
		}
	}
}
