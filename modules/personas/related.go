package personas

import (
	"context"
	"fmt"

	"kontor/modules/kit/types"
	"kontor/store"
)

// relatedPersonas begins a statement with the personas that the user $1 is: those linked to the user, and others with the same
// names and date of birth. linked are the personas at the other end of an active link. Pending links do not count: otherwise the
// owner of any persona could relate two users who do not know each other.
const relatedPersonas = `
	WITH mine AS (
		SELECT p.id, p.first_name_key, p.last_name_key, p.date_of_birth
		FROM persona_users u JOIN personas p ON p.id = u.persona_id
		WHERE u.user_id = $1 AND u.accepted_at IS NOT NULL
	), self AS (
		SELECT p.id FROM personas p JOIN mine m
			ON p.last_name_key = m.last_name_key AND p.first_name_key = m.first_name_key AND p.date_of_birth = m.date_of_birth
	), linked AS (
		SELECT l.linked_persona_id AS id FROM persona_links l JOIN self ON self.id = l.persona_id WHERE l.accepted_at IS NOT NULL
		UNION
		SELECT l.persona_id AS id FROM persona_links l JOIN self ON self.id = l.linked_persona_id WHERE l.accepted_at IS NOT NULL
	)`

const linkedIdentitiesStatement = relatedPersonas + `
	SELECT p.first_name_key, p.last_name_key, p.date_of_birth FROM personas p JOIN linked ON linked.id = p.id`

const relatedUsersStatement = relatedPersonas + `
	SELECT DISTINCT u.user_id FROM persona_users u
	WHERE u.accepted_at IS NOT NULL AND u.user_id <> $1
		AND (u.persona_id IN (SELECT id FROM self) OR u.persona_id IN (SELECT id FROM linked))`

// LinkedIdentities returns the identities of the personas that have an active link with those of a user.
func (s *Service) LinkedIdentities(ctx context.Context, q store.Querier, userID string) ([]types.Identity, error) {
	identities, err := store.All(ctx, q, func(row store.Scanner) (i types.Identity, err error) {
		err = row.Scan(&i.FirstName, &i.LastName, &i.DateOfBirth)
		return i, err
	}, linkedIdentitiesStatement, userID)
	if err != nil {
		return nil, fmt.Errorf("read linked identities: %w", err)
	}
	return identities, nil
}

// RelatedUsers returns the users who are the same person as a user, or whose personas have an active link with those of the user.
func (s *Service) RelatedUsers(ctx context.Context, q store.Querier, userID string) (map[string]bool, error) {
	ids, err := store.All(ctx, q, store.Text, relatedUsersStatement, userID)
	if err != nil {
		return nil, fmt.Errorf("read related users: %w", err)
	}
	related := make(map[string]bool, len(ids))
	for _, id := range ids {
		related[id] = true
	}
	return related, nil
}
