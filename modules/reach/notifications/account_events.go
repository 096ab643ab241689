package notifications

import (
	"context"
	"time"

	"kontor/modules/kit/event"
	"kontor/server/access"
	"kontor/store"
)

// SignedIn notifies a user of a sign-in from a new device, in the transaction of the sign-in.
func (s *Service) SignedIn(ctx context.Context, tx *store.Tx, userID, _ string, isNew bool) error {
	if !isNew {
		return nil
	}
	return s.notifyOfAccount(ctx, tx, event.NewDeviceLogin, userID, map[string]any{"Time": tx.Now().Std().Format(time.RFC3339)})
}

// PasswordChanged notifies a user that their password was changed, in the transaction of the change.
func (s *Service) PasswordChanged(ctx context.Context, tx *store.Tx, userID string) error {
	return s.notifyOfAccount(ctx, tx, event.PasswordChanged, userID, nil)
}

// CredentialAdded notifies a user at all older addresses that a credential was added. value hints at it, undo is the path of the link
// that removes it. Call it before the credential is validated, so that only the others get the message.
func (s *Service) CredentialAdded(ctx context.Context, tx *store.Tx, userID, value, undo string) error {
	e := accountEvent(event.CredentialAdded, userID, map[string]any{"Value": value})
	e.Undo = undo
	return s.Notify(ctx, tx, e)
}

// CredentialRemoved notifies a user at all validated addresses that one of them is deleted. value hints at it. Call it before
// the deletion, so that the deleted address gets the message, too.
func (s *Service) CredentialRemoved(ctx context.Context, tx *store.Tx, userID, value string) error {
	return s.notifyOfAccount(ctx, tx, event.CredentialRemoved, userID, map[string]any{"Value": value})
}

func (s *Service) notifyOfAccount(ctx context.Context, tx *store.Tx, kind event.Kind, userID string, args map[string]any) error {
	return s.Notify(ctx, tx, accountEvent(kind, userID, args))
}

func accountEvent(kind event.Kind, userID string, args map[string]any) event.Event {
	return event.Event{Kind: kind, Type: access.Users, RecordID: userID, Recipients: []string{userID}, Args: args}
}
