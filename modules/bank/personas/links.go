package personas

import (
	"context"
	"errors"

	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/modules/kit/validate"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// relation is a relation of one persona to another, with its inverse.
type relation struct {
	name, inverse string
	trust         bool // the persona may act or decide for the other one
}

// relations are all relations. One whose inverse is listed, too, can be created from either side.
var relations = []relation{
	{"spouse", "spouse", false},
	{"parent", "child", false},
	{"child", "parent", false},
	{"guardian", "ward", true},
	{"legal_representative", "represented", true},
	{"beneficial_owner", "owned", true},
	{"authorised_signatory", "signed_for", true},
	{"other", "other", false},
}

// relationOf returns a relation by its name.
func relationOf(name string) (found relation) {
	for _, r := range relations {
		if r.name == name {
			found = r
		}
	}
	return found
}

// The directions of a link, seen from one of its personas.
const (
	outgoing = "outgoing" // created at this persona
	incoming = "incoming" // created at the other one
)

// Link is a relation between two personas. Both read the same record, except for the direction.
type Link struct {
	ID              string     `json:"id"`
	PersonaID       string     `json:"persona_id" doc:"The persona at which the link was created."`
	LinkedPersonaID string     `json:"linked_persona_id" doc:"The other persona."`
	Relation        string     `json:"relation" enum:"spouse,parent,child,guardian,legal_representative,beneficial_owner,authorised_signatory,other" doc:"What linked_persona_id is to persona_id."`
	InverseRelation string     `json:"inverse_relation" enum:"spouse,parent,child,ward,represented,owned,signed_for,other" doc:"What persona_id is to linked_persona_id."`
	Direction       string     `json:"direction" enum:"outgoing,incoming" doc:"Seen from the persona in the path."`
	Status          LinkStatus `json:"status" enum:"pending,active" doc:"A pending link is unconfirmed; staff or the other side can accept it."`
	CreatedAt       store.Time `json:"created_at"`
	CreatedBy       string     `json:"created_by"`

	acceptedAt *store.Time
	version    int64
}

// ETag returns the version of the record.
func (l Link) ETag() string { return endpoint.VersionTag(l.version) }

// EachUser names the creator.
func (l Link) EachUser(add func(id string)) { add(l.CreatedBy) }

// seenFrom returns the link as seen from one of its personas.
func (l Link) seenFrom(personaID string) Link {
	l.InverseRelation, l.Direction = relationOf(l.Relation).inverse, outgoing
	if l.PersonaID != personaID {
		l.Direction = incoming
	}
	return l
}

// LinkInput is the relation of another persona to the one in the path.
type LinkInput struct {
	ID              string `path:"persona_id"`
	LinkedPersonaID string `json:"linked_persona_id"`
	Relation        string `json:"relation" enum:"spouse,parent,child,guardian,legal_representative,beneficial_owner,authorised_signatory,other" doc:"What linked_persona_id is to the persona in the path."`
}

// Validate checks the id and the relation. A persona cannot be linked to itself.
func (in *LinkInput) Validate(v *apierr.Fields) {
	in.LinkedPersonaID = requiredID(v, "linked_persona_id", in.LinkedPersonaID)
	if in.LinkedPersonaID != "" && in.LinkedPersonaID == in.ID {
		v.Add("linked_persona_id", "personas.link_to_itself")
	}
	var names []string
	for _, r := range relations {
		names = append(names, r.name)
	}
	validate.OneOf(v, "relation", in.Relation, names...)
}

// LinkIDInput identifies a link of a persona.
type LinkIDInput struct {
	ID     string `path:"persona_id"`
	LinkID string `path:"link_id"`
}

// Links returns the links of a persona in both directions, for callers who may read the persona.
func (s *Service) Links(ctx context.Context, in OfPersonaInput) (list.Page[Link], error) {
	if _, err := personas.Get(ctx, s.db, in.ID, access.Read); err != nil {
		return list.Page[Link]{}, err
	}
	page, err := linkList.Page(ctx, s.db, in.Query, list.Where{
		Any: []string{"persona_id = $1", "linked_persona_id = $1"}, Args: []any{in.ID},
	})
	for i, l := range page.Data.Rows {
		page.Data.Rows[i] = l.seenFrom(in.ID)
	}
	return page, err
}

// Link links another persona to the one in the path. The caller must be allowed to update the persona in the path and to read
// the other one. A relation that carries trust is pending, unless staff create it. Link returns apierr.PersonaLinkExists if the
// same relation exists, created at either persona.
func (s *Service) Link(ctx context.Context, in LinkInput) (Link, error) {
	caller := access.From(ctx)
	l := Link{ID: store.NewID(), PersonaID: in.ID, LinkedPersonaID: in.LinkedPersonaID, Relation: in.Relation,
		CreatedBy: caller.UserID, CreatedAt: s.db.Now(), version: 1}
	if isStaff(caller) || !relationOf(l.Relation).trust {
		l.acceptedAt = &l.CreatedAt
	}
	l.Status = statusOf(l.acceptedAt)
	l = l.seenFrom(in.ID)
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		if _, err := personas.Get(ctx, tx, in.ID, access.Update); err != nil {
			return err
		}
		if _, err := personas.Get(ctx, tx, in.LinkedPersonaID, access.Read); err != nil {
			return err
		}
		exists, err := store.Exists(ctx, tx, linkExistsStatement, l.PersonaID, l.LinkedPersonaID, l.Relation, l.InverseRelation)
		if err != nil {
			return err
		}
		if exists {
			return apierr.PersonaLinkExists
		}
		_, err = tx.Exec(ctx, insertLinkStatement, l.ID, l.PersonaID, l.LinkedPersonaID, l.Relation, l.acceptedAt, l.CreatedAt, l.CreatedBy)
		if err != nil {
			return err
		}
		tx.Respond(l)
		return proof.Audit(ctx, tx, "personas.link", in.ID, nil)
	})
	return l, err
}

// AcceptLink activates a pending link. Staff may accept any link. Other callers must be allowed to update the persona in the
// path, which must not be the one at which the link was created, and must not have created the link. An active link
// stays unchanged. AcceptLink returns apierr.PersonaNotFound, apierr.PersonaLinkNotFound and apierr.NoAccess.
func (s *Service) AcceptLink(ctx context.Context, in LinkIDInput) (Link, error) {
	var accepted Link
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		if _, err := personas.Get(ctx, tx, in.ID, access.Update); err != nil {
			return err
		}
		l, err := findLink(ctx, tx, in)
		if err != nil {
			return err
		}
		if err := endpoint.CheckMatch(ctx, l.ETag()); err != nil {
			return err
		}
		accepted = l.seenFrom(in.ID)
		if l.acceptedAt != nil {
			return nil
		}
		if caller := access.From(ctx); !isStaff(caller) && (in.ID != l.LinkedPersonaID || caller.UserID == l.CreatedBy) {
			return apierr.NoAccess
		}
		now := tx.Now()
		accepted.acceptedAt, accepted.Status, accepted.version = &now, LinkActive, l.version+1
		if _, err := tx.Exec(ctx, acceptLinkStatement, accepted.ID, accepted.acceptedAt, accepted.version); err != nil {
			return err
		}
		return auditLink(ctx, tx, "personas.accept_link", in.ID, l)
	})
	return accepted, err
}

// auditLink writes the audit entry of a changed link, which is part of the persona at which it was created. A change at the
// other persona writes an entry for that one, too.
func auditLink(ctx context.Context, tx *store.Tx, action, from string, l Link) error {
	if from != l.PersonaID {
		personas.Audit(ctx, tx, action, from, nil, nil)
	}
	return proof.Audit(ctx, tx, action, l.PersonaID, nil)
}

// findLink returns a link of a persona, or apierr.PersonaLinkNotFound.
func findLink(ctx context.Context, q store.Querier, in LinkIDInput) (Link, error) {
	l, err := selectLink(ctx, q, in.LinkID, in.ID)
	if errors.Is(err, store.ErrNotFound) {
		err = apierr.PersonaLinkNotFound
	}
	return l, err
}

// Unlink removes a link, from either of its personas. An active link stays as evidence. It returns apierr.PersonaLinkNotFound and
// apierr.OwnPersona.
func (s *Service) Unlink(ctx context.Context, in LinkIDInput) (endpoint.Message, error) {
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		if _, err := personas.Get(ctx, tx, in.ID, access.Update); err != nil {
			return err
		}
		l, err := findLink(ctx, tx, in)
		if err != nil {
			return err
		}
		if err := endpoint.CheckMatch(ctx, l.ETag()); err != nil {
			return err
		}
		if l.acceptedAt != nil {
			if err := rejectOwn(ctx, tx, l.PersonaID, l.LinkedPersonaID); err != nil {
				return err
			}
		}
		if err := keepLink(ctx, tx, l); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, deleteLinkStatement, l.ID); err != nil {
			return err
		}
		return auditLink(ctx, tx, "personas.unlink", in.ID, l)
	})
	return endpoint.Confirm(ctx, s.texts, "personas.link_removed"), err
}

const userLinkColumns = `id, persona_id, user_id, accepted_at, created_at, created_by, version`

const insertUserLinkStatement = `
	INSERT INTO persona_users (id, persona_id, user_id, accepted_at, created_at, created_by)
	VALUES ($1, $2, $3, $4, $5, $6)`

const acceptUserLinkStatement = `UPDATE persona_users SET accepted_at = $2, version = $3 WHERE id = $1`

const selectUserLinkStatement = `
	SELECT ` + userLinkColumns + ` FROM persona_users
	WHERE persona_id = $1 AND user_id = $2`

const deleteUserLinkStatement = `DELETE FROM persona_users WHERE id = $1`

const linkColumns = `id, persona_id, linked_persona_id, relation, accepted_at, created_at, created_by, version`

const insertLinkStatement = `
	INSERT INTO persona_links (id, persona_id, linked_persona_id, relation, accepted_at, created_at, created_by)
	VALUES ($1, $2, $3, $4, $5, $6, $7)`

const acceptLinkStatement = `UPDATE persona_links SET accepted_at = $2, version = $3 WHERE id = $1`

const selectLinkStatement = `
	SELECT ` + linkColumns + ` FROM persona_links
	WHERE id = $1 AND (persona_id = $2 OR linked_persona_id = $2)`

// linkExistsStatement finds a link with the same relation, created at either persona.
const linkExistsStatement = `
	SELECT 1 FROM persona_links
	WHERE persona_id = $1 AND linked_persona_id = $2 AND relation = $3
		OR persona_id = $2 AND linked_persona_id = $1 AND relation = $4`

const deleteLinkStatement = `DELETE FROM persona_links WHERE id = $1`

var userLinkList = list.New(list.Source[UserLink]{
	From: "persona_users", Columns: userLinkColumns, ID: "id", Created: "created_at", Tables: []string{"persona_users"}, Scan: scanUserLink,
	Fields: list.Fields{
		{Name: "id", Type: list.UUID, Column: "id"},
		{Name: "user_id", Type: list.UUID, Column: "user_id"},
		{Name: "created_at", Type: list.Time, Column: "created_at"},
		{Name: "created_by", Type: list.UUID, Column: "created_by"},
	},
})

var linkList = list.New(list.Source[Link]{
	From: "persona_links", Columns: linkColumns, ID: "id", Created: "created_at", Tables: []string{"persona_links"}, Scan: scanLink,
	Fields: list.Fields{
		{Name: "id", Type: list.UUID, Column: "id"},
		{Name: "persona_id", Type: list.UUID, Column: "persona_id"},
		{Name: "linked_persona_id", Type: list.UUID, Column: "linked_persona_id"},
		{Name: "relation", Type: list.Text, Column: "relation", Key: "relation"},
		{Name: "created_at", Type: list.Time, Column: "created_at"},
		{Name: "created_by", Type: list.UUID, Column: "created_by"},
	},
})

func scanUserLink(row records.Row) (UserLink, error) {
	var l UserLink
	err := row.Scan(&l.ID, &l.PersonaID, &l.UserID, &l.acceptedAt, &l.CreatedAt, &l.CreatedBy, &l.version)
	l.Status = statusOf(l.acceptedAt)
	return l, err
}

func scanLink(row records.Row) (Link, error) {
	var l Link
	err := row.Scan(&l.ID, &l.PersonaID, &l.LinkedPersonaID, &l.Relation, &l.acceptedAt, &l.CreatedAt, &l.CreatedBy, &l.version)
	l.Status = statusOf(l.acceptedAt)
	return l, err
}

func selectLink(ctx context.Context, q store.Querier, linkID, personaID string) (Link, error) {
	return scanLink(q.QueryRow(ctx, selectLinkStatement, linkID, personaID))
}
