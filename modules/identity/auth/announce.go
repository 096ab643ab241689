package auth

import (
	"context"
	"errors"

	"kontor/store"
)

// topics are the changes that every node of a shared database receives before they are acknowledged.
type topics struct {
	callers  *store.Topic // a user whose status, roles or sessions have changed: their sessions, and their streams
	sessions *store.Topic // a user whose sessions must be read again; their streams continue
	apiKeys  *store.Topic // API keys; the key does not matter
	signing  *store.Topic // signing keys; the key does not matter
}

func (s *Service) newTopics() topics {
	return topics{
		callers: s.db.Topic("auth.callers", func(userID string) {
			s.generations.End(userID)
			s.options.Changed(userID)
		}),
		sessions: s.db.Topic("auth.sessions", s.generations.End),
		apiKeys:  s.db.Topic("auth.api_keys", func(string) { s.generations.End(keyGeneration) }),
		signing:  s.db.Topic("auth.signing_keys", func(string) { s.signingKeysChanged() }),
	}
}

// Changed invalidates the cached sessions of a user on every node: the transaction changes their status, roles or sessions. Open
// streams that lose their session or right end before the change is answered.
func (s *Service) Changed(tx *store.Tx, userID string) { tx.Announce(s.topics.callers, userID) }

// drop invalidates the cached sessions of a user on every node. Open streams continue.
func (s *Service) drop(tx *store.Tx, userID string) { tx.Announce(s.topics.sessions, userID) }

// loadTries is how often changed signing keys are read before requests have to try.
const loadTries = 3

// signingKeysChanged reads the keys again after a change on any node. If that fails, tokens are rejected as unavailable until they
// could be read.
func (s *Service) signingKeysChanged() {
	if s.signing.Load() == nil {
		return // before Start
	}
	var err error
	for range loadTries {
		if err = s.reloadSigningKeys(context.Background()); err == nil {
			return
		}
	}
	if !errors.Is(err, store.ErrClosed) {
		s.options.Log.Error("cannot read the signing keys; access tokens are rejected until the next successful try", "cause", err)
	}
}
