package files

import (
	"context"
	"errors"
	"fmt"
	"math"

	"kontor/modules/kit/attachment"
	"kontor/modules/kit/upload"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

// maxListed is the number of files in one answer.
const maxListed = 200

// Files are files of a record, the newest first.
type Files struct {
	Files   []StoredFile `json:"files"`
	HasMore bool         `json:"has_more" doc:"There are older files; ask for those before the last one."`
}

// EachUser names the uploaders.
func (l Files) EachUser(add func(id string)) {
	for _, f := range l.Files {
		f.EachUser(add)
	}
}

type oneInput struct {
	ID string `path:"id"`
}

type parentInput struct {
	ID     string `path:"id"`
	Before string `query:"before" format:"uuid" doc:"Id of a file: return older ones."`
}

type taskInput struct {
	CustomerID string `path:"customer_id"`
	ID         string `path:"id"`
}

// get returns a file without its content.
func (s *Service) get(ctx context.Context, in oneInput) (StoredFile, error) {
	return s.find(ctx, s.db, in.ID, access.Read)
}

// ofCustomer returns the evidence of a customer: the files of all documents.
func (s *Service) ofCustomer(ctx context.Context, in parentInput) (Files, error) {
	return s.ofParent(ctx, attachment.Target{Kind: attachment.Document, Parent: in.ID}, in.Before)
}

// ofChat returns the files of all messages of a chat.
func (s *Service) ofChat(ctx context.Context, in parentInput) (Files, error) {
	return s.ofParent(ctx, attachment.Target{Kind: attachment.Message, Parent: in.ID}, in.Before)
}

// ofTask returns the files of a task.
func (s *Service) ofTask(ctx context.Context, in taskInput) (Files, error) {
	target := attachment.Target{Kind: attachment.Task, Parent: in.CustomerID, Record: in.ID}
	if err := s.allow(ctx, s.db, target, access.Read, nil); err != nil {
		return Files{}, err
	}
	found, err := store.All(ctx, s.db, scanFile, selectOfRecord, target.Record, string(target.Kind), target.Parent, access.From(ctx).UserID)
	return listed(found), err
}

// ofParent returns a page of the files of all records of a customer or chat.
func (s *Service) ofParent(ctx context.Context, target attachment.Target, before string) (Files, error) {
	if err := s.allow(ctx, s.db, target, access.Read, nil); err != nil {
		return Files{}, err
	}
	at := store.Time(math.MaxInt64)
	if before != "" {
		last, err := scanFile(s.db.QueryRow(ctx, selectOne, before))
		if err != nil || last.ParentID != target.Parent || last.RecordType != target.Kind {
			return Files{}, apierr.Invalid("before", "invalid.uuid")
		}
		at = last.CreatedAt
	}
	found, err := store.All(ctx, s.db, scanFile, selectOfParent, target.Parent, string(target.Kind), access.From(ctx).UserID, at, before, maxListed+1)
	return listed(found), err
}

func listed(found []StoredFile) Files {
	if found == nil {
		found = []StoredFile{}
	}
	return Files{Files: found[:min(len(found), maxListed)], HasMore: len(found) > maxListed}
}

const columns = `
	id, record_type, record_id, parent_id, name, media_type, size, sha256, status, uploaded_by, created_at, account_id, charged, chunks, key_sealed`

const (
	insertStatement = `
		INSERT INTO files (
			id, record_type, record_id, parent_id, account_id, name, media_type, size, chunks, sha256, charged, status, key_sealed, uploaded_by, created_at)
		VALUES ($1, $2, $3, $4, $5, '', $6, 0, $7, '', $8, 'uploading', $9, $10, $11)`

	// A chunk of an upload that was discarded meanwhile is not stored.
	insertChunk = `INSERT INTO file_chunks (file_id, number, content) SELECT id, $2, $3 FROM files WHERE id = $1 AND status = 'uploading'`

	completeStatement = `
		UPDATE files SET name = $2, size = $3, chunks = $4, sha256 = $5, charged = $6, status = $7, created_at = $8
		WHERE id = $1 AND status = 'uploading'`

	// The rest of a failed upload loses its key, and its part of the quota.
	discardStatement = `UPDATE files SET status = 'discarded', key_sealed = '', charged = 0 WHERE id = $1 AND status = 'uploading'`

	deleteStatement = `UPDATE files SET name = '', sha256 = '', status = 'deleted', key_sealed = '', charged = 0 WHERE id = $1`

	infectedStatement = `UPDATE files SET status = 'infected', key_sealed = '', charged = 0 WHERE id = $1`

	readyStatement = `UPDATE files SET status = 'ready' WHERE id = $1`

	selectOne = `SELECT ` + columns + ` FROM files WHERE id = $1 AND status IN ('checking', 'ready', 'infected')`

	selectUsed = `SELECT CAST(COALESCE(SUM(charged), 0) AS BIGINT) FROM files WHERE account_id = $1 AND status IN ('uploading', 'checking', 'ready')`

	selectCount = `SELECT COUNT(*) FROM files WHERE record_id = $1 AND status IN ('uploading', 'checking', 'ready', 'infected')`

	// Files that are being checked or were infected are shown to their uploader alone.
	selectOfRecord = `
		SELECT ` + columns + ` FROM files
		WHERE record_id = $1 AND record_type = $2 AND parent_id = $3 AND (status = 'ready' OR status IN ('checking', 'infected') AND uploaded_by = $4)
		ORDER BY created_at DESC, id DESC`

	selectOfParent = `
		SELECT ` + columns + ` FROM files
		WHERE parent_id = $1 AND record_type = $2 AND (status = 'ready' OR status IN ('checking', 'infected') AND uploaded_by = $3)
			AND ($5 = '' OR created_at < $4 OR created_at = $4 AND id < $5)
		ORDER BY created_at DESC, id DESC
		LIMIT $6`

	selectChunk = `SELECT content FROM file_chunks WHERE file_id = $1 AND number = $2`
)

func scanFile(row store.Scanner) (f StoredFile, err error) {
	err = row.Scan(&f.ID, (*string)(&f.RecordType), &f.RecordID, &f.ParentID, &f.Name, &f.MediaType, &f.Size, &f.SHA256, (*string)(&f.Status),
		&f.UploadedBy, &f.CreatedAt, &f.account, &f.charged, &f.chunks, &f.sealed)
	return f, err
}

// find reads a file if the caller has a permission on its record. Files that are not ready exist for their uploader only.
func (s *Service) find(ctx context.Context, q store.Querier, id string, wanted access.Permission) (StoredFile, error) {
	f, err := scanFile(q.QueryRow(ctx, selectOne, id))
	if errors.Is(err, store.ErrNotFound) {
		return StoredFile{}, apierr.FileNotFound
	}
	if err != nil {
		return StoredFile{}, fmt.Errorf("read file: %w", err)
	}
	if wanted == access.Read {
		return f, s.mayRead(ctx, q, f)
	}
	if f.hidden(access.From(ctx)) {
		return StoredFile{}, apierr.FileNotFound
	}
	return f, s.allow(ctx, q, f.target(), wanted, &attachment.File{UploadedBy: f.UploadedBy, CreatedAt: f.CreatedAt})
}

// mayRead checks that the caller may read a file.
func (s *Service) mayRead(ctx context.Context, q store.Querier, f StoredFile) error {
	if f.hidden(access.From(ctx)) {
		return apierr.FileNotFound
	}
	return s.allow(ctx, q, f.target(), access.Read, nil)
}

// hidden reports whether a file does not exist for a caller.
func (f StoredFile) hidden(caller *access.Caller) bool {
	return f.Status != Ready && f.UploadedBy != caller.UserID
}

// readable returns an error for a file that no caller can open.
func (f StoredFile) readable() error {
	switch f.Status {
	case Checking:
		return apierr.FileBeingChecked
	case Infected:
		return apierr.FileInfected
	}
	return nil
}

// readChunk reads and decrypts a chunk.
func (s *Service) readChunk(ctx context.Context, q store.Querier, c *upload.Cipher, number, chunks int64) ([]byte, error) {
	var content []byte
	if err := q.QueryRow(ctx, selectChunk, c.ID, number).Scan(&content); err != nil {
		return nil, fmt.Errorf("read chunk %d of file %s: %w", number, c.ID, err)
	}
	return c.Open(content, number, place(number, number == chunks-1)...)
}
