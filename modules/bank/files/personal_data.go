package files

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"kontor/modules/kit/personal"
	"kontor/server/access"
	"kontor/store"
)

// PersonalData lists the tables of the module.
func (s *Service) PersonalData() []personal.Table {
	return []personal.Table{
		{Name: "files", Holds: "names and digests of the evidence of a customer, of files about their tasks, and of those that a user has sent in chats", Sections: []string{"files"}},
		{Name: "file_chunks", Holds: "the encrypted content of these files", Sections: []string{"file_contents"}},
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

// PersonalSections declares the files of a person, and their content in pieces in base64, as far as the reader may download it.
func (s *Service) PersonalSections() []personal.Section {
	var sections []personal.Section
	for kind, statement := range map[personal.Kind]string{personal.Customer: exportOfCustomer, personal.User: exportOfUser} {
		read := personal.Query(statement, func(row store.Scanner) (StoredFile, string, error) {
			f, err := scanFile(row)
			return f, f.ID, err
		})
		sections = append(sections,
			personal.Each(personal.About{Name: "files", Kind: kind, Endpoint: "GET /v1/files/{id}"}, read, s.mayRead, nil),
			personal.Each(personal.About{Name: "file_contents", Kind: kind, Endpoint: "GET /v1/files/{id}/content"}, pieces(read),
				func(ctx context.Context, q store.Querier, p piece) error { return s.mayRead(ctx, q, p.file) }, s.showPiece))
	}
	return sections
}

// piece is a chunk of a file.
type piece struct {
	file   StoredFile
	number int64
}

// pieces returns the chunks of files whose content can be read, one at a time, so that the access is checked before each.
func pieces(files personal.Read[StoredFile]) personal.Read[piece] {
	return func(ctx context.Context, q store.Querier, of personal.Subject, after string) ([]personal.Keyed[piece], bool, error) {
		id, text, _ := strings.Cut(after, "/")
		number, _ := strconv.ParseInt(text, 10, 64) // 0 at the beginning
		if number > 0 {
			f, err := scanFile(q.QueryRow(ctx, selectOne, id))
			if err == nil && f.Status == Ready && number < chunksOf(f.Size) {
				return onePiece(f, number), true, nil
			}
			if err != nil && !errors.Is(err, store.ErrNotFound) { // it was deleted meanwhile
				return nil, false, err
			}
		}
		for {
			found, more, err := files(ctx, q, of, id)
			if err != nil {
				return nil, false, err
			}
			for _, f := range found {
				if id = f.Key; f.Row.Status == Ready {
					return onePiece(f.Row, 0), true, nil
				}
			}
			if !more {
				return nil, false, nil
			}
		}
	}
}

// onePiece returns a piece with the number of the next one in its key.
func onePiece(f StoredFile, number int64) []personal.Keyed[piece] {
	return []personal.Keyed[piece]{{Key: f.ID + "/" + strconv.FormatInt(number+1, 10), Row: piece{f, number}}}
}

// showPiece decrypts a piece.
func (s *Service) showPiece(ctx context.Context, q store.Querier, p piece) (any, error) {
	cipher, err := s.cipher(p.file)
	if err != nil {
		return nil, err
	}
	plain, err := s.readChunk(ctx, q, cipher, p.number, chunksOf(p.file.Size))
	return exportedChunk{p.file.ID, p.number, plain}, err
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
