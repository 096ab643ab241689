package auth

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"sort"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/gofiber/fiber/v2"
	"github.com/golang-jwt/jwt/v5"

	"kontor/server/endpoint"
	"kontor/store"
)

// keyOverlap is how long a retired key verifies tokens: the longest life that an access token can have.
const keyOverlap = 24 * time.Hour

// signingKey is a key that signs access tokens, or has signed some that are still valid.
type signingKey struct {
	kid      string
	number   int64
	private  ed25519.PrivateKey
	public   ed25519.PublicKey
	created  store.Time
	retired  *store.Time
	rejected *atomic.Bool // its tokens are not accepted any more; shared by all values of one key
}

// signingKeys are the keys in use. They are few and change rarely: requests read them from memory alone.
type signingKeys struct {
	active *signingKey
	byID   map[string]*signingKey
	set    []byte // the public keys as JSON (RFC 7517)

	// formerKey verifies tokens without a kid, which versions before the table of keys have issued; nil when none can be left.
	formerKey *signingKey
}

// newSigningKey returns a key for a seed.
func newSigningKey(seed []byte) *signingKey {
	private := ed25519.NewKeyFromSeed(seed)
	public := private.Public().(ed25519.PublicKey)
	return &signingKey{kid: thumbprint(public), private: private, public: public, rejected: &atomic.Bool{}}
}

// thumbprint returns the thumbprint of a public key (RFC 7638; RFC 8037, appendix A.3).
func thumbprint(public ed25519.PublicKey) string {
	sum := sha256.Sum256([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + base64.RawURLEncoding.EncodeToString(public) + `"}`))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// jwk is a public key as JSON (RFC 8037, section 2).
type jwk struct {
	Type  string `json:"kty" example:"OKP"`
	Curve string `json:"crv" example:"Ed25519"`
	X     string `json:"x" example:"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"`
	Use   string `json:"use" example:"sig"`
	Alg   string `json:"alg" example:"EdDSA"`
	ID    string `json:"kid" example:"kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"`
}

// jwkSet is a list of public keys (RFC 7517, section 5).
type jwkSet struct {
	Keys []jwk `json:"keys"`
}

func (k *signingKey) jwk() jwk {
	return jwk{Type: "OKP", Curve: "Ed25519", X: base64.RawURLEncoding.EncodeToString(k.public), Use: "sig",
		Alg: jwt.SigningMethodEdDSA.Alg(), ID: k.kid}
}

// signedAt reports whether the key signed tokens at a time.
func (k *signingKey) signedAt(issued store.Time) bool {
	return k.retired == nil || issued <= *k.retired+clockLeeway
}

// expired reports whether no token of the key can be valid at a time.
func (k *signingKey) expired(now store.Time) bool {
	return k.retired != nil && now >= k.retired.Add(keyOverlap)+clockLeeway
}

// Start loads the keys that sign access tokens, and creates the first one. Call it before the first request.
func (s *Service) Start(ctx context.Context) error {
	s.changingKeys.Lock()
	defer s.changingKeys.Unlock()
	if err := s.reloadSigningKeys(ctx); err != nil {
		return err
	}
	if s.signing.Load().active != nil {
		return nil
	}
	return s.addSigningKey(ctx, false, func(newest, _ store.Time) bool { return newest == 0 })
}

// useSigningKeys begins to sign and verify with keys, the newest first.
func (s *Service) useSigningKeys(keys []*signingKey) error {
	next := &signingKeys{byID: map[string]*signingKey{}}
	set := jwkSet{Keys: []jwk{}}
	now, before := s.db.Now(), s.signing.Load()
	for _, k := range keys {
		if k.expired(now) {
			continue
		}
		if before != nil && before.byID[k.kid] != nil {
			k.rejected = before.byID[k.kid].rejected
		}
		next.byID[k.kid] = k
		set.Keys = append(set.Keys, k.jwk())
	}
	if len(keys) > 0 {
		next.active = keys[0]
		next.useFormer(s.db, keys[len(keys)-1])
		if before != nil && before.formerKey != nil && next.formerKey != nil {
			next.formerKey.rejected = before.formerKey.rejected
		}
	}
	var err error
	if next.set, err = json.Marshal(set); err == nil {
		s.signing.Store(next)
	}
	return err
}

// useFormer accepts tokens of versions before the table of keys, while they can be valid: until the first key is old, or the
// master key was replaced, from which theirs was derived.
func (k *signingKeys) useFormer(db *store.DB, first *signingKey) {
	until := first.created.Add(keyOverlap) + clockLeeway
	if first.number != 1 || db.Now() >= until {
		return
	}
	if seed, ok := db.FirstKey("access tokens", ed25519.SeedSize); ok {
		k.formerKey = newSigningKey(seed)
		k.formerKey.retired = &first.created
	}
}

// sign signs a token with the active key.
func (s *Service) sign(t *jwt.Token) (string, error) {
	keys := s.signing.Load()
	if keys == nil || keys.active == nil {
		return "", errNotStarted
	}
	t.Header["typ"], t.Header["kid"] = tokenType, keys.active.kid
	return t.SignedString(keys.active.private)
}

// errUnknownKey says that the header of a token is right, and its key not in memory.
var errUnknownKey = errors.New("the access token is signed with an unknown key")

var errNotStarted = errors.New("the signing keys are not loaded; call Start")

// keyOf returns the key that a token says it is signed with. It rejects every header but those that sign writes, and that of
// versions before: critical extensions (crit), keys chosen by the sender (jwk, jku, x5u) and other algorithms.
func (s *Service) keyOf(header map[string]any) (*signingKey, error) {
	keys := s.signing.Load()
	if keys == nil || header["alg"] != jwt.SigningMethodEdDSA.Alg() || header["typ"] != tokenType {
		return nil, errTokenHeader
	}
	var key *signingKey
	switch kid, isText := header["kid"].(string); {
	case len(header) == 3 && isText:
		if key = keys.byID[kid]; key == nil {
			return nil, errUnknownKey
		}
	case len(header) == 2:
		key = keys.formerKey
	}
	if key == nil || key.expired(s.db.Now()) {
		return nil, errTokenHeader
	}
	return key, nil
}

// SigningKeyState describes a signing key.
type SigningKeyState struct {
	KID       string
	CreatedAt store.Time
	RetiredAt *store.Time // nil for the key that signs
}

// SigningKeys returns the keys that sign and verify access tokens, the newest first.
func (s *Service) SigningKeys() (all []SigningKeyState) {
	for _, k := range s.signing.Load().byID {
		all = append(all, SigningKeyState{KID: k.kid, CreatedAt: k.created, RetiredAt: k.retired})
	}
	sort.Slice(all, func(i, j int) bool { return all[i].CreatedAt > all[j].CreatedAt })
	return all
}

// publicKeysFor is how long others may keep the list of public keys.
const publicKeysFor = "public, max-age=300"

// servePublicKeys writes the public keys that verify access tokens.
func (s *Service) servePublicKeys(ctx context.Context, r *endpoint.Request) error {
	if err := s.requireSigningKeys(ctx); err != nil {
		s.options.Log.Warn("the public keys may lack the newest one", "cause", err)
	}
	response := r.Fiber.Response()
	response.Header.Set(fiber.HeaderCacheControl, publicKeysFor)
	response.Header.SetContentType("application/jwk-set+json")
	response.SetBody(s.signing.Load().set)
	return nil
}

const (
	selectSigningKeys = `SELECT kid, number, private_sealed, created_at, retired_at FROM signing_keys ORDER BY number DESC`

	insertSigningKey = `
		INSERT INTO signing_keys (kid, number, private_sealed, created_at, activated_at) VALUES ($1, $2, $3, $4, $4)`

	selectNewestSigningKey = `SELECT number, created_at FROM signing_keys ORDER BY number DESC LIMIT 1`

	selectFormerSigningKeys = `SELECT kid FROM signing_keys WHERE number < $1 ORDER BY number`

	retireSigningKeys = `UPDATE signing_keys SET retired_at = $2 WHERE number < $1 AND retired_at IS NULL`

	selectExpiredSigningKeys = `SELECT kid FROM signing_keys WHERE retired_at <= $1 ORDER BY number`

	deleteSigningKey        = `DELETE FROM signing_keys WHERE kid = $1`
	deleteFormerSigningKeys = `DELETE FROM signing_keys WHERE number < $1`

	// A key that is not sealed with the newest master key, and its replacement.
	selectOldSigningKeys = `
		SELECT kid, kid, private_sealed FROM signing_keys
		WHERE private_sealed NOT LIKE $1 AND kid > $2
		ORDER BY kid LIMIT $3`

	updateSigningKey = `UPDATE signing_keys SET private_sealed = $3 WHERE kid = $1 AND private_sealed = $2`
)

// The place of sealed private keys.
const (
	signingTable  = "signing_keys"
	signingColumn = "private_sealed"
)

var sealedSigningKeys = store.SealedColumn{
	Table: signingTable, Column: signingColumn, Select: selectOldSigningKeys, Update: updateSigningKey,
}

// loadSigningKeys reads the keys from the table.
func (s *Service) loadSigningKeys(ctx context.Context) error {
	keys, err := store.All(ctx, s.db, func(row store.Scanner) (*signingKey, error) {
		var kid, sealed string
		var number int64
		var created store.Time
		var retired *store.Time
		if err := row.Scan(&kid, &number, &sealed, &created, &retired); err != nil {
			return nil, err
		}
		seed, err := s.db.Unseal(signingTable, signingColumn, kid, sealed)
		if err != nil || len(seed) != ed25519.SeedSize {
			return nil, fmt.Errorf("open the key %s: %w", kid, errors.Join(err, errSigningKey))
		}
		k := newSigningKey(seed)
		k.number, k.created, k.retired = number, created, retired
		if k.kid != kid {
			return nil, fmt.Errorf("open the key %s: %w", kid, errSigningKey)
		}
		return k, nil
	}, selectSigningKeys)
	if err != nil {
		return fmt.Errorf("read the signing keys: %w", err)
	}
	return s.useSigningKeys(keys)
}

var errSigningKey = errors.New("the signing key is not valid")

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
		return tx.Run(ctx, retireSigningKeys, number, tx.Now())
	}
	former, err := store.All(ctx, tx, store.Text, selectFormerSigningKeys, number)
	if err != nil {
		return err
	}
	for _, kid := range former {
		auditSigning(tx, "signing_keys.drop", kid)
	}
	return tx.Run(ctx, deleteFormerSigningKeys, number)
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
