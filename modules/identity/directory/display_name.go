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

// A display name must not deceive. Users may not choose one that resembles the display name or a sign-in name of a
// staff member, or that contains a word of reservedWords or, unless they are staff, of roleWords. Administrators may give any well-formed name.
//
// Limit: the check runs when a user chooses a name. If a user becomes staff later, users with similar names keep their names. The
// member people of answers marks staff.

// reservedWords are words in names that claim to be the bank's, in the four languages. People with such a family name can
// ask an administrator to enter it.
var reservedWords = []string{
	"Kontor", "bank", "banque", "banca",
	"admin", "administrator", "Administratorin", "administrateur", "amministratore",
	"support", "help desk", "Kundendienst", "service client", "servizio clienti", "assistance", "assistenza",
	"security", "Sicherheit", "sécurité", "sicurezza",
}

// roleWords are words in names that claim a role at the bank. Staff may use them.
var roleWords = []string{
	"advisor", "adviser", "Berater", "Beraterin", "Kundenberater", "Kundenberaterin", "Kundenberatung", "Beratung", "conseiller", "conseillère",
	"conseil clientèle", "service clientèle", "consulente", "consulenza", "consulenza clienti", "customer care", "customer service", "customer support",
	"Kundenservice", "Kundenbetreuung", "Kundenbetreuer", "Kundenbetreuerin", "relationship manager", "gestionnaire", "compliance",
	"Filialleiter", "Filialleiterin", "branch manager", "chef de succursale", "directeur de succursale", "capofiliale", "direttore di filiale",
}

// titles are words that stand before or behind names, also without a space.
var titles = slices.Concat(reservedWords, roleWords, personalTitles)

// personalTitles are titles that the display name of a member of staff may have, too.
var personalTitles = []string{
	"Mr", "Mrs", "Ms", "Miss", "Mister", "Sir", "Madam", "Dr", "Doctor", "Prof", "Professor",
	"Hr", "Fr", "Herr", "Herrn", "Frau", "Fräulein", "Doktor", "Ing", "Dipl", "lic", "Mag",
	"Mme", "Mlle", "Madame", "Mademoiselle", "Monsieur", "Docteur", "Maître",
	"Sig", "Sigra", "Signor", "Signore", "Signora", "Signorina", "Dott", "Dottssa", "Dottor", "Dottore", "Dottoressa", "Avv", "Avvocato",
}

// checkDisplayName parses an optional display name and adds what is wrong with it to v.
func checkDisplayName(v *apierr.Fields, text string) string {
	if text == "" {
		return ""
	}
	name, err := types.ParseDisplayName(text)
	if errors.Is(err, types.RuleTooLong) {
		v.Add("display_name", "invalid.max_length", apierr.Args{"Max": types.MaxDisplayName})
		return ""
	}
	validate.Note(v, "display_name", err)
	return name
}

// selectResembling finds a staff member other than $1 whose display name or sign-in name has one of some skeletons. The
// lists are the skeletons, those of glued names, the skeletons again, and staff principals, twice.
const selectResembling = `
	SELECT named.id FROM (
		SELECT id FROM users WHERE display_name_skeleton IN (%s)
		UNION
		SELECT id FROM users WHERE display_name_skeleton IN (%s) AND display_name LIKE '%% %%'
		UNION
		SELECT user_id FROM credentials WHERE value_skeleton IN (%s) AND validated = TRUE
	) named
	WHERE named.id <> $1 AND (named.id IN (%s)
		OR EXISTS (SELECT 1 FROM user_roles r WHERE r.user_id = named.id AND r.role_id IN (%s)))
	LIMIT 1`

// isReserved reports whether users may not choose a display name: it resembles the display name or sign-in name of another
// user who is staff, or contains a reserved word.
func (s *Service) isReserved(ctx context.Context, q store.Querier, userID, name string) (bool, error) {
	if name == "" {
		return false, nil
	}
	reserved, err := s.resembles(ctx, q, userID, name)
	if latin := types.LatinCapitals(name); err == nil && !reserved && latin != name {
		reserved, err = s.resembles(ctx, q, userID, latin)
	}
	return reserved, err
}

// resembles reports whether a name contains a reserved word or shares a skeleton with a name of another user who is staff. It compares
// the whole name, its parts of two words or more, and what remains without glued titles.
func (s *Service) resembles(ctx context.Context, q store.Querier, userID, name string) (bool, error) {
	if types.ContainsWords(name, reservedWords...) || !access.From(ctx).Staff() && types.ContainsWords(name, roleWords...) {
		return true, nil
	}
	// The whole name, and the names in it: a title or a role beside the name of a member of staff deceives as well.
	skeletons := append([]string{types.NameSkeleton(name), types.WrittenSkeleton(name)}, types.ContainedSkeletons(name)...)
	for _, title := range personalTitles {
		skeletons = append(skeletons, types.NameSkeleton(title+" "+name))
	}
	glued := types.GluedSkeletons(name, titles...)
	for staff := range slices.Chunk(s.Policy.Load().StaffPrincipals(), idsAtOnce) {
		args := store.AppendIn([]any{userID}, skeletons)
		names, gluedNames := store.In(2, len(skeletons)), store.In(len(args)+1, len(glued))
		args = store.AppendIn(args, glued)
		list := store.In(len(args)+1, len(staff))
		statement := fmt.Sprintf(selectResembling, names, gluedNames, names, list, list)
		var id string
		err := q.QueryRow(ctx, statement, store.AppendIn(args, staff)...).Scan(&id)
		if err == nil {
			return true, nil
		}
		if !errors.Is(err, store.ErrNotFound) {
			return false, fmt.Errorf("compare a display name with those of staff: %w", err)
		}
	}
	return false, nil
}

// rejectedNames is the number of reserved names that a user may try in an hour, because each rejection reveals a name of staff.
const rejectedNames = 10

// rename sets the display name of a user. rejection is apierr.DisplayNameReserved for a name that the user may not choose;
// the transaction must be committed with it, so that the attempt counts. It returns apierr.NoAccess for a caller who is
// neither the user nor an administrator, and apierr.RateLimited after too many rejected names.
func (s *Service) rename(ctx context.Context, tx *store.Tx, u *User, name string) (rejection, err error) {
	caller := access.From(ctx)
	switch {
	case caller.Administrator():
	case caller.UserID != u.ID:
		return nil, apierr.NoAccess
	default:
		tried := limits{apierr.RateLimited, []quota{{s.subject("display names", u.ID), rejectedNames, hour}}}
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

// keyRules is the version of the rules of [LoginKey], types.NameSkeleton and types.SearchKey. Raise it when they change:
// the next start derives the keys of all credentials and users again. 2 added the skeletons, 3 small
// capitals in them.
const keyRules = 3

const (
	selectKeyRules = `SELECT COALESCE(max(version), 0) FROM credential_key_rules`
	insertKeyRules = `INSERT INTO credential_key_rules (version, applied_at) VALUES ($1, $2)`

	selectCredentialsFrom = `
		SELECT ` + credentialColumns + ` FROM credentials WHERE id > $1 ORDER BY id LIMIT $2`

	updateCredentialKey = `UPDATE credentials SET value_key = $2 WHERE id = $1`

	updateValueSkeleton = `UPDATE credentials SET value_skeleton = $2 WHERE id = $1`

	countKey = `SELECT count(*) FROM credentials WHERE value_key = $1 AND id <> $2`

	selectNamesFrom = `
		SELECT id, display_name FROM users WHERE id > $1 AND display_name <> '' ORDER BY id LIMIT $2`

	updateNameKeys = `UPDATE users SET display_name_key = $2, display_name_skeleton = $3 WHERE id = $1`
)

// Start derives the keys of credentials and names again when the rules have changed. A credential whose new key another one
// has keeps its former key, with which its user still signs in; the log and the audit trail report it. An interrupted start
// begins again. Call Start once the records have their audit entries: a changed key leaves a further one.
func (s *Service) Start(ctx context.Context) error {
	var version int
	if err := s.db.QueryRow(ctx, selectKeyRules).Scan(&version); err != nil || version >= keyRules {
		return err
	}
	for _, part := range []func(ctx context.Context, tx *store.Tx, after string) (last string, more bool, err error){s.rekey, s.rekeyNames} {
		for after, more := "", true; more; {
			err := s.db.InTx(ctx, func(tx *store.Tx) (err error) {
				after, more, err = part(ctx, tx, after)
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	return s.db.InTx(ctx, func(tx *store.Tx) error { return tx.Run(ctx, insertKeyRules, keyRules, tx.Now()) })
}

// rekey derives the keys of some credentials again, in the order of their ids: the older one of two that collide gets the
// key.
func (s *Service) rekey(ctx context.Context, tx *store.Tx, after string) (last string, more bool, err error) {
	part, err := store.All(ctx, tx, scanCredential, selectCredentialsFrom, after, purgeBatch)
	if err != nil || len(part) == 0 {
		return after, false, err
	}
	for _, c := range part {
		if _, err := tx.Exec(ctx, updateValueSkeleton, c.ID, types.NameSkeleton(c.Value)); err != nil {
			return after, false, err
		}
		if err := s.rekeyOne(ctx, tx, c); err != nil {
			return after, false, err
		}
	}
	return part[len(part)-1].ID, true, nil
}

// rekeyOne derives the key of one credential again.
func (s *Service) rekeyOne(ctx context.Context, tx *store.Tx, c Credential) error {
	id, err := parseIdentifier(c.Type, c.Value)
	if valid := err == nil; !valid || id.key == c.target() {
		return nil // a value that is no longer valid keeps its key
	}
	key := id.key + c.key[len(c.target()):]
	var others int
	if err := tx.QueryRow(ctx, countKey, key, c.ID).Scan(&others); err != nil {
		return err
	}
	if others > 0 {
		s.Log.Warn("credential looks like an older one and keeps its former key", "credential_id", c.ID, "user_id", c.UserID)
		tx.Audit(store.AuditEntry{Actor: store.NilID, Action: "credentials.look_alike", RecType: access.Credentials.Name, RecID: c.ID})
		return nil
	}
	if _, err := tx.Exec(ctx, updateCredentialKey, c.ID, key); err != nil {
		return err
	}
	entry := store.AuditEntry{Actor: store.NilID, Action: "credentials.rekey", RecType: credentialProof.Type, RecID: c.ID}
	return credentialProof.AuditEntry(ctx, tx, entry)
}

// rekeyNames derives the keys of some display names again.
func (s *Service) rekeyNames(ctx context.Context, tx *store.Tx, after string) (last string, more bool, err error) {
	names := map[string]string{}
	err = store.Each(ctx, tx, func(row store.Scanner) error {
		var name string
		err := row.Scan(&last, &name)
		names[last] = name
		return err
	}, selectNamesFrom, after, purgeBatch)
	if err != nil {
		return after, false, err
	}
	for id, name := range names {
		if _, err := tx.Exec(ctx, updateNameKeys, id, types.SearchKey(name), types.NameSkeleton(name)); err != nil {
			return after, false, err
		}
	}
	return last, len(names) > 0, nil
}
