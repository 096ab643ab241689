package files

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"kontor/modules/kit/attachment"
	"kontor/modules/kit/personal"
	"kontor/modules/kit/records"
	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/store"
)

// remove deletes a file: its key and name at once, its chunks soon after.
func (s *Service) remove(ctx context.Context, in oneInput) (endpoint.Message, error) {
	var f StoredFile
	err := s.db.InTx(ctx, func(tx *store.Tx) (err error) {
		if f, err = s.find(ctx, tx, in.ID, access.Delete); err != nil {
			return err
		}
		if err := f.delete(ctx, tx, "files.delete"); err != nil {
			return err
		}
		return s.changed(ctx, tx, f, false)
	})
	if err != nil {
		return endpoint.Message{}, err
	}
	if err := s.purge(ctx, f.ID, f.chunks); err != nil {
		s.Log.Warn("the chunks of a deleted file remain until they are purged", "file", f.ID, "cause", err)
	}
	return endpoint.Confirm(ctx, s.Texts, "files.deleted"), nil
}

// delete marks a file as deleted. Its content cannot be decrypted from then on.
func (f StoredFile) delete(ctx context.Context, tx *store.Tx, action string) error {
	if _, err := tx.Exec(ctx, deleteStatement, f.ID); err != nil {
		return err
	}
	f.audit(ctx, tx, action, f.record(), nil)
	return nil
}

const (
	selectAllOfRecord = `SELECT ` + columns + ` FROM files WHERE record_id = $1 AND status IN ('checking', 'ready', 'infected') ORDER BY id`

	discardOfRecord = `UPDATE files SET status = 'discarded', key_sealed = '', charged = 0 WHERE record_id = $1 AND status = 'uploading'`
)

// RemoveFiles deletes all files of a record in the transaction of its deletion. There are at most 50. Running uploads to it fail.
func (s *Service) RemoveFiles(ctx context.Context, tx *store.Tx, target attachment.Target) error {
	found, err := store.All(ctx, tx, scanFile, selectAllOfRecord, target.Record)
	if err != nil {
		return fmt.Errorf("read the files of a record: %w", err)
	}
	for _, f := range found {
		if err := f.delete(ctx, tx, "files.delete"); err != nil {
			return err
		}
	}
	_, err = tx.Exec(ctx, discardOfRecord, target.Record)
	return err
}

const (
	// purgeChunks is how many chunks one transaction deletes: a megabyte.
	purgeChunks = 4
	purgeBatch  = 100
	// abandonedAfter exceeds the time that the slowest sender has for the largest file.
	abandonedAfter = 2 * time.Hour
)

const (
	selectUnreadable = `SELECT id, chunks FROM files WHERE key_sealed = '' AND chunks > 0 ORDER BY chunks, id LIMIT $1`

	deleteChunks = `DELETE FROM file_chunks WHERE file_id = $1 AND number >= $2 AND number < $3`

	markPurged = `UPDATE files SET chunks = 0 WHERE id = $1 AND key_sealed = ''`

	deleteDiscarded = `DELETE FROM files WHERE id = $1 AND status = 'discarded'`

	selectAbandoned = `SELECT 1 FROM files WHERE status = 'uploading' AND created_at < $1 LIMIT 1`

	discardAbandoned = `UPDATE files SET status = 'discarded', key_sealed = '', charged = 0 WHERE status = 'uploading' AND created_at < $1`
)

// purge deletes the chunks of a file without a key, in small transactions. The row of an upload that failed goes with them.
func (s *Service) purge(ctx context.Context, id string, chunks int64) error {
	for number := int64(0); number < chunks; number += purgeChunks {
		if err := s.db.InTx(ctx, func(tx *store.Tx) error {
			_, err := tx.Exec(ctx, deleteChunks, id, number, number+purgeChunks)
			return err
		}); err != nil {
			return err
		}
	}
	return s.db.InTx(ctx, func(tx *store.Tx) error {
		gone, err := tx.Exec(ctx, deleteDiscarded, id)
		if err == nil && gone == 0 {
			_, err = tx.Exec(ctx, markPurged, id)
		}
		return err
	})
}

// Start discards the uploads that an earlier process has left. Other nodes of a shared database may be receiving theirs: these are
// discarded by their age.
func (s *Service) Start(ctx context.Context) error {
	if s.db.Shared() {
		return nil
	}
	return s.abandon(ctx, endOfTime)
}

const endOfTime store.Time = math.MaxInt64

func (s *Service) abandon(ctx context.Context, before store.Time) error {
	if found, err := store.Exists(ctx, s.db, selectAbandoned, before); err != nil || !found {
		return err
	}
	return s.db.InTx(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(ctx, discardAbandoned, before)
		return err
	})
}

// Purge discards uploads that have not ended, and deletes chunks without a key. Without a virus scanner it opens the
// files that wait for one.
func (s *Service) Purge(ctx context.Context) error {
	if err := s.abandon(ctx, store.TimeOf(s.db.Clock().Now().Add(-abandonedAfter))); err != nil {
		return err
	}
	if s.Clamd == "" {
		if err := s.release(ctx); err != nil {
			return err
		}
	}
	for {
		found, err := store.All(ctx, s.db, func(row store.Scanner) (f StoredFile, err error) {
			err = row.Scan(&f.ID, &f.chunks)
			return f, err
		}, selectUnreadable, purgeBatch)
		if err != nil || len(found) == 0 {
			return err
		}
		for _, f := range found {
			if err := s.purge(ctx, f.ID, f.chunks); err != nil {
				return err
			}
		}
	}
}

// migration is the number of the migration that created the tables.
const migration = 39

// auditTypes are the types of files in the audit trail. There is one for each kind of record: the change feed derives the type of an
// event from it.
var auditTypes = map[attachment.Kind]string{
	attachment.Document: "kyc_files", attachment.Message: "chat_files", attachment.Task: "task_files",
}

// Proofs returns how the audit trail digests files. Not covered are the key, which each rotation seals again, and the number of chunks,
// which follows from the size. The content is covered by its digest.
func Proofs() []records.Proof {
	var proofs []records.Proof
	for _, kind := range attachment.Document.Values() {
		proofs = append(proofs, proofOf(attachment.Kind(kind)))
	}
	return proofs
}

func proofOf(kind attachment.Kind) records.Proof {
	return records.Proof{
		Type: auditTypes[kind], Key: "id", Read: readFile, Migration: migration,
		From: "(SELECT id FROM files WHERE record_type = '" + string(kind) + "' AND status IN ('checking', 'ready', 'infected')) AS kept",
	}
}

func readFile(ctx context.Context, q store.Querier, id string) (store.Record, error) {
	f, err := scanFile(q.QueryRow(ctx, selectOne, id))
	return f.record(), err
}

// record returns the form that digests cover.
func (f StoredFile) record() store.Record {
	return store.Record{Answer: f, Stored: map[string]any{"account": f.account, "charged": f.charged}}
}

// audit adds an audit entry about a file. before and after are records or digests; nil means that there was no file.
func (f StoredFile) audit(ctx context.Context, tx *store.Tx, action string, before, after any) {
	tx.Audit(store.AuditEntry{Actor: records.Actor(ctx), Action: action, RecType: auditTypes[f.RecordType], RecID: f.ID, Before: before, After: after})
}

// The records whose events the entries are.
const (
	selectParents = `SELECT id, parent_id FROM files WHERE id IN (%s)`
	selectRecords = `SELECT id, record_id FROM files WHERE id IN (%s)`
)

// Parents returns the customers or chats of files, by the ids of the files.
func Parents(ctx context.Context, q store.Querier, ids []string) (map[string]string, error) {
	return store.Pairs(ctx, q, selectParents, ids)
}

// RecordsOf returns the records of files, by the ids of the files.
func RecordsOf(ctx context.Context, q store.Querier, ids []string) (map[string]string, error) {
	return store.Pairs(ctx, q, selectRecords, ids)
}

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
		read := personal.Rows(statement, scanFile, func(f StoredFile) string { return f.ID })
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
