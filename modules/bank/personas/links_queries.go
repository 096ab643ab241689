package personas

import (
	"context"
	"errors"

	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/store"
)

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

func insertUserLink(ctx context.Context, tx *store.Tx, l UserLink) error {
	_, err := tx.Exec(ctx, insertUserLinkStatement, l.ID, l.PersonaID, l.UserID, l.acceptedAt, l.CreatedAt, l.CreatedBy)
	return err
}

func acceptUserLink(ctx context.Context, tx *store.Tx, l UserLink) error {
	_, err := tx.Exec(ctx, acceptUserLinkStatement, l.ID, l.acceptedAt, l.version)
	return err
}

func selectUserLink(ctx context.Context, q store.Querier, personaID, userID string) (UserLink, error) {
	return scanUserLink(q.QueryRow(ctx, selectUserLinkStatement, personaID, userID))
}

func deleteUserLink(ctx context.Context, tx *store.Tx, id string) error {
	_, err := tx.Exec(ctx, deleteUserLinkStatement, id)
	return err
}

func scanLink(row records.Row) (Link, error) {
	var l Link
	err := row.Scan(&l.ID, &l.PersonaID, &l.LinkedPersonaID, &l.Relation, &l.acceptedAt, &l.CreatedAt, &l.CreatedBy, &l.version)
	l.Status = statusOf(l.acceptedAt)
	return l, err
}

func insertLink(ctx context.Context, tx *store.Tx, l Link) error {
	_, err := tx.Exec(ctx, insertLinkStatement, l.ID, l.PersonaID, l.LinkedPersonaID, l.Relation, l.acceptedAt, l.CreatedAt, l.CreatedBy)
	return err
}

func acceptLink(ctx context.Context, tx *store.Tx, l Link) error {
	_, err := tx.Exec(ctx, acceptLinkStatement, l.ID, l.acceptedAt, l.version)
	return err
}

// linkExists reports whether a link with the same relation exists.
func linkExists(ctx context.Context, q store.Querier, l Link) (bool, error) {
	var one int
	err := q.QueryRow(ctx, linkExistsStatement, l.PersonaID, l.LinkedPersonaID, l.Relation, l.InverseRelation).Scan(&one)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

func selectLink(ctx context.Context, q store.Querier, linkID, personaID string) (Link, error) {
	return scanLink(q.QueryRow(ctx, selectLinkStatement, linkID, personaID))
}

func deleteLink(ctx context.Context, tx *store.Tx, id string) error {
	_, err := tx.Exec(ctx, deleteLinkStatement, id)
	return err
}
