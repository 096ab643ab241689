// Package files keeps evidence: files that belong to a document of a customer, to a message or to a task.
//
// A file is a PDF, a JPEG or a PNG, recognised by its content. Its content is stored in chunks, encrypted with a key of its own, which
// is sealed by the master key. Each chunk is written in a small transaction, so that other writes do not wait for an upload. The last
// transaction makes the file visible; what an interrupted upload has left is purged. A deletion destroys the key at once and the chunks
// soon after.
//
// The right on a file is the right on its record: the module of the record decides, see package attachment. With a virus scanner, a
// file cannot be opened until it was scanned, and only its uploader sees that it exists. The content is only served as a
// download. Previews are pictures that a worker process renders; they are not stored.
//
// The module owns the tables files and file_chunks. It publishes the view attached_files (id, record_type, record_id, parent_id): the
// files of records that are or will be readable.
package files

import (
	"context"
	"log/slog"

	"kontor/modules/kit/attachment"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// StoredFile is a file as the API shows it.
type StoredFile struct {
	ID         string          `json:"id"`
	RecordType attachment.Kind `json:"record_type"`
	RecordID   string          `json:"record_id" doc:"The document, message or task."`
	ParentID   string          `json:"parent_id" doc:"The customer of a document or task, the chat of a message."`
	Name       string          `json:"name" maxLength:"120" example:"passport.pdf" doc:"Without characters that a file system or a reader could misunderstand."`
	MediaType  string          `json:"media_type" enum:"application/pdf,image/jpeg,image/png"`
	Size       int64           `json:"size" minimum:"1" example:"245760" doc:"In bytes."`
	SHA256     string          `json:"sha256" pattern:"^[0-9a-f]{64}$" example:"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" doc:"Of the content, in hexadecimal."`
	Status     Status          `json:"status" doc:"checking: no virus scanner has seen it yet, and it cannot be opened. infected: the scanner has found malware, and the content was destroyed."`
	UploadedBy string          `json:"uploaded_by"`
	CreatedAt  store.Time      `json:"created_at"`

	account string
	charged int64
	chunks  int64
	sealed  string // the key of the content
}

// Status is the state of a file.
type Status string

// The states that the API shows, and those of files that do not exist for it.
const (
	Checking Status = "checking"
	Ready    Status = "ready"
	Infected Status = "infected"

	uploading Status = "uploading"
	discarded Status = "discarded" // an upload that has failed
	deleted   Status = "deleted"
)

// Values returns the states that the API shows.
func (Status) Values() []string { return []string{string(Checking), string(Ready), string(Infected)} }

// ETag changes with the state of the file. Its content never changes.
func (f StoredFile) ETag() string { return f.ID + "-" + string(f.Status) }

// EachUser names the uploader.
func (f StoredFile) EachUser(add func(id string)) { add(f.UploadedBy) }

func (f StoredFile) target() attachment.Target {
	return attachment.Target{Kind: f.RecordType, Parent: f.ParentID, Record: f.RecordID}
}

// Preview is a rendered page of a file.
type Preview struct {
	JPEG  []byte
	Pages int // of the file
}

// Renderer renders previews. It loads the file when a worker is free.
type Renderer interface {
	// Render returns a page, counted from 1, at most width pixels wide. It returns apierr.PreviewImpossible, apierr.PageNotFound and
	// apierr.Unavailable.
	Render(ctx context.Context, caller string, load func() ([]byte, error), page, width int) (Preview, error)
}

// Options are the limits of files.
type Options struct {
	MaxBytes int64  // of a file
	Quota    int64  // bytes of a customer, or of a user in chats and tasks
	Clamd    string // address of the virus scanner, host:port or the path of a socket; empty: none
	Renderer Renderer
	Texts    endpoint.Texts
	Log      *slog.Logger
}

// Service is the module. Create one with [New].
type Service struct {
	Options
	db      *store.DB
	holders map[attachment.Kind]attachment.Holder
	slots   *slots
	writes  chan struct{} // a place for each chunk that is being written
}

const (
	keyTable  = "files"
	keyColumn = "key"
)

// New returns the module on a database. holders decide about the files of their records.
func New(db *store.DB, holders map[attachment.Kind]attachment.Holder, o Options) *Service {
	db.RegisterSealed(store.SealedColumn{
		Table: keyTable, Column: keyColumn,
		Select: `SELECT id, id, key_sealed FROM files WHERE key_sealed <> '' AND key_sealed NOT LIKE $1 AND id > $2 ORDER BY id LIMIT $3`,
		Update: `UPDATE files SET key_sealed = $3 WHERE id = $1 AND key_sealed = $2`,
	})
	return &Service{Options: o, db: db, holders: holders, slots: newSlots(maxTransfers, maxTransfersPerCaller), writes: make(chan struct{}, chunksAtOnce)}
}

// allow asks the module of the record.
func (s *Service) allow(ctx context.Context, q store.Querier, target attachment.Target, wanted permission, file *attachment.File) error {
	return s.holders[target.Kind].AllowFile(ctx, q, target, wanted, file)
}

// changed tells the module of the record that the files that others can see have changed.
func (s *Service) changed(ctx context.Context, tx *store.Tx, f StoredFile, added bool) error {
	if watcher, ok := s.holders[f.RecordType].(attachment.Watcher); ok && f.Status == Ready {
		return watcher.FilesChanged(ctx, tx, f.target(), added)
	}
	return nil
}

// cipher returns the cipher of a file. It returns apierr.FileNotFound for a file whose key was destroyed.
func (s *Service) cipher(f StoredFile) (*chunkCipher, error) {
	if f.sealed == "" {
		return nil, apierr.FileNotFound
	}
	key, err := s.db.Unseal(keyTable, keyColumn, f.ID, f.sealed)
	if err != nil {
		return nil, err
	}
	return newCipher(f.ID, key)
}
