package personas

import (
	"context"
	"fmt"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

// Ended links stay as evidence of who is related: it counts when a second person decides about a customer, and it does not matter who
// has ended the link.

const (
	keepUserStatement = `
		INSERT INTO former_persona_users (persona_id, user_id, until)
		SELECT persona_id, user_id, CAST($3 AS BIGINT) FROM persona_users WHERE persona_id = $1 AND user_id = $2 AND accepted_at IS NOT NULL
		ON CONFLICT (persona_id, user_id) DO UPDATE SET until = excluded.until`

	keepLinkStatement = `
		INSERT INTO former_persona_links (persona_id, linked_persona_id, until) VALUES ($1, $2, $3)
		ON CONFLICT (persona_id, linked_persona_id) DO UPDATE SET until = excluded.until`

	isOwnStatement = relatedPersonas + `
	SELECT id FROM own WHERE id = $2`

	isRelatedStatement = relatedPersonas + `
	SELECT id FROM own WHERE id = $2
	UNION
	SELECT id FROM linked WHERE id = $2`
)

// keepUser stores who a user is by a persona before that link ends: the identities, and the persona.
func keepUser(ctx context.Context, tx *store.Tx, personaID, userID string) error {
	if err := keepIdentity(ctx, tx, personaID, userID); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, keepUserStatement, personaID, userID, tx.Now())
	return err
}

// keepLink stores an active link between two personas before it ends.
func keepLink(ctx context.Context, tx *store.Tx, l Link) error {
	if l.acceptedAt == nil {
		return nil
	}
	_, err := tx.Exec(ctx, keepLinkStatement, l.PersonaID, l.LinkedPersonaID, tx.Now())
	return err
}

// isOwn reports whether the caller is, or was, the person of one of the personas: also of one without a link to their user that has,
// or had, the names and date of birth of the caller. So whatever decides who is related also decides what a caller may not change.
func isOwn(ctx context.Context, q store.Querier, personaIDs ...string) (bool, error) {
	for _, id := range personaIDs {
		found, err := store.All(ctx, q, store.Text, isOwnStatement, access.From(ctx).UserID, id)
		if len(found) > 0 || err != nil {
			return err == nil, err
		}
	}
	return false, nil
}

// rejectOwn returns apierr.OwnPersona when a caller who may review customers changes a name or ends a link of a persona of their own:
// it could hide that they are related to a customer or to another reviewer. Additions can only show more.
func rejectOwn(ctx context.Context, q store.Querier, personaIDs ...string) error {
	if !access.From(ctx).May(access.Customers, access.Update) {
		return nil
	}
	own, err := isOwn(ctx, q, personaIDs...)
	if err != nil {
		return fmt.Errorf("find the personas of the caller: %w", err)
	}
	if own {
		return apierr.OwnPersona
	}
	return nil
}

// RejectOwn returns apierr.OwnPersona when a caller who may review customers erases a persona of their own, or one with a link to it:
// an erasure deletes the evidence of both sides.
func (s *Service) RejectOwn(ctx context.Context, q store.Querier, personaID string) error {
	caller := access.From(ctx)
	if !caller.May(access.Customers, access.Update) {
		return nil
	}
	found, err := store.All(ctx, q, store.Text, isRelatedStatement, caller.UserID, personaID)
	if err != nil {
		return fmt.Errorf("find the personas related to the caller: %w", err)
	}
	if len(found) > 0 {
		return apierr.OwnPersona
	}
	return nil
}
