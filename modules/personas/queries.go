package personas

import (
	"context"

	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

const columns = `
	id, first_name, last_name, date_of_birth, date_of_death, nationality, hash_id, active, metadata,
	created_at, created_by, modified_at, modified_by, version, erased_at`

const insertStatement = `
	INSERT INTO personas (
		id, first_name, first_name_key, last_name, last_name_key, date_of_birth, date_of_death, nationality, hash_id, active, metadata,
		created_at, created_by, modified_at, modified_by, version, first_name_order, last_name_order)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $12, $13, 1, $14, $15)`

const updateStatement = `
	UPDATE personas SET
		first_name = $2, first_name_key = $3, last_name = $4, last_name_key = $5, date_of_birth = $6, date_of_death = $7,
		nationality = $8, hash_id = $9, active = $10, metadata = $11, modified_at = $12, modified_by = $13, version = $14,
		first_name_order = $15, last_name_order = $16
	WHERE id = $1`

// linked is the relation of a user to the personas linked to them. Pending links have no effect.
var linked = records.Relation{
	Name: access.RelationLinked, Allows: access.Read, Tables: []string{"persona_users.persona_id"},
	SQL:   "id IN (SELECT persona_id FROM persona_users WHERE user_id = $1 AND accepted_at IS NOT NULL)",
	Users: "SELECT user_id FROM persona_users WHERE persona_id = $1 AND accepted_at IS NOT NULL",
}

var table = &records.Table[Persona]{
	Type: access.Personas, From: "personas", Columns: columns, Scan: scanPersona,
	Relations: []records.Relation{records.Created, linked}, Missing: apierr.PersonaNotFound,
}

var personaList = list.New(list.Source[Persona]{
	From: "personas", Columns: columns, ID: "id", Created: "created_at", Tables: []string{"personas"}, Scan: scanPersona,
	Fields: list.Fields{
		{Name: "id", Type: list.UUID, Column: "id"},
		{Name: "first_name", Type: list.Text, Column: "first_name", Key: "first_name_key", Order: "first_name_order"},
		{Name: "last_name", Type: list.Text, Column: "last_name", Key: "last_name_key", Order: "last_name_order", Index: list.ThenID},
		{Name: "date_of_birth", Type: list.Date, Column: "date_of_birth"},
		{Name: "date_of_death", Type: list.Date, Column: "date_of_death", Null: true},
		{Name: "nationality", Type: list.Text, Column: "nationality", Null: true},
		{Name: "hash_id", Type: list.Text, Column: "hash_id", Key: "hash_id", Fold: exactly, Null: true},
		{Name: "active", Type: list.Bool, Column: "active", Index: list.ThenCreated},
		{Name: "created_at", Type: list.Time, Column: "created_at"},
		{Name: "created_by", Type: list.UUID, Column: "created_by", Index: list.ThenCreated},
		{Name: "modified_at", Type: list.Time, Column: "modified_at"},
		{Name: "modified_by", Type: list.UUID, Column: "modified_by"},
	},
})

// exactly returns a searched hash unchanged, because hashes are case-sensitive.
func exactly(text string) string { return text }

func scanPersona(row records.Row) (Persona, error) {
	var p Persona
	err := row.Scan(&p.ID, &p.FirstName, &p.LastName, &p.DateOfBirth, &p.DateOfDeath, &p.Nationality, &p.HashID, &p.Active, (*[]byte)(&p.Metadata),
		&p.CreatedAt, &p.CreatedBy, &p.ModifiedAt, &p.ModifiedBy, &p.version, &p.ErasedAt)
	return p, err
}

func insertPersona(ctx context.Context, tx *store.Tx, p Persona) error {
	_, err := tx.Exec(ctx, insertStatement, p.ID, p.FirstName, types.Fold(p.FirstName), p.LastName, types.Fold(p.LastName),
		p.DateOfBirth, p.DateOfDeath, p.Nationality, p.HashID, p.Active, string(p.Metadata), p.CreatedAt, p.CreatedBy,
		types.SortKey(p.FirstName), types.SortKey(p.LastName))
	return err
}

func updatePersona(ctx context.Context, tx *store.Tx, before, p Persona) error {
	if p.FirstName != before.FirstName || p.LastName != before.LastName || p.DateOfBirth != before.DateOfBirth {
		if err := keepNames(ctx, tx, before, p); err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, updateStatement, p.ID, p.FirstName, types.Fold(p.FirstName), p.LastName, types.Fold(p.LastName),
		p.DateOfBirth, p.DateOfDeath, p.Nationality, p.HashID, p.Active, string(p.Metadata), p.ModifiedAt, p.ModifiedBy, p.version,
		types.SortKey(p.FirstName), types.SortKey(p.LastName))
	return err
}
