package directory

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"kontor/modules/kit/signin"
	"kontor/server/apierr"
	"kontor/store"
)

// removedCredential is what a deletion keeps of a credential until its link has expired.
type removedCredential struct {
	ID          string      `json:"id"`
	UserID      string      `json:"user_id"`
	Type        string      `json:"type"`
	Value       string      `json:"value"`
	Key         string      `json:"key"`
	ValidatedAt *store.Time `json:"validated_at"`
	CreatedAt   store.Time  `json:"created_at"`
	TrustedFrom store.Time  `json:"trusted_from"`
}

// keepRemoved stores what the link in the message about a deletion restores, and returns its path.
func (s *Service) keepRemoved(ctx context.Context, tx *store.Tx, c Credential) (undo string, err error) {
	state, err := json.Marshal(removedCredential{c.ID, c.UserID, c.Type, c.Value, c.target(), c.ValidatedAt, c.CreatedAt, c.trustedFrom})
	if err != nil {
		return "", fmt.Errorf("encode a removed credential: %w", err)
	}
	undo, keep := s.auth.NewRestore(c.UserID, c.ID, string(state))
	return undo, keep(ctx, tx)
}

// Restore adds a deleted credential again. It is on trial, as a new one is: users delete addresses that others can read, too. It
// returns apierr.UndoInvalid if the user cannot have it any more, or someone else has it now.
func (s *Service) Restore(ctx context.Context, tx *store.Tx, state string) error {
	var r removedCredential
	if err := json.Unmarshal([]byte(state), &r); err != nil {
		return fmt.Errorf("decode a removed credential: %w", err)
	}
	c := Credential{ID: r.ID, UserID: r.UserID, Type: r.Type, Value: r.Value, key: r.Key, version: 1,
		Validated: true, ValidatedAt: r.ValidatedAt, CreatedAt: r.CreatedAt}
	c.trust(max(r.TrustedFrom, tx.Now().Add(signin.Trial)))
	err := checkCount(ctx, tx, c)
	if err == nil {
		undo, keep := s.auth.NewUndo(signin.Credential, c.UserID, c.ID)
		if err := s.outbox.CredentialAdded(ctx, tx, c.UserID, masked(c), undo); err != nil {
			return err
		}
		if err := keep(ctx, tx); err != nil {
			return err
		}
		err = s.put(ctx, tx, c, store.NilID)
	}
	for _, kind := range []apierr.Kind{apierr.UserNotFound, apierr.RecordErased, apierr.CredentialExists, apierr.TooManyCredentials} {
		if errors.Is(err, kind) {
			return apierr.UndoInvalid.Wrap(err)
		}
	}
	return err
}
