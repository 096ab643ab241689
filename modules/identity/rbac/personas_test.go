package rbac_test

import (
	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/server/access"
	"kontor/server/apierr"
)

// personaTable and personaList read personas as modules read their records.
var personaTable = &records.Table[string]{
	Type: access.Personas, From: "personas", Columns: "id", Relations: []records.Relation{records.Creator(access.Personas, "personas")}, Missing: apierr.PersonaNotFound,
	Scan: scanID,
}

var personaList = list.New(list.Source[string]{
	From: "personas", Columns: "id", ID: "id", Tables: []string{"personas"}, Scan: scanID,
	Fields: list.Fields{{Name: "id", Type: list.UUID, Column: "id"}},
})

func scanID(row list.Row) (id string, err error) { return id, row.Scan(&id) }
