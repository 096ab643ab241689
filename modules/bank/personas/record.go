package personas

import (
	"strings"

	"kontor/modules/kit/find"
	"kontor/modules/kit/list"
	"kontor/modules/kit/personal"
	"kontor/modules/kit/records"
	"kontor/modules/kit/recordtype"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

// Lengths in characters.
const (
	maxName   = 100
	maxHashID = 256
)

// linked is the relation of a user to the personas linked to them. Pending links have no effect.
var linked = records.Relation{
	Name: access.RelationLinked, Allows: access.Read, Tables: []string{"persona_users.persona_id"},
	SQL:   "id IN (SELECT persona_id FROM persona_users WHERE user_id = $1 AND accepted_at IS NOT NULL)",
	Users: "SELECT user_id FROM persona_users WHERE persona_id = $1 AND accepted_at IS NOT NULL",
}

// personas declares the record type.
var personas = recordtype.New(recordtype.Declaration[Persona]{
	Type: access.Personas, From: "personas", Missing: apierr.PersonaNotFound, Relations: []records.Relation{records.Created, linked},
	Holds:   "names, dates, nationality and metadata of a natural person",
	Section: personal.About{Name: "persona", Kind: personal.Persona, Endpoint: "GET /v1/personas/{persona_id}"}, Subject: "id",
	ListHead: true,
	Columns: []recordtype.Column{
		{Name: "first_name", Personal: "''", Parse: recordtype.RequiredLine(maxName), Words: recordtype.Title, Folded: true, Sorted: true, Weighs: true,
			Field: &list.Field{Type: list.Text}},
		{Name: "last_name", Personal: "''", Parse: recordtype.RequiredLine(maxName), Words: recordtype.Title, Folded: true, Sorted: true, Weighs: true,
			Field: &list.Field{Type: list.Text, Index: list.ThenID}},
		// A date of birth is required; this one stands for none.
		{Name: "date_of_birth", Personal: "'1900-01-01'", Parse: recordtype.Required(recordtype.Parsed(types.ParseDate)), Field: &list.Field{Type: list.Date}},
		{Name: "date_of_death", Personal: "NULL", Parse: recordtype.Given(types.ParseDate), Field: &list.Field{Type: list.Date, Null: true}},
		{Name: "nationality", Personal: "NULL", Parse: recordtype.Given(types.ParseCountry), Field: &list.Field{Type: list.Text, Null: true}},
		{Name: "hash_id", Personal: "NULL", Parse: recordtype.Line(maxHashID), Field: &list.Field{Type: list.Text, Key: "hash_id", Fold: exactly, Null: true}},
		{Name: "active", Personal: "FALSE", Field: &list.Field{Type: list.Bool, Index: list.ThenCreated}},
		{Name: "metadata", Personal: "'{}'", Parse: recordtype.JSON, Weighs: true},
	},
	Hit: func(p Persona) find.Hit {
		return find.Hit{Title: strings.TrimSpace(p.FirstName + " " + p.LastName), Subtitle: p.DateOfBirth.String()}
	},
	Record: func(p Persona) store.Record { return audited(p, nil, nil) },
})

// exactly returns a searched hash unchanged, because hashes are case-sensitive.
func exactly(text string) string { return text }
