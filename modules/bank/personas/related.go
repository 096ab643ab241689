package personas

import (
	"context"
	"fmt"

	"kontor/modules/kit/types"
	"kontor/store"
)

// relatedPersonas begins a statement with the present and former relations of the user $1. It defines four sets:
//   - names: the identities of the user.
//   - self: personas that are or were linked to the user, and others with the same names and date of birth.
//   - own: these, and personas that had the same names and date of birth. Their present users may be other people.
//   - linked: personas at the other end of a link of an own persona that is or was active.
//
// Pending links do not count: otherwise the owner of any persona could relate two users who do not know
// each other.
const relatedPersonas = `
	WITH names AS (` + identitiesStatement + `
	), self AS (
		SELECT persona_id AS id FROM persona_users WHERE user_id = $1 AND accepted_at IS NOT NULL
		UNION
		SELECT persona_id FROM former_persona_users WHERE user_id = $1
		UNION
		SELECT p.id FROM personas p JOIN names n
			ON p.last_name_key = n.last_name_key AND p.first_name_key = n.first_name_key AND p.date_of_birth = n.date_of_birth
		WHERE p.erased_at IS NULL
	), own AS (
		SELECT id FROM self
		UNION
		SELECT f.persona_id FROM persona_names f JOIN names n
			ON f.last_name_key = n.last_name_key AND f.first_name_key = n.first_name_key AND f.date_of_birth = n.date_of_birth
	), linked AS (
		SELECT l.linked_persona_id AS id FROM persona_links l JOIN own ON own.id = l.persona_id WHERE l.accepted_at IS NOT NULL
		UNION
		SELECT l.persona_id FROM persona_links l JOIN own ON own.id = l.linked_persona_id WHERE l.accepted_at IS NOT NULL
		UNION
		SELECT l.linked_persona_id FROM former_persona_links l JOIN own ON own.id = l.persona_id
		UNION
		SELECT l.persona_id FROM former_persona_links l JOIN own ON own.id = l.linked_persona_id
	), related AS (
		SELECT id FROM self UNION SELECT id FROM linked
	)`

const linkedIdentitiesStatement = relatedPersonas + `
	SELECT p.first_name_key, p.last_name_key, p.date_of_birth FROM personas p JOIN linked ON linked.id = p.id WHERE p.erased_at IS NULL
	UNION
	SELECT n.first_name_key, n.last_name_key, n.date_of_birth FROM persona_names n JOIN linked ON linked.id = n.persona_id`

// relatedUsersStatement selects the users of related personas, and those with an identity of the user.
const relatedUsersStatement = relatedPersonas + `
	SELECT user_id FROM persona_users WHERE accepted_at IS NOT NULL AND user_id <> $1 AND persona_id IN (SELECT id FROM related)
	UNION
	SELECT user_id FROM former_persona_users WHERE user_id <> $1 AND persona_id IN (SELECT id FROM related)
	UNION
	SELECT u.user_id FROM names n JOIN persona_names f
		ON f.last_name_key = n.last_name_key AND f.first_name_key = n.first_name_key AND f.date_of_birth = n.date_of_birth
	JOIN persona_users u ON u.persona_id = f.persona_id
	WHERE u.user_id <> $1 AND u.accepted_at IS NOT NULL AND (f.until >= u.accepted_at OR f.by_staff = TRUE OR f.renamed_by = u.user_id)
	UNION
	SELECT f.user_id FROM names n JOIN former_identities f
		ON f.last_name_key = n.last_name_key AND f.first_name_key = n.first_name_key AND f.date_of_birth = n.date_of_birth
	WHERE f.user_id <> $1`

// bornStatement selects the dates of birth of a user, as far as other members of staff have recorded them.
const bornStatement = `
	SELECT DISTINCT p.date_of_birth FROM persona_users u JOIN personas p ON p.id = u.persona_id
	WHERE u.user_id = $1 AND u.created_by <> $1 AND u.accepted_at = u.created_at`

// LinkedIdentities returns the present and former identities of the personas that have, or had, an active link with those of a user.
func (s *Service) LinkedIdentities(ctx context.Context, q store.Querier, userID string) ([]types.Identity, error) {
	identities, err := store.All(ctx, q, scanIdentity, linkedIdentitiesStatement, userID)
	if err != nil {
		return nil, fmt.Errorf("read linked identities: %w", err)
	}
	return identities, nil
}

// RelatedUsers returns the users who are or were the same person as a user, or whose personas have or had an active link with those
// of the user.
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

// BirthDates returns the dates of birth of a user that other members of staff have recorded.
func (s *Service) BirthDates(ctx context.Context, q store.Querier, userID string) ([]string, error) {
	return store.All(ctx, q, store.Text, bornStatement, userID)
}
