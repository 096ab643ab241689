package auth

import (
	"context"
	"crypto/ed25519"
)

// FillQueue fills the queue of the hasher, as a flood of sign-ins does.
func (s *Service) FillQueue() (release func()) {
	var taken []func()
	for {
		leave, err := s.hasher.acquire()
		if err != nil {
			break
		}
		taken = append(taken, leave)
	}
	return func() {
		for _, leave := range taken {
			leave()
		}
	}
}

// SigningKey returns the key that signs access tokens.
func (s *Service) SigningKey() (kid string, private ed25519.PrivateKey) {
	key := s.signing.Load().active
	return key.kid, key.private
}

// Thumbprint returns the kid of a public key.
func Thumbprint(public ed25519.PublicKey) string { return thumbprint(public) }

// ForgetSessions empties the cache of sessions.
func (s *Service) ForgetSessions() { s.sessions.Clear() }

// FailHashes makes every further hash fail, as if no process could compute it.
func (s *Service) FailHashes(ctx context.Context) { s.hasher.sums.Close(ctx) }
