package imports

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"time"

	"kontor/modules/kit/upload"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

const (
	csvMedia = "text/csv"

	// maxUploads is the number of files that arrive at the same time on a node. Each holds a chunk in memory. A quarter is for staff.
	maxUploads = 16
)

// Input are the parameters of an import.
type Input struct {
	DryRun      bool   `query:"dry_run" doc:"Only count what the import would do."`
	OnDuplicate string `query:"on_duplicate" enum:"skip,update,reject" default:"skip" doc:"What to do with a row whose record exists: nothing, replace the members that the file has columns for, or reject the row."`
}

// Validate checks the parameters.
func (in *Input) Validate(v *apierr.Fields) {
	switch in.OnDuplicate {
	case "":
		in.OnDuplicate = skip
	case skip, update, reject:
	default:
		v.Add("on_duplicate", "invalid.one_of", apierr.Args{"Values": skip + ", " + update + ", " + reject})
	}
}

// upload receives a file and queues its import. It returns apierr.NoAccess for updates without the right to change records,
// apierr.ImportUnfinished, apierr.TooManyAtOnce, the errors of the file as a table, and those of the body.
func (s *Service) upload(ctx context.Context, r *endpoint.Request, in Input) (Import, error) {
	caller := access.From(ctx)
	if !s.records.MayImport(caller, in.OnDuplicate == update) {
		return Import{}, apierr.NoAccess
	}
	release, ok := s.uploads.Take(caller.UserID, caller.Staff())
	if !ok {
		return Import{}, apierr.TooManyAtOnce.RetryAfter(time.Second)
	}
	defer release()
	form, err := upload.FormOf(r)
	if err != nil {
		return Import{}, err
	}
	file := r.Body
	if form != nil {
		if file, err = form.File(); err != nil {
			return Import{}, err
		}
	}
	u := &incoming{Service: s, ctx: ctx, source: file, hash: sha256.New(), buffer: make([]byte, 0, chunkBytes)}
	u.row = Import{ID: store.NewID(), DryRun: in.DryRun, OnDuplicate: in.OnDuplicate, CreatedBy: caller.UserID}
	if err := u.begin(); err != nil {
		return Import{}, err
	}
	if err = u.receive(); err == nil && form != nil {
		err = form.End()
	}
	if err == nil {
		err = u.complete()
	}
	if err != nil {
		u.discard()
		return Import{}, err
	}
	return u.row, nil
}

const (
	insertImport = `
		INSERT INTO imports (id, state, dry_run, on_duplicate, sha256, size, row_count, key_sealed, chunks, created_at, created_by)
		VALUES ($1, 'uploading', $2, $3, '', 0, 0, $4, $5, $6, $7)`

	insertChunk = `INSERT INTO import_chunks (import_id, number, content) SELECT id, $2, $3 FROM imports WHERE id = $1 AND state = 'uploading'`

	selectUnfinished = `SELECT id FROM imports WHERE (state = 'queued' OR state = 'running') AND created_by = $1 LIMIT 1`

	queueImport = `
		UPDATE imports SET state = 'queued', sha256 = $2, size = $3, row_count = $4, chunks = $5, created_at = $6
		WHERE id = $1 AND state = 'uploading'`

	discardImport = `UPDATE imports SET key_sealed = '' WHERE id = $1 AND state = 'uploading'`
)

// incoming is a file that arrives: what the table reads of it is stored.
type incoming struct {
	*Service
	ctx    context.Context //nolint:containedctx // of the request
	row    Import
	cipher *upload.Cipher
	source io.Reader
	hash   hash.Hash
	buffer []byte
	number int64 // chunks that were stored
}

// rejectUnfinished returns apierr.ImportUnfinished while another import of the caller has not ended.
func (u *incoming) rejectUnfinished(ctx context.Context, q store.Querier) error {
	open, err := store.All(ctx, q, store.Text, selectUnfinished, u.row.CreatedBy)
	if err == nil && len(open) > 0 {
		err = apierr.ImportUnfinished.Detail("id", open[0])
	}
	return err
}

// begin records the upload with the key of its file.
func (u *incoming) begin() (err error) {
	most := u.MaxBytes/chunkBytes + 1
	u.cipher, err = u.chunks.Begin(u.ctx, u.row.ID, func(ctx context.Context, tx *store.Tx, sealed string) error {
		if err := u.rejectUnfinished(ctx, tx); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, insertImport, u.row.ID, u.row.DryRun, u.row.OnDuplicate, sealed, most, tx.Now(), u.row.CreatedBy)
		return err
	})
	return err
}

// receive reads the file as a table, and stores it meanwhile.
func (u *incoming) receive() error {
	t, err := openTable(u, u.records.Columns())
	for err == nil {
		_, err = t.next()
	}
	if !errors.Is(err, io.EOF) {
		return err
	}
	u.row.Rows = t.number
	return u.flush()
}

// Read reads from the body and stores what it returns.
func (u *incoming) Read(p []byte) (int, error) {
	n, err := u.source.Read(p[:min(len(p), cap(u.buffer)-len(u.buffer))])
	u.buffer = append(u.buffer, p[:n]...)
	u.row.Size += int64(n)
	u.hash.Write(p[:n]) // does not fail
	switch {
	case u.row.Size > u.MaxBytes:
		return n, apierr.PayloadTooLarge.With(apierr.Args{"Max": u.MaxBytes})
	case err != nil:
		return n, err
	case len(u.buffer) == cap(u.buffer):
		return n, u.flush()
	}
	return n, nil
}

// flush stores what has arrived.
func (u *incoming) flush() error {
	if len(u.buffer) == 0 {
		return nil
	}
	sealed := u.cipher.Seal(u.buffer, u.number)
	err := u.chunks.Write(u.ctx, func(ctx context.Context, tx *store.Tx) error {
		stored, err := tx.Exec(ctx, insertChunk, u.row.ID, u.number, sealed)
		if err == nil && stored == 0 {
			err = apierr.ImportNotFound // it was purged meanwhile
		}
		return err
	})
	u.number++
	u.buffer = u.buffer[:0]
	return err
}

// complete queues the import.
func (u *incoming) complete() error {
	i := &u.row
	i.State, i.SHA256, i.chunks, i.CreatedAt = queued, hex.EncodeToString(u.hash.Sum(nil)), u.number, u.db.Now()
	return u.chunks.InTx(u.ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := u.rejectUnfinished(ctx, tx); err != nil {
			return err
		}
		changed, err := tx.Exec(ctx, queueImport, i.ID, i.SHA256, i.Size, i.Rows, i.chunks, i.CreatedAt)
		if err == nil && changed == 0 {
			err = apierr.ImportNotFound
		}
		tx.Audit(store.AuditEntry{Actor: i.CreatedBy, Action: "imports.create", RecType: importsTable, RecID: i.ID})
		return err
	})
}

// discard makes what has arrived unreadable, and deletes it. After a kill, the purge finds it by its age. It does not depend on the
// request, which may have ended.
func (u *incoming) discard() {
	err := u.chunks.InTx(context.Background(), func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, discardImport, u.row.ID)
		return err
	})
	if err == nil {
		err = u.deleteChunks(context.Background(), u.row.ID)
	}
	if err != nil {
		u.Log.Warn("the rest of a file to import remains until it is purged", "import", u.row.ID, "cause", err)
	}
}
