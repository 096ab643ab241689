package directory

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"kontor/modules/kit/types"
	"kontor/modules/kit/validate"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

// A display name must not deceive. Its bearer may not choose one that resembles the display name or a sign-in name of a
// staff member, or that contains a word of reservedWords. Administrators may give any well-formed name.
//
// The check is made when a name is chosen. A user who becomes staff later keeps their name, and so do users whose names
// resemble it: the names of others are left alone, and answers mark who is staff.

// reservedWords claim to speak for the bank, in the four languages. Whoever has one as a family name asks the bank to
// enter the name.
var reservedWords = []string{
	"Kontor", "bank", "banque", "banca",
	"admin", "administrator", "Administratorin", "administrateur", "amministratore",
	"support", "help desk", "Kundendienst", "service client", "servizio clienti", "assistance", "assistenza",
	"security", "Sicherheit", "sécurité", "sicurezza",
}

// checkDisplayName parses a display name, which may be empty, and notes what is wrong with it.
func checkDisplayName(v *apierr.Fields, field, text string) string {
	if text == "" {
		return ""
	}
	name, err := types.ParseDisplayName(text)
	if errors.Is(err, types.RuleTooLong) {
		v.Add(field, "invalid.max_length", apierr.Args{"Max": types.MaxDisplayName})
		return ""
	}
	validate.Note(v, field, err)
	return name
}

// selectResembling finds a staff member other than $1 whose display name or sign-in name has one of two skeletons. $4 and
// the following are staff principals.
const selectResembling = `
	SELECT named.id FROM (
		SELECT id FROM users WHERE display_name_skeleton IN ($2, $3)
		UNION
		SELECT user_id FROM credentials WHERE value_skeleton IN ($2, $3) AND validated = TRUE
	) named
	WHERE named.id <> $1 AND (named.id IN (%[1]s)
		OR EXISTS (SELECT 1 FROM user_roles r WHERE r.user_id = named.id AND r.role_id IN (%[1]s)))
	LIMIT 1`

// isReserved reports whether a user may not choose a display name: it resembles a name of another user who is staff, or it
// claims to be the bank's.
func (s *Service) isReserved(ctx context.Context, q store.Querier, userID, name string) (bool, error) {
	if name == "" {
		return false, nil
	}
	if types.ContainsWords(name, reservedWords...) {
		return true, nil
	}
	sorted, written := types.NameSkeleton(name), types.WrittenSkeleton(name)
	for staff := range slices.Chunk(s.Policy.Load().StaffPrincipals(), idsAtOnce) {
		statement := fmt.Sprintf(selectResembling, store.In(4, len(staff)))
		var id string
		err := q.QueryRow(ctx, statement, store.AppendIn([]any{userID, sorted, written}, staff)...).Scan(&id)
		if err == nil {
			return true, nil
		}
		if !errors.Is(err, store.ErrNotFound) {
			return false, fmt.Errorf("compare a display name with those of staff: %w", err)
		}
	}
	return false, nil
}

// refusedNames is how many reserved names a user may try in an hour. The refusals tell which names staff have.
const refusedNames = 10

// rename sets the display name of a user. refused is apierr.DisplayNameReserved for a name that its bearer may not choose;
// the transaction has to be committed with it, so that the try counts. It returns apierr.NoAccess for a caller who is
// neither the bearer nor an administrator, and apierr.RateLimited after too many refused names.
func (s *Service) rename(ctx context.Context, tx *store.Tx, u *User, name string) (refused, err error) {
	caller := access.From(ctx)
	switch {
	case caller.Administrator():
	case caller.UserID != u.ID:
		return nil, apierr.NoAccess
	default:
		tried := limits{apierr.RateLimited, []quota{{s.subject("display names", u.ID), refusedNames, hour}}}
		if err := tried.check(ctx, tx); err != nil {
			return nil, err
		}
		reserved, err := s.isReserved(ctx, tx, u.ID, name)
		if err != nil {
			return nil, err
		}
		if reserved {
			return apierr.DisplayNameReserved, tried.count(ctx, tx)
		}
	}
	u.DisplayName = name
	return nil, nil
}
