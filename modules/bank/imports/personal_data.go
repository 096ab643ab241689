package imports

import (
	"context"

	"kontor/modules/kit/personal"
	"kontor/store"
)

// PersonalData lists the tables of the module.
func (s *Service) PersonalData() []personal.Table {
	return []personal.Table{
		{Name: "imports", Holds: "the files that a user has imported: digests, sizes and counts", Sections: []string{"imports"}},
		{Name: "import_chunks", Holds: "the encrypted file of an import that runs; it cannot be read any more once the import has ended", Unexported: "The file holds data on others, and its rows become records that are exported."},
		{Name: "import_rejections", Why: "It names lines, columns, rules and ids, and no values."},
		{Name: "import_rows", Why: "It holds ids and numbers of lines."},
	}
}

const (
	selectOfUser = `
		SELECT ` + columns + ` FROM imports
		WHERE created_by = $1 AND id > $2 AND state <> 'uploading' ORDER BY id LIMIT $3`

	selectIDsOfUser = `SELECT id FROM imports WHERE created_by = $1 AND id > $2 ORDER BY id LIMIT $3`

	selectChunksOfUser = `
		SELECT c.import_id FROM import_chunks c JOIN imports i ON i.id = c.import_id
		WHERE i.created_by = $1 AND c.import_id >= $2 ORDER BY c.import_id LIMIT $3`

	endOfUser = `UPDATE imports SET key_sealed = '', state = CASE WHEN state = 'queued' OR state = 'running' THEN 'failed' ELSE state END WHERE id = $1`
)

// PersonalSections declares the imports of a user.
func (s *Service) PersonalSections() []personal.Section {
	return []personal.Section{
		personal.Own(personal.About{Name: "imports", Kind: personal.User, Endpoint: "GET /v1/imports"},
			personal.Rows(selectOfUser, scan, func(i Import) string { return i.ID }),
			func(ctx context.Context, _ store.Querier, i Import) (any, error) {
				s.explain(ctx, &i)
				return i, nil
			}),
	}
}

// ErasePerson ends the imports of a user, destroys their keys, and deletes them with their files.
func (s *Service) ErasePerson(ctx context.Context, tx *store.Tx, subject personal.Subject, cursor string) (string, error) {
	if subject.Kind != personal.User {
		return "", nil
	}
	each := func(selection string, statements ...string) personal.Step {
		return personal.EachID(selection, subject.ID, func(ctx context.Context, tx *store.Tx, id string) error { return tx.RunEach(ctx, id, statements...) })
	}
	return personal.Run(ctx, tx, cursor, each(selectIDsOfUser, endOfUser),
		func(ctx context.Context, tx *store.Tx, _ string) (string, error) {
			ids, err := store.All(ctx, tx, store.Text, selectChunksOfUser, subject.ID, "", purgeChunks)
			if err == nil && len(ids) > 0 {
				_, err = tx.Exec(ctx, deleteSomeChunks, ids[0], purgeChunks)
			}
			return first(ids), err
		},
		each(selectIDsOfUser, deleteRejections, deleteImport))
}
