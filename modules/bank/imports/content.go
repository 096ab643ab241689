package imports

import (
	"context"
	"fmt"
	"io"

	"kontor/modules/kit/upload"
	"kontor/store"
)

const (
	chunkBytes = 128 << 10 // of the file
	label      = "kontor/import"
)

const selectChunk = `SELECT content FROM import_chunks WHERE import_id = $1 AND number = $2`

// content reads the file of an import, one chunk at a time.
type content struct {
	ctx    context.Context //nolint:containedctx // of the job that reads it
	db     *store.DB
	cipher *upload.Cipher
	size   int64 // not read yet
	number int64 // of the next chunk
	ready  []byte
}

// openContent returns the file of an import.
func (s *Service) openContent(ctx context.Context, i Import) (*content, error) {
	c, err := s.chunks.Open(i.ID, i.keySealed)
	return &content{ctx: ctx, db: s.db, cipher: c, size: i.Size}, err
}

// Read returns the next bytes of the file.
func (c *content) Read(p []byte) (int, error) {
	if len(c.ready) == 0 {
		if c.size == 0 {
			return 0, io.EOF
		}
		var sealed []byte
		if err := c.db.QueryRow(c.ctx, selectChunk, c.cipher.ID, c.number).Scan(&sealed); err != nil {
			return 0, fmt.Errorf("read a file to import: %w", err)
		}
		plain, err := c.cipher.Open(sealed, c.number)
		if err != nil {
			return 0, err
		}
		c.number++
		c.ready, c.size = plain, c.size-int64(len(plain))
	}
	n := copy(p, c.ready)
	c.ready = c.ready[n:]
	return n, nil
}
