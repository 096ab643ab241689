package auth

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"errors"
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
