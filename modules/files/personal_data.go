package files

import (
	"context"

	"kontor/modules/kit/personal"
	"kontor/server/access"
	"kontor/store"
)

// PersonalData lists the tables of the module.
func (s *Service) PersonalData() []personal.Table {
	return []personal.Table{
		{Name: "files", Holds: "names and digests of the evidence of a customer, of files about their tasks, and of those that a user has sent in chats"},
		{Name: "file_chunks", Holds: "the encrypted content of these files"},
	}
}

// The files of a person: of a customer all of their documents and tasks, of a user those in messages that they have written.
const (
	ofCustomer = `parent_id = $1 AND record_type IN ('kyc_documents', 'tasks')`
	ofUser     = `uploaded_by = $1 AND record_type = 'chat_messages'`
)

const (
	exportOfCustomer = `SELECT ` + columns + ` FROM files
		WHERE ` + ofCustomer + ` AND id > $2 AND status IN ('checking', 'ready', 'infected') ORDER BY id LIMIT $3`

	exportOfUser = `SELECT ` + columns + ` FROM files
		WHERE ` + ofUser + ` AND id > $2 AND status IN ('checking', 'ready', 'infected') ORDER BY id LIMIT $3`

	eraseOfCustomer = `SELECT id FROM files WHERE ` + ofCustomer + ` AND id > $2 AND (status <> 'deleted' OR chunks > 0) ORDER BY id LIMIT $3`

	eraseOfUser = `SELECT id FROM files WHERE ` + ofUser + ` AND id > $2 AND (status <> 'deleted' OR chunks > 0) ORDER BY id LIMIT $3`

	selectAny = `SELECT ` + columns + ` FROM files WHERE id = $1`

	discardAny = `UPDATE files SET name = '', sha256 = '', status = 'discarded', key_sealed = '', charged = 0 WHERE id = $1`

	// A few chunks of the files of a person, with the first file that has any.
	chunksOfCustomer = `SELECT c.file_id, c.number FROM files f JOIN file_chunks c ON c.file_id = f.id
		WHERE f.` + ofCustomer + ` AND f.key_sealed = '' ORDER BY c.file_id, c.number LIMIT $2`

	chunksOfUser = `SELECT c.file_id, c.number FROM files f JOIN file_chunks c ON c.file_id = f.id
		WHERE f.` + ofUser + ` AND f.key_sealed = '' ORDER BY c.file_id, c.number LIMIT $2`

	deleteChunk = `DELETE FROM file_chunks WHERE file_id = $1 AND number = $2`
)

// exportedChunk is a piece of the content of a file in an export.
type exportedChunk struct {
	FileID  string `json:"file_id"`
	Number  int64  `json:"number"`
	Content []byte `json:"content"`
}

// ExportPerson writes the files of a person, and their content in pieces in base64.
func (s *Service) ExportPerson(ctx context.Context, q store.Querier, subject personal.Subject, w *personal.Writer) error {
	statement := exportOfCustomer
	switch subject.Kind {
	case personal.User:
		statement = exportOfUser
	case personal.Persona:
		return nil
	}
	var found []StoredFile
	err := personal.Each(ctx, q, w, "files", statement, subject.ID, func(rows *store.Rows) (any, string, error) {
		f, err := scanFile(rows)
		found = append(found, f)
		return f, f.ID, err
	})
	if err != nil {
		return err
	}
	for _, f := range found {
		if f.Status != Ready {
			continue
		}
		if err := s.exportContent(ctx, q, f, w); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) exportContent(ctx context.Context, q store.Querier, f StoredFile, w *personal.Writer) error {
	cipher, err := s.cipher(f)
	if err != nil {
		return err
	}
	for number := range chunksOf(f.Size) {
		plain, err := s.readChunk(ctx, q, cipher, number, chunksOf(f.Size))
		if err != nil {
			return err
		}
		if err := w.Add("file_contents", exportedChunk{f.ID, number, plain}); err != nil {
			return err
		}
	}
	return nil
}

// ErasePerson destroys the keys and names of the files of a person, and then deletes their chunks.
func (s *Service) ErasePerson(ctx context.Context, tx *store.Tx, subject personal.Subject, cursor string) (string, error) {
	ids, chunks := eraseOfCustomer, chunksOfCustomer
	switch subject.Kind {
	case personal.User:
		ids, chunks = eraseOfUser, chunksOfUser
	case personal.Persona:
		return "", nil
	}
	return personal.Run(ctx, tx, cursor, personal.EachID(ids, subject.ID, eraseFile), func(ctx context.Context, tx *store.Tx, _ string) (string, error) {
		return eraseChunks(ctx, tx, chunks, subject.ID)
	})
}

// eraseFile makes a file unreadable. The purge removes the row of an upload that was running.
func eraseFile(ctx context.Context, tx *store.Tx, id string) error {
	f, err := scanFile(tx.QueryRow(ctx, selectAny, id))
	if err != nil {
		return err
	}
	switch f.Status {
	case Checking, Ready, Infected:
		return f.delete(access.With(ctx, &access.Caller{UserID: personal.Actor(ctx)}), tx, personal.Action)
	case deleted:
		return nil
	}
	_, err = tx.Exec(ctx, discardAny, id)
	return err
}

// eraseChunks deletes a few chunks. It returns the last one, or "" when there are no more.
func eraseChunks(ctx context.Context, tx *store.Tx, statement, subject string) (last string, err error) {
	type chunk struct {
		id     string
		number int64
	}
	found, err := store.All(ctx, tx, func(row store.Scanner) (c chunk, err error) {
		err = row.Scan(&c.id, &c.number)
		return c, err
	}, statement, subject, purgeChunks)
	if err != nil {
		return "", err
	}
	for _, c := range found {
		if _, err := tx.Exec(ctx, deleteChunk, c.id, c.number); err != nil {
			return "", err
		}
		last = c.id
	}
	return last, nil
}
