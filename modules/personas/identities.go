package personas

import (
	"context"
	"fmt"

	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/store"
)

// identitiesStatement finds who a user is, or was: by the personas that are linked to them, by the names that these had
// while they were linked, or before when staff or the user changed the name, and by links that have ended. What somebody
// else called a persona before the user accepted the link does not count: else whoever owns a persona could make anybody
// into anyone.
const identitiesStatement = `
	SELECT p.first_name_key, p.last_name_key, p.date_of_birth
	FROM persona_users u JOIN personas p ON p.id = u.persona_id
	WHERE u.user_id = $1 AND u.accepted_at IS NOT NULL
	UNION
	SELECT n.first_name_key, n.last_name_key, n.date_of_birth
	FROM persona_users u JOIN persona_names n ON n.persona_id = u.persona_id
	WHERE u.user_id = $1 AND u.accepted_at IS NOT NULL AND (n.until >= u.accepted_at OR n.by_staff = TRUE OR n.renamed_by = $1)
	UNION
	SELECT first_name_key, last_name_key, date_of_birth FROM former_identities
	WHERE user_id = $1`

// keepIdentityStatement remembers who the user $2 is by the persona, unless the link is pending.
const keepIdentityStatement = `
	INSERT INTO former_identities (user_id, first_name_key, last_name_key, date_of_birth, until)
	SELECT u.user_id, p.first_name_key, p.last_name_key, p.date_of_birth, CAST($3 AS BIGINT)
	FROM persona_users u JOIN personas p ON p.id = u.persona_id
	WHERE u.persona_id = $1 AND u.user_id = $2 AND u.accepted_at IS NOT NULL
	UNION
	SELECT u.user_id, n.first_name_key, n.last_name_key, n.date_of_birth, CAST($3 AS BIGINT)
	FROM persona_users u JOIN persona_names n ON n.persona_id = u.persona_id
	WHERE u.persona_id = $1 AND u.user_id = $2 AND u.accepted_at IS NOT NULL
		AND (n.until >= u.accepted_at OR n.by_staff = TRUE OR n.renamed_by = $2)
	ON CONFLICT (user_id, first_name_key, last_name_key, date_of_birth) DO UPDATE SET until = excluded.until`

const insertNameStatement = `
	INSERT INTO persona_names (persona_id, first_name_key, last_name_key, date_of_birth, until, renamed_by, by_staff)
	SELECT p.id, p.first_name_key, p.last_name_key, p.date_of_birth, $2, $3, $4 FROM personas p WHERE p.id = $1
	ON CONFLICT (persona_id, first_name_key, last_name_key, date_of_birth, renamed_by) DO UPDATE SET
		until = excluded.until, by_staff = excluded.by_staff`

const selectOthersStatement = `
	SELECT ` + userLinkColumns + ` FROM persona_users
	WHERE persona_id = $1 AND user_id <> $2 AND accepted_at IS NOT NULL`

const suspendStatement = `UPDATE persona_users SET accepted_at = NULL, version = $2 WHERE id = $1`

// Identities returns who a user is, or ever was, by the personas that are linked to them. Inactive personas count, and so
// do names that a persona no longer has and links that have ended: the person is still the same. Pending links do not.
func (s *Service) Identities(ctx context.Context, q store.Querier, userID string) ([]types.Identity, error) {
	rows, err := q.Query(ctx, identitiesStatement, userID)
	if err != nil {
		return nil, fmt.Errorf("read identities: %w", err)
	}
	defer rows.Close()
	var identities []types.Identity
	for rows.Next() {
		var i types.Identity
		if err := rows.Scan(&i.FirstName, &i.LastName, &i.DateOfBirth); err != nil {
			return nil, fmt.Errorf("read identity: %w", err)
		}
		identities = append(identities, i)
	}
	return identities, rows.Err()
}

// isStaff reports whether the caller may update all personas. Only their word, or that of the user, makes a persona the
// identity of a user.
func isStaff(caller *access.Caller) bool { return caller.May(access.Personas, access.Update) }

// keepNames remembers who a persona was before it is renamed. Users who have accepted the old identity have not accepted
// the new one: unless staff or they themselves rename it, their links are pending again.
func keepNames(ctx context.Context, tx *store.Tx, before, after Persona) error {
	caller := access.From(ctx)
	staff := isStaff(caller)
	if _, err := tx.Exec(ctx, insertNameStatement, before.ID, tx.Now(), caller.UserID, staff); err != nil {
		return err
	}
	if staff || samePerson(before, after) {
		return nil
	}
	others, err := usersBut(ctx, tx, before.ID, caller.UserID)
	if err != nil {
		return err
	}
	for _, l := range others {
		if err := keepIdentity(ctx, tx, before.ID, l.UserID); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, suspendStatement, l.ID, l.version+1); err != nil {
			return err
		}
		table.Audit(ctx, tx, "personas.suspend_user", before.ID, nil, nil) // the entry of the change has the links
	}
	return nil
}

func samePerson(a, b Persona) bool {
	return types.PersonKey(a.FirstName, a.LastName) == types.PersonKey(b.FirstName, b.LastName) && a.DateOfBirth == b.DateOfBirth
}

// usersBut reads the accepted links of a persona to users, but one.
func usersBut(ctx context.Context, q store.Querier, personaID, userID string) ([]UserLink, error) {
	rows, err := q.Query(ctx, selectOthersStatement, personaID, userID)
	if err != nil {
		return nil, fmt.Errorf("read users of a persona: %w", err)
	}
	defer rows.Close()
	var links []UserLink
	for rows.Next() {
		l, err := scanUserLink(rows)
		if err != nil {
			return nil, fmt.Errorf("read user of a persona: %w", err)
		}
		links = append(links, l)
	}
	return links, rows.Err()
}

func keepIdentity(ctx context.Context, tx *store.Tx, personaID, userID string) error {
	_, err := tx.Exec(ctx, keepIdentityStatement, personaID, userID, tx.Now())
	return err
}
