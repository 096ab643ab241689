package personas

import (
	"context"
	"fmt"

	"kontor/modules/kit/evidence"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

// identitiesStatement selects the present and former identities of a user: of linked personas, of names that these personas
// had while they were linked, and of former links. Names from before the acceptance count only if staff or the user changed
// them. Otherwise the owner of a persona could give any user any identity.
const identitiesStatement = `
	SELECT p.first_name_key, p.last_name_key, p.date_of_birth, p.identity_proven AS proven
	FROM persona_users u JOIN personas p ON p.id = u.persona_id
	WHERE u.user_id = $1 AND u.accepted_at IS NOT NULL
	UNION
	SELECT n.first_name_key, n.last_name_key, n.date_of_birth, n.proven
	FROM persona_users u JOIN persona_names n ON n.persona_id = u.persona_id
	WHERE u.user_id = $1 AND u.accepted_at IS NOT NULL AND (n.until >= u.accepted_at OR n.by_staff = TRUE OR n.renamed_by = $1)
	UNION
	SELECT first_name_key, last_name_key, date_of_birth, proven FROM former_identities
	WHERE user_id = $1`

// keepIdentityStatement stores the identities that the user $2 has by the persona $1, unless the link is pending.
const keepIdentityStatement = `
	INSERT INTO former_identities (user_id, first_name_key, last_name_key, date_of_birth, until, proven)
	SELECT user_id, first_name_key, last_name_key, date_of_birth, CAST($3 AS BIGINT), MAX(proven) = 1
	FROM (
		SELECT u.user_id, p.first_name_key, p.last_name_key, p.date_of_birth, CASE WHEN p.identity_proven = TRUE THEN 1 ELSE 0 END AS proven
		FROM persona_users u JOIN personas p ON p.id = u.persona_id
		WHERE u.persona_id = $1 AND u.user_id = $2 AND u.accepted_at IS NOT NULL
		UNION
		SELECT u.user_id, n.first_name_key, n.last_name_key, n.date_of_birth, CASE WHEN n.proven = TRUE THEN 1 ELSE 0 END
		FROM persona_users u JOIN persona_names n ON n.persona_id = u.persona_id
		WHERE u.persona_id = $1 AND u.user_id = $2 AND u.accepted_at IS NOT NULL AND (n.until >= u.accepted_at OR n.by_staff = TRUE OR n.renamed_by = $2)
	) AS known
	WHERE TRUE
	GROUP BY user_id, first_name_key, last_name_key, date_of_birth
	ON CONFLICT (user_id, first_name_key, last_name_key, date_of_birth) DO UPDATE SET
		until = excluded.until, proven = former_identities.proven OR excluded.proven`

const insertNameStatement = `
	INSERT INTO persona_names (persona_id, first_name_key, last_name_key, date_of_birth, until, renamed_by, by_staff, proven)
	SELECT p.id, p.first_name_key, p.last_name_key, p.date_of_birth, $2, $3, $4, p.identity_proven FROM personas p WHERE p.id = $1
	ON CONFLICT (persona_id, first_name_key, last_name_key, date_of_birth, renamed_by) DO UPDATE SET
		until = excluded.until, by_staff = excluded.by_staff, proven = persona_names.proven OR excluded.proven`

// selectOthersStatement selects the accepted links of a persona to all users except one.
const selectOthersStatement = `
	SELECT ` + userLinkColumns + ` FROM persona_users
	WHERE persona_id = $1 AND user_id <> $2 AND accepted_at IS NOT NULL`

const suspendStatement = `UPDATE persona_users SET accepted_at = NULL, version = $2 WHERE id = $1`

// Identities returns the present and former identities of a user, from the personas linked to them: proven are those that staff wrote.
// Inactive personas, former names and former links count, because the person is the same. Pending links do not count.
func (s *Service) Identities(ctx context.Context, q store.Querier, userID string) (proven []evidence.Proven[types.Identity], claimed []evidence.Claimed[types.Identity], err error) {
	err = store.Each(ctx, q, func(row store.Scanner) error {
		var i types.Identity
		var isProven bool
		err := row.Scan(&i.FirstName, &i.LastName, &i.DateOfBirth, &isProven)
		if isProven {
			proven = append(proven, evidence.Recorded(i))
		} else {
			claimed = append(claimed, evidence.Claim(i))
		}
		return err
	}, identitiesStatement, userID)
	if err != nil {
		return nil, nil, fmt.Errorf("read identities: %w", err)
	}
	return proven, claimed, nil
}

// scanProven scans an identity that staff wrote.
func scanProven(row store.Scanner) (evidence.Proven[types.Identity], error) {
	var i types.Identity
	err := row.Scan(&i.FirstName, &i.LastName, &i.DateOfBirth)
	return evidence.Recorded(i), err
}

// isStaff reports whether the caller may update all personas. Only such callers and the user can activate a link to a user.
func isStaff(caller *access.Caller) bool { return caller.May(access.Personas, access.Update) }

// keepNames stores the names of a persona before it is renamed. Users who accepted the old identity have not accepted the new
// one. Their links become pending again, unless staff or they themselves rename the persona. It returns apierr.OwnPersona.
func keepNames(ctx context.Context, tx *store.Tx, before, after Persona) error {
	if !after.identityChanged(before) {
		return nil
	}
	caller := access.From(ctx)
	if err := rejectOwn(ctx, tx, before.ID); err != nil {
		return err
	}
	staff := isStaff(caller)
	if _, err := tx.Exec(ctx, insertNameStatement, before.ID, tx.Now(), caller.UserID, staff); err != nil {
		return err
	}
	if staff || samePerson(before, after) {
		return nil
	}
	others, err := store.All(ctx, tx, scanUserLink, selectOthersStatement, before.ID, caller.UserID)
	if err != nil {
		return fmt.Errorf("read users of a persona: %w", err)
	}
	for _, l := range others {
		if err := keepUser(ctx, tx, before.ID, l.UserID); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, suspendStatement, l.ID, l.version+1); err != nil {
			return err
		}
		personas.Audit(ctx, tx, "personas.suspend_user", before.ID, nil, nil) // the entry of the change contains the links
	}
	return nil
}

// identityChanged reports whether the names or the date of birth differ from those before a change.
func (p Persona) identityChanged(before Persona) bool {
	return p.FirstName != before.FirstName || p.LastName != before.LastName || p.DateOfBirth != before.DateOfBirth
}

func samePerson(a, b Persona) bool {
	return types.PersonKey(a.FirstName, a.LastName) == types.PersonKey(b.FirstName, b.LastName) && a.DateOfBirth == b.DateOfBirth
}

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

	ownStatement = relatedPersonas + `
	SELECT id FROM own`

	isOwnStatement = relatedPersonas + `
	SELECT id FROM own WHERE id = $2`

	isRelatedStatement = relatedPersonas + `
	SELECT id FROM own WHERE id = $2
	UNION
	SELECT id FROM linked WHERE id = $2`
)

// keepUser stores who a user is by a persona before that link ends: the identities, and the persona.
func keepUser(ctx context.Context, tx *store.Tx, personaID, userID string) error {
	if _, err := tx.Exec(ctx, keepIdentityStatement, personaID, userID, tx.Now()); err != nil {
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

// isOwn reports whether the caller is, or was, the person of one of the personas: also of one without a link to their user to which staff
// gave the names and date of birth of the caller. So whatever decides who is related also decides what a caller may not change.
func isOwn(ctx context.Context, q store.Querier, personaIDs ...string) (bool, error) {
	for _, id := range personaIDs {
		if own, err := store.Exists(ctx, q, isOwnStatement, access.From(ctx).UserID, id); own || err != nil {
			return own, err
		}
	}
	return false, nil
}

// Own returns a SELECT of the personas that are, or were, the caller.
func (s *Service) Own(ctx context.Context) records.Selection {
	return records.Selection{SQL: ownStatement, Args: []any{access.From(ctx).UserID},
		Tables: []string{"personas", "persona_users", "persona_names", "former_identities", "former_persona_users"}}
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

// relatedPersonas begins a statement with the present and former relations of the user $1. It defines four sets:
//   - names: the identities of the user.
//   - self: personas that are or were linked to the user, and others to which staff gave the same names and date of birth.
//   - own: these, and personas that staff had given the same names and date of birth. Their present users may be other people.
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
		WHERE p.identity_proven = TRUE AND p.erased_at IS NULL
	), own AS (
		SELECT id FROM self
		UNION
		SELECT f.persona_id FROM persona_names f JOIN names n
			ON f.last_name_key = n.last_name_key AND f.first_name_key = n.first_name_key AND f.date_of_birth = n.date_of_birth
		WHERE f.proven = TRUE
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
	SELECT p.first_name_key, p.last_name_key, p.date_of_birth FROM personas p JOIN linked ON linked.id = p.id
	WHERE p.identity_proven = TRUE AND p.erased_at IS NULL
	UNION
	SELECT n.first_name_key, n.last_name_key, n.date_of_birth FROM persona_names n JOIN linked ON linked.id = n.persona_id
	WHERE n.proven = TRUE`

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
	WHERE p.identity_proven = TRUE AND u.user_id = $1 AND u.created_by <> $1 AND u.accepted_at = u.created_at`

// LinkedIdentities returns the present and former identities, as staff wrote them, of the personas that have, or had, an active link with
// those of a user.
func (s *Service) LinkedIdentities(ctx context.Context, q store.Querier, userID string) ([]evidence.Proven[types.Identity], error) {
	identities, err := store.All(ctx, q, scanProven, linkedIdentitiesStatement, userID)
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
func (s *Service) BirthDates(ctx context.Context, q store.Querier, userID string) ([]evidence.Proven[string], error) {
	return store.All(ctx, q, func(row store.Scanner) (evidence.Proven[string], error) {
		date, err := store.Text(row)
		return evidence.Recorded(date), err
	}, bornStatement, userID)
}
