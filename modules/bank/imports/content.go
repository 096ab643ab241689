package imports

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"

	"kontor/store"
)

// A file is encrypted in chunks with AES-256-GCM and a random key of its own, sealed in the row of the import. The nonce is the number
// of the chunk: a key encrypts one file, once. Without the key, nothing of the file can be read.

const (
	keyBytes   = 32
	chunkBytes = 128 << 10 // of the file
	keyColumn  = "key"
)

// sealedKeys says how keys are sealed again after a rotation of the master key.
var sealedKeys = store.SealedColumn{
	Table: importsTable, Column: keyColumn,
	Select: `SELECT id, id, key_sealed FROM imports WHERE key_sealed <> '' AND key_sealed NOT LIKE $1 AND id > $2 ORDER BY id LIMIT $3`,
	Update: `UPDATE imports SET key_sealed = $3 WHERE id = $1 AND key_sealed = $2`,
}

// chunkCipher encrypts and decrypts the chunks of one file.
type chunkCipher struct {
	id   string
	aead cipher.AEAD
}

func newKey() []byte {
	key := make([]byte, keyBytes)
	rand.Read(key) // does not fail: it would end the program
	return key
}

func newCipher(id string, key []byte) (*chunkCipher, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("key of an import: %w", err)
	}
	aead, err := cipher.NewGCM(block)
	return &chunkCipher{id, aead}, err
}

// place returns the nonce of a chunk, and what is authenticated with it.
func (c *chunkCipher) place(number int64) (nonce, place []byte) {
	nonce = binary.BigEndian.AppendUint64(make([]byte, 4, c.aead.NonceSize()), uint64(number)) //nolint:gosec // numbers are not negative
	return nonce, append([]byte("kontor/import\x00"), c.id...)
}

func (c *chunkCipher) seal(chunk []byte, number int64) []byte {
	nonce, place := c.place(number)
	return c.aead.Seal(nil, nonce, chunk, place)
}

func (c *chunkCipher) open(sealed []byte, number int64) ([]byte, error) {
	nonce, place := c.place(number)
	plain, err := c.aead.Open(sealed[:0], nonce, sealed, place)
	if err != nil {
		return nil, fmt.Errorf("chunk %d of import %s was changed: %w", number, c.id, err)
	}
	return plain, nil
}

const selectChunk = `SELECT content FROM import_chunks WHERE import_id = $1 AND number = $2`

// content reads the file of an import, one chunk at a time.
type content struct {
	ctx    context.Context //nolint:containedctx // of the job that reads it
	db     *store.DB
	cipher *chunkCipher
	size   int64 // not read yet
	number int64 // of the next chunk
	ready  []byte
}

// openContent returns the file of an import.
func (s *Service) openContent(ctx context.Context, i Import) (*content, error) {
	key, err := s.db.Unseal(importsTable, keyColumn, i.ID, i.keySealed)
	if err != nil {
		return nil, err
	}
	c, err := newCipher(i.ID, key)
	return &content{ctx: ctx, db: s.db, cipher: c, size: i.Size}, err
}

// Read returns the next bytes of the file.
func (c *content) Read(p []byte) (int, error) {
	if len(c.ready) == 0 {
		if c.size == 0 {
			return 0, io.EOF
		}
		var sealed []byte
		if err := c.db.QueryRow(c.ctx, selectChunk, c.cipher.id, c.number).Scan(&sealed); err != nil {
			return 0, fmt.Errorf("read a file to import: %w", err)
		}
		plain, err := c.cipher.open(sealed, c.number)
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
