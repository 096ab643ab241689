package personas

import (
	"context"
	"fmt"

	"kontor/modules/kit/evidence"
	"kontor/modules/kit/personal"
	"kontor/modules/kit/records"
	"kontor/modules/kit/recordtype"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/store"
)

// PersonalData lists the tables of the module.
func (s *Service) PersonalData() []personal.Table {
	return append(s.Service.PersonalData(), []personal.Table{
		{Name: "persona_names", Holds: "former names and dates of birth of a persona", Sections: []string{"former_names"}},
		{Name: "persona_users", Holds: "the users who are a persona", Sections: []string{"users", "personas"}},
		{Name: "persona_links", Holds: "the relations of a persona to others", Sections: []string{"links"}},
		{Name: "former_persona_users", Holds: "the users who were a persona, as ids", Unexported: "It says who was related to whom, which is data on others."},
		{Name: "former_persona_links", Holds: "the relations of a persona that have ended, as ids", Unexported: "It says who was related to whom, which is data on others."},
		{Name: "former_identities", Holds: "names and dates of birth of personas to which a user was linked", Sections: []string{"former_identities"}},
	}...)
}

const (
	selectPersonaNames = `
		SELECT first_name_key, last_name_key, date_of_birth, until, first_name_key || ' ' || last_name_key || ' ' || date_of_birth || renamed_by AS place
		FROM persona_names
		WHERE persona_id = $1 AND first_name_key || ' ' || last_name_key || ' ' || date_of_birth || renamed_by > $2
		ORDER BY place LIMIT $3`

	selectFormerIdentities = `
		SELECT first_name_key, last_name_key, date_of_birth, until, first_name_key || ' ' || last_name_key || ' ' || date_of_birth AS place
		FROM former_identities
		WHERE user_id = $1 AND first_name_key || ' ' || last_name_key || ' ' || date_of_birth > $2
		ORDER BY place LIMIT $3`

	selectUsersOf = `
		SELECT ` + userLinkColumns + ` FROM persona_users
		WHERE persona_id = $1 AND id > $2 ORDER BY id LIMIT $3`

	selectPersonasOf = `
		SELECT ` + userLinkColumns + ` FROM persona_users
		WHERE user_id = $1 AND id > $2 ORDER BY id LIMIT $3`

	selectLinksOf = `
		SELECT ` + linkColumns + ` FROM persona_links
		WHERE (persona_id = $1 OR linked_persona_id = $1) AND id > $2 ORDER BY id LIMIT $3`
)

// formerName is an identity of the past, folded for comparisons.
type formerName struct {
	FirstName   string     `json:"first_name"`
	LastName    string     `json:"last_name"`
	DateOfBirth string     `json:"date_of_birth"`
	Until       store.Time `json:"until"`
}

func scanFormer(row store.Scanner) (n formerName, place string, err error) {
	err = row.Scan(&n.FirstName, &n.LastName, &n.DateOfBirth, &n.Until, &place)
	return n, place, err
}

// PersonalSections declares a persona with its former names and links, and the links and former identities of a user.
func (s *Service) PersonalSections() []personal.Section {
	mayRead := func(ctx context.Context, q store.Querier, personaID string) error {
		_, err := personas.Get(ctx, q, personaID, access.Read)
		return err
	}
	ofReadable := func(ctx context.Context, q store.Querier, of personal.Subject) error { return mayRead(ctx, q, of.ID) }
	userLinks := func(statement string) personal.Read[UserLink] {
		return personal.Rows(statement, scanUserLink, func(l UserLink) string { return l.ID })
	}
	return append(s.Service.PersonalSections(),
		personal.All(personal.About{Name: "former_names", Kind: personal.Persona, Rule: personal.OfParent},
			personal.Query(selectPersonaNames, scanFormer), ofReadable, nil),
		personal.All(personal.About{Name: "users", Kind: personal.Persona, Endpoint: "GET /v1/personas/{persona_id}/users"},
			userLinks(selectUsersOf), ofReadable, nil),
		personal.All(personal.About{Name: "links", Kind: personal.Persona, Endpoint: "GET /v1/personas/{persona_id}/links"},
			func(ctx context.Context, q store.Querier, of personal.Subject, after string) ([]personal.Keyed[Link], bool, error) {
				return personal.Query(selectLinksOf, func(row store.Scanner) (Link, string, error) {
					l, err := scanLink(row)
					return l.seenFrom(of.ID), l.ID, err
				})(ctx, q, of, after)
			}, ofReadable, nil),
		personal.Each(personal.About{Name: "personas", Kind: personal.User, Endpoint: "GET /v1/profile/personas"},
			userLinks(selectPersonasOf),
			func(ctx context.Context, q store.Querier, l UserLink) error {
				if access.From(ctx).UserID == l.UserID {
					return nil
				}
				return mayRead(ctx, q, l.PersonaID)
			}, nil),
		personal.Own(personal.About{Name: "former_identities", Kind: personal.User, Rule: personal.OwnUser},
			personal.Query(selectFormerIdentities, scanFormer), nil))
}

const (
	deleteNames = `DELETE FROM persona_names WHERE persona_id = $1`

	deleteFormerUsers = `DELETE FROM former_persona_users WHERE persona_id = $1`

	deleteFormerLinks = `DELETE FROM former_persona_links WHERE persona_id = $1 OR linked_persona_id = $1`

	deleteFormerPersonas = `DELETE FROM former_persona_users WHERE user_id = $1`

	// The former identities that its users have from the persona. Others may have the same names.
	deleteIdentitiesOfPersona = `
		DELETE FROM former_identities
		WHERE user_id IN (SELECT u.user_id FROM persona_users u WHERE u.persona_id = $1
				UNION SELECT f.user_id FROM former_persona_users f WHERE f.persona_id = $1)
			AND (EXISTS (SELECT 1 FROM personas p WHERE p.id = $1 AND p.first_name_key = former_identities.first_name_key
				AND p.last_name_key = former_identities.last_name_key AND p.date_of_birth = former_identities.date_of_birth)
			OR EXISTS (SELECT 1 FROM persona_names n WHERE n.persona_id = $1 AND n.first_name_key = former_identities.first_name_key
				AND n.last_name_key = former_identities.last_name_key AND n.date_of_birth = former_identities.date_of_birth))`

	deleteIdentitiesOfUser = `DELETE FROM former_identities WHERE user_id = $1`

	selectUserLinkIDs = `SELECT id FROM persona_users WHERE persona_id = $1 AND id > $2 ORDER BY id LIMIT $3`

	selectLinkIDs = `
		SELECT id FROM persona_links WHERE (persona_id = $1 OR linked_persona_id = $1) AND id > $2 ORDER BY id LIMIT $3`

	selectPersonaIDs = `SELECT persona_id FROM persona_users WHERE user_id = $1 AND persona_id > $2 ORDER BY persona_id LIMIT $3`

	deleteUserFromPersona = `DELETE FROM persona_users WHERE persona_id = $1 AND user_id = $2`

	selectOwnPersonas = `
		SELECT u.persona_id FROM persona_users u JOIN personas p ON p.id = u.persona_id
		WHERE u.user_id = $1 AND u.accepted_at IS NOT NULL AND p.erased_at IS NULL
			AND NOT EXISTS (SELECT 1 FROM persona_users o
				WHERE o.persona_id = u.persona_id AND o.user_id <> $1 AND o.accepted_at IS NOT NULL)
		ORDER BY u.persona_id LIMIT 100`
)

// AllowPersona checks for other modules that the caller has a permission on a persona. It returns apierr.PersonaNotFound and
// apierr.NoAccess.
func (s *Service) AllowPersona(ctx context.Context, q store.Querier, id string, wanted access.Permission) error {
	_, err := personas.Get(ctx, q, id, wanted)
	return err
}

// OfUser returns the personas that are not erased and that are linked to this user and to no other, at most 100. A persona of
// several users may describe another person, such as a client whom they represent.
func (s *Service) OfUser(ctx context.Context, q store.Querier, userID string) ([]string, error) {
	return store.All(ctx, q, store.Text, selectOwnPersonas, userID)
}

const (
	selectUserIDs = `
		SELECT user_id FROM persona_users WHERE persona_id = $1 AND accepted_at IS NOT NULL
		UNION
		SELECT user_id FROM former_persona_users WHERE persona_id = $1`

	selectByIdentity = `
		SELECT id FROM personas
		WHERE last_name_key = $1 AND first_name_key = $2 AND date_of_birth = $3 AND identity_proven = TRUE AND erased_at IS NULL
		UNION
		SELECT persona_id FROM persona_names WHERE last_name_key = $1 AND first_name_key = $2 AND date_of_birth = $3 AND proven = TRUE`

	selectIdentitiesOfPersona = `
		SELECT first_name_key, last_name_key, date_of_birth FROM personas WHERE id = $1 AND identity_proven = TRUE AND erased_at IS NULL
		UNION
		SELECT first_name_key, last_name_key, date_of_birth FROM persona_names WHERE persona_id = $1 AND proven = TRUE`
)

// UsersOf returns the users who are, or were, a persona.
func (s *Service) UsersOf(ctx context.Context, q store.Querier, personaID string) ([]string, error) {
	return store.All(ctx, q, store.Text, selectUserIDs, personaID)
}

// WithIdentity returns the personas to which staff gave the names and the date of birth, also those that have others since.
func (s *Service) WithIdentity(ctx context.Context, q store.Querier, identity evidence.Proven[types.Identity]) ([]string, error) {
	i := identity.Value()
	return store.All(ctx, q, store.Text, selectByIdentity, types.Fold(i.LastName), types.Fold(i.FirstName), i.DateOfBirth)
}

// IdentitiesOf returns the present and former identities of a persona that staff wrote.
func (s *Service) IdentitiesOf(ctx context.Context, q store.Querier, personaID string) ([]evidence.Proven[types.Identity], error) {
	return store.All(ctx, q, scanProven, selectIdentitiesOfPersona, personaID)
}

// ErasePerson erases a persona with its former names and links, or the links and former identities of a user.
func (s *Service) ErasePerson(ctx context.Context, tx *store.Tx, subject personal.Subject, cursor string) (string, error) {
	switch subject.Kind {
	case personal.Persona:
		return personal.Run(ctx, tx, cursor,
			personal.Once(func(ctx context.Context, tx *store.Tx) error { return s.erasePersona(ctx, tx, subject.ID) }),
			personal.EachID(selectUserLinkIDs, subject.ID, func(ctx context.Context, tx *store.Tx, id string) error {
				return proof.ChangeRow(ctx, tx, personal.Action, subject.ID, deleteUserLinkStatement, id)
			}),
			personal.EachID(selectLinkIDs, subject.ID, func(ctx context.Context, tx *store.Tx, id string) error {
				return eraseLink(ctx, tx, subject.ID, id)
			}))
	case personal.User:
		return personal.Run(ctx, tx, cursor,
			personal.EachID(selectPersonaIDs, subject.ID, func(ctx context.Context, tx *store.Tx, id string) error {
				return proof.ChangeRow(ctx, tx, personal.Action, id, deleteUserFromPersona, id, subject.ID)
			}),
			personal.Once(func(ctx context.Context, tx *store.Tx) error {
				return tx.RunEach(ctx, subject.ID, deleteIdentitiesOfUser, deleteFormerPersonas)
			}))
	}
	return "", nil
}

func (s *Service) erasePersona(ctx context.Context, tx *store.Tx, id string) error {
	p, err := personas.GetUnchecked(ctx, tx, id)
	if err != nil || p.Erased() {
		return err
	}
	if err := tx.RunEach(ctx, id, deleteIdentitiesOfPersona, deleteNames, deleteFormerUsers, deleteFormerLinks); err != nil {
		return err
	}
	return s.EraseRecord(ctx, tx, id)
}

// eraseLink deletes a link. It belongs to the record of the persona at which it was created.
func eraseLink(ctx context.Context, tx *store.Tx, personaID, id string) error {
	l, err := selectLink(ctx, tx, id, personaID)
	if err != nil {
		return err
	}
	return proof.ChangeRow(ctx, tx, personal.Action, l.PersonaID, deleteLinkStatement, id)
}

// Proofs declares how the audit trail reads the records of this module.
func Proofs() []records.Proof { return []records.Proof{proof} }

// proof covers a persona, its users and the links that were created at it.
var proof = records.Proof{Type: access.Personas.Name, From: "personas", Key: "id", Read: readPersona, Changes: recordtype.Changes, Form: 1}

// storedPersona holds the data of a persona that the API does not show with it.
type storedPersona struct {
	Version      int64      `json:"version"`
	FirstNameKey string     `json:"first_name_key"`
	LastNameKey  string     `json:"last_name_key"`
	Users        []UserLink `json:"users"`
	Links        []Link     `json:"links"`
	ByStaff      bool       `json:"by_staff"`
	Proven       bool       `json:"identity_proven"`
}

// audited returns the record that audit entries of a persona digest.
func audited(p Persona, users []UserLink, links []Link) store.Record {
	return store.Record{Answer: p, Stored: storedPersona{p.Version, types.Fold(p.FirstName), types.Fold(p.LastName), users, links, p.ByStaff, p.Proven}}
}

const (
	selectAllUserLinks = `SELECT ` + userLinkColumns + ` FROM persona_users WHERE persona_id = $1 ORDER BY id`
	selectAllLinks     = `SELECT ` + linkColumns + ` FROM persona_links WHERE persona_id = $1 ORDER BY id`
)

// readPersona reads a persona with its users and links, and with its search keys as they are stored.
func readPersona(ctx context.Context, q store.Querier, id string) (store.Record, error) {
	p, keys, err := personas.Read(ctx, q, id)
	if err != nil {
		return store.Record{}, err
	}
	s := storedPersona{Version: p.Version, FirstNameKey: keys[0], LastNameKey: keys[1], ByStaff: p.ByStaff, Proven: p.Proven}
	if s.Users, err = store.All(ctx, q, scanUserLink, selectAllUserLinks, id); err != nil {
		return store.Record{}, fmt.Errorf("read users of a persona: %w", err)
	}
	if s.Links, err = store.All(ctx, q, scanLink, selectAllLinks, id); err != nil {
		return store.Record{}, fmt.Errorf("read links of a persona: %w", err)
	}
	return store.Record{Answer: p, Stored: s}, nil
}
