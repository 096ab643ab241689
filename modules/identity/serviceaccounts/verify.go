package serviceaccounts

import (
	"context"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"

	"kontor/modules/kit/revocable"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// verified is the cache entry of a valid token.
type verified struct {
	caller     *access.Caller
	id         string
	expires    store.Time
	restricted bool // to networks
	networks   []netip.Prefix
	read       revocable.Generation // of the account
	hashed     int                  // generation of the master key under which its hash was compared
	used       *atomic.Int64
}

// Prefix begins every token.
func (s *Service) Prefix() string { return tokenPrefix }

// Known returns the caller of a token from memory alone. A token is used by it.
func (s *Service) Known(token string, from netip.Addr) (*access.Caller, bool) {
	v, ok := s.cached(s.texts, token)
	if !ok || !allows(v.restricted, v.networks, from) {
		return nil, false
	}
	v.used.Store(int64(s.db.Now()))
	return v.caller, true
}

// cached returns a valid entry.
func (s *Service) cached(cache *revocable.Cache[*verified], key string) (*verified, bool) {
	v, ok := cache.Get(key)
	if !ok || !v.read.Valid() || v.hashed != s.db.KeyGeneration() || s.expired(v.expires) {
		return nil, false
	}
	return v, true
}

// expired reports whether a time has passed. A clock that was set back does not make an expired token valid.
func (s *Service) expired(at store.Time) bool { return max(s.db.Now(), s.db.Latest()) >= at }

// Verify returns the caller of a token. It returns apierr.Unauthorized for an unknown, expired or revoked token, for a disabled
// account, and for a client outside the networks of the token: the answer does not confirm a stolen token. It returns
// apierr.AuthUnavailable when the token is not in memory and cannot be read.
func (s *Service) Verify(ctx context.Context, token string, from netip.Addr) (*access.Caller, error) {
	v, ok := s.cached(s.texts, token)
	if !ok {
		var err error
		if v, err = s.verify(ctx, token); err != nil {
			return nil, err
		}
	}
	if !allows(v.restricted, v.networks, from) {
		return nil, refuse(ctx, v.id, "network")
	}
	v.used.Store(int64(s.db.Now()))
	return v.caller, nil
}

// refuse reports a refused token to the audit trail and returns apierr.Unauthorized. id is empty for a text that names no token.
func refuse(ctx context.Context, id, note string) error {
	endpoint.Report(ctx, endpoint.Event{Kind: endpoint.FailedSignIn, Action: "service_tokens.refused", RecType: tokenProof.Type, RecID: id, Note: note})
	return apierr.Unauthorized
}

// verify reads a token and compares its hash.
func (s *Service) verify(ctx context.Context, token string) (*verified, error) {
	id, ok := parseToken(token)
	if !ok {
		return nil, refuse(ctx, "", "form")
	}
	v, hash, err := s.read(ctx, id)
	switch {
	case errors.Is(err, apierr.Unauthorized):
		return nil, refuse(ctx, "", "unknown")
	case err != nil:
		return nil, err
	}
	if !s.matches(id, token, hash) {
		return nil, refuse(ctx, id, "secret")
	}
	if s.expired(v.expires) {
		return nil, refuse(ctx, id, "expired")
	}
	s.texts.Put(strings.Clone(token), v)
	s.tokens.Put(id, v)
	return v, nil
}

// read reads a token that is not revoked, of an active account. It returns apierr.Unauthorized and apierr.AuthUnavailable.
func (s *Service) read(ctx context.Context, id string) (v *verified, hash string, err error) {
	var accountID string
	err = s.db.QueryRow(ctx, selectAccountOf, id).Scan(&accountID)
	if errors.Is(err, store.ErrNotFound) {
		return nil, "", apierr.Unauthorized
	}
	if err != nil {
		return nil, "", apierr.AuthUnavailable.Wrap(err)
	}
	v = &verified{id: id, read: s.generations.Now(accountID), hashed: s.db.KeyGeneration()}
	var scopes, networks string
	var roles []string
	found := false
	err = store.Each(ctx, s.db, func(row store.Scanner) error {
		var role string
		err := row.Scan(&hash, &scopes, &networks, &v.expires, &role)
		if found = true; role != "" {
			roles = append(roles, role)
		}
		return err
	}, selectVerified, id)
	if err != nil {
		return nil, "", apierr.AuthUnavailable.Wrap(err)
	}
	if !found {
		return nil, "", apierr.Unauthorized
	}
	v.caller = &access.Caller{UserID: accountID, SessionID: id, Roles: roles, SignedIn: access.Authentication{Machine: true}}
	if scopes != "" {
		v.caller.Scopes = strings.Split(scopes, ",")
	}
	v.restricted, v.networks = networks != "", storedNetworks(networks)
	v.used = s.uses.Of(id)
	return v, hash, nil
}

// Active returns the caller of an open stream as of now. Like a session, a token is not used by an open stream. It returns
// apierr.Unauthorized when the token has expired, was revoked, or its account was disabled, and apierr.AuthUnavailable.
func (s *Service) Active(ctx context.Context, caller *access.Caller) (*access.Caller, error) {
	if v, ok := s.cached(s.tokens, caller.SessionID); ok && v.caller.UserID == caller.UserID {
		return v.caller, nil
	}
	v, _, err := s.read(ctx, caller.SessionID)
	if err != nil {
		return nil, err
	}
	if v.caller.UserID != caller.UserID || s.expired(v.expires) {
		return nil, apierr.Unauthorized
	}
	s.tokens.Put(v.id, v)
	return v.caller, nil
}

// Expiry returns when a token expires that was verified before. ok is false for any other text.
func (s *Service) Expiry(ctx context.Context, token string) (store.Time, bool) {
	v, ok := s.cached(s.texts, token)
	if !ok {
		var err error
		if v, err = s.verify(ctx, token); err != nil {
			return 0, false
		}
	}
	return v.expires, true
}

// Forget invalidates what is in memory of an account. It is called on every node after the commit of a change to its status, roles
// or tokens. An empty id stands for all accounts.
func (s *Service) Forget(accountID string) { s.generations.End(accountID) }

// hashPurpose is the purpose of the hashes of tokens.
const hashPurpose = "service token"

// hash returns the stored hash of a token, under the newest key.
func (s *Service) hash(token string) string {
	return generationPrefix(s.db.KeyGeneration()) + hex.EncodeToString(s.db.Keyed(hashPurpose, []byte(token)))
}

// generationPrefix leads the hashes of a generation of the master key.
func generationPrefix(generation int) string { return strconv.Itoa(generation) + ":" }

// matches compares a token with a stored hash in constant time. A hash under a former key is replaced soon.
func (s *Service) matches(id, token, stored string) bool {
	newest := s.hash(token)
	if equal(newest, stored) {
		return true
	}
	generation := s.db.KeyGeneration()
	for _, older := range s.db.KeyedOlder(hashPurpose, []byte(token)) {
		generation--
		if equal(generationPrefix(generation)+hex.EncodeToString(older), stored) {
			s.uses.Rehash(id, stored, newest)
			return true
		}
	}
	return false
}

func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// FlushUse writes the times of last use of the tokens, and the new hashes of tokens whose hash is under a former key. Requests
// write nothing themselves. Call it about once a minute. The times leave no audit entry.
func (s *Service) FlushUse(ctx context.Context) error { return s.uses.Flush(ctx, s.db) }

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
