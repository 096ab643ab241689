package personas

import (
	"context"
	"fmt"

	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/store"
)

// identitiesStatement selects the present and former identities of a user: of linked personas, of names that these personas
// had while they were linked, and of former links. Names from before the acceptance count only if staff or the user changed
// them. Otherwise the owner of a persona could give any user any identity.
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

// keepIdentityStatement stores the identities that the user $2 has by the persona $1, unless the link is pending.
const keepIdentityStatement = `
	INSERT INTO former_identities (user_id, first_name_key, last_name_key, date_of_birth, until)
	SELECT u.user_id, p.first_name_key, p.last_name_key, p.date_of_birth, CAST($3 AS BIGINT)
	FROM persona_users u JOIN personas p ON p.id = u.persona_id
	WHERE u.persona_id = $1 AND u.user_id = $2 AND u.accepted_at IS NOT NULL
	UNION
	SELECT u.user_id, n.first_name_key, n.last_name_key, n.date_of_birth, CAST($3 AS BIGINT)
	FROM persona_users u JOIN persona_names n ON n.persona_id = u.persona_id
	WHERE u.persona_id = $1 AND u.user_id = $2 AND u.accepted_at IS NOT NULL AND (n.until >= u.accepted_at OR n.by_staff = TRUE OR n.renamed_by = $2)
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

// Identities returns the present and former identities of a user, from the personas linked to them. Inactive personas, former
// names and former links count, because the person is the same. Pending links do not count.
func (s *Service) Identities(ctx context.Context, q store.Querier, userID string) ([]types.Identity, error) {
	identities, err := store.All(ctx, q, scanIdentity, identitiesStatement, userID)
	if err != nil {
		return nil, fmt.Errorf("read identities: %w", err)
	}
	return identities, nil
}

func scanIdentity(row store.Scanner) (i types.Identity, err error) {
	err = row.Scan(&i.FirstName, &i.LastName, &i.DateOfBirth)
	return i, err
}

// isStaff reports whether the caller may update all personas. Only such callers and the user can activate a link to a user.
func isStaff(caller *access.Caller) bool { return caller.May(access.Personas, access.Update) }

// keepNames stores the names of a persona before it is renamed. Users who accepted the old identity have not accepted the new
// one. Their links become pending again, unless staff or they themselves rename the persona. It returns apierr.OwnPersona.
func keepNames(ctx context.Context, tx *store.Tx, before, after Persona) error {
	if after.FirstName == before.FirstName && after.LastName == before.LastName && after.DateOfBirth == before.DateOfBirth {
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
	others, err := otherUserLinks(ctx, tx, before.ID, caller.UserID)
	if err != nil {
		return err
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

func samePerson(a, b Persona) bool {
	return types.PersonKey(a.FirstName, a.LastName) == types.PersonKey(b.FirstName, b.LastName) && a.DateOfBirth == b.DateOfBirth
}

// otherUserLinks returns the accepted links of a persona to all users except one.
func otherUserLinks(ctx context.Context, q store.Querier, personaID, userID string) ([]UserLink, error) {
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
