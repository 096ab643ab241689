package screening

import (
	"context"

	"kontor/modules/duty/screening/lists"
	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/store"
)

// List is a list that is in force.
type List struct {
	ID        string       `json:"id"`
	Name      string       `json:"name" maxLength:"100" example:"SECO"`
	Format    lists.Format `json:"format" enum:"seco,un,eu,ofac,opensanctions,ftm"`
	Version   string       `json:"version" example:"2026-01-31" doc:"As the file says it, usually a date; empty if it has none."`
	Entries   int64        `json:"entries" minimum:"1" example:"4512"`
	Size      int64        `json:"size" example:"18350080" doc:"Of the file, in bytes."`
	SHA256    string       `json:"sha256" pattern:"^[0-9a-f]{64}$" example:"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" doc:"Of the file, in hexadecimal; of a folder, of the names and digests of its files."`
	Added     int64        `json:"added" example:"12" doc:"Entries that the last load has added."`
	Changed   int64        `json:"changed" example:"3" doc:"Entries that the last load has changed."`
	Removed   int64        `json:"removed" example:"1" doc:"Entries that the last load has removed."`
	CreatedAt store.Time   `json:"created_at" doc:"When a list of this name was first loaded."`
	CreatedBy string       `json:"created_by"`
	LoadedAt  store.Time   `json:"loaded_at"`
	LoadedBy  string       `json:"loaded_by" doc:"The nil id stands for the folder of the setting screening.dir."`
	TooOld    bool         `json:"too_old,omitzero" doc:"Whether it was loaded longer ago than screening.max_age_days says; missing from all other lists."`

	load int64
}

// EachUser names those who have loaded the list.
func (l List) EachUser(add func(id string)) {
	add(l.CreatedBy)
	add(l.LoadedBy)
}

const listsTable = "screening_lists"

const columns = "id, name, format, version, entries, size, sha256, added, changed, removed, created_at, created_by, loaded_at, loaded_by, load"

func scan(row list.Row) (List, error) {
	var l List
	err := row.Scan(&l.ID, &l.Name, &l.Format, &l.Version, &l.Entries, &l.Size, &l.SHA256, &l.Added, &l.Changed, &l.Removed,
		&l.CreatedAt, &l.CreatedBy, &l.LoadedAt, &l.LoadedBy, &l.load)
	return l, err
}

var listOfLists = list.New(list.Source[List]{
	From: listsTable, Columns: columns, ID: "id", Created: "created_at", Tables: []string{listsTable}, Scan: scan,
	Fields: list.Fields{
		{Name: "id", Type: list.UUID, Column: "id"},
		{Name: "name", Type: list.Text, Column: "name", Key: "name_key"},
		{Name: "format", Type: list.Text, Column: "format", Key: "format"},
		{Name: "version", Type: list.Text, Column: "version"},
		{Name: "entries", Type: list.Number, Column: "entries"},
		{Name: "sha256", Type: list.Text, Column: "sha256", Key: "sha256"},
		{Name: "created_at", Type: list.Time, Column: "created_at"},
		{Name: "created_by", Type: list.UUID, Column: "created_by"},
		{Name: "loaded_at", Type: list.Time, Column: "loaded_at"},
		{Name: "loaded_by", Type: list.UUID, Column: "loaded_by"},
	},
})

const (
	selectList    = `SELECT ` + columns + ` FROM screening_lists WHERE id = $1`
	selectByName  = `SELECT ` + columns + ` FROM screening_lists WHERE name_key = $1`
	selectInForce = `SELECT ` + columns + ` FROM screening_lists ORDER BY name_key`
	countLists    = `SELECT COUNT(*) FROM screening_lists`
	upsertList    = `
		INSERT INTO screening_lists (id, name, name_key, format, version, entries, size, sha256, added, changed, removed, created_at, created_by, loaded_at, loaded_by, load)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
		ON CONFLICT (id) DO UPDATE SET name = excluded.name, format = excluded.format, version = excluded.version, entries = excluded.entries, size = excluded.size,
			sha256 = excluded.sha256, added = excluded.added, changed = excluded.changed, removed = excluded.removed,
			loaded_at = excluded.loaded_at, loaded_by = excluded.loaded_by, load = excluded.load`
	selectListID = `SELECT 1 FROM screening_lists WHERE id = $1`

	deleteList = `DELETE FROM screening_lists WHERE id = $1`
	deleteLoad = `DELETE FROM screening_loads WHERE list_id = $1`
)

// inForce returns the lists by name. They are few.
func inForce(ctx context.Context, q store.Querier) ([]List, error) {
	return store.All(ctx, q, scan, selectInForce)
}

var listProof = records.Proof{Type: listsTable, From: listsTable, Key: "id", Read: readList, Migration: 73, Changes: &store.ChangeRule{}}

// Proofs returns how the audit trail digests the lists, with the digests of their files. It does not cover the entries.
func Proofs() []records.Proof { return []records.Proof{listProof, hitProof} }

func readList(ctx context.Context, q store.Querier, id string) (store.Record, error) {
	l, err := scan(q.QueryRow(ctx, selectList, id))
	return l.record(), err
}

func (l List) record() store.Record {
	return store.Record{Answer: l, Stored: struct {
		Load int64 `json:"load"`
	}{l.load}}
}
