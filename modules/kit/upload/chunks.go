package upload

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"time"

	"kontor/server/apierr"
	"kontor/store"
)

// Chunks keeps the files of a table in encrypted chunks. Each file has a random key of its own, which is sealed in the column key_sealed
// of its row: without it, nothing of the file can be read.
type Chunks struct {
	Table
	db     *store.DB
	writes chan struct{} // a place for the chunk that is being written
}

// Table says where files are.
type Table struct {
	From  string
	Label string // is authenticated with each chunk
}

const (
	// KeyColumn names the keys for [store.DB.Unseal].
	KeyColumn = "key"
	// WriteTime is how long one transaction of an upload may take.
	WriteTime = 20 * time.Second
	// TagBytes is by how much a stored chunk is longer than its content.
	TagBytes = 16

	keyBytes = 32
)

// NewChunks returns the chunks of a table.
func NewChunks(db *store.DB, t Table) *Chunks {
	db.RegisterSealed(store.SealedColumn{
		Table: t.From, Column: KeyColumn,
		Select: `SELECT id, id, key_sealed FROM ` + t.From + ` WHERE key_sealed <> '' AND key_sealed NOT LIKE $1 AND id > $2 ORDER BY id LIMIT $3`,
		Update: `UPDATE ` + t.From + ` SET key_sealed = $3 WHERE id = $1 AND key_sealed = $2`,
	})
	return &Chunks{t, db, make(chan struct{}, 1)}
}

// Begin makes the key of a new file. write stores it, sealed, in a transaction.
func (c *Chunks) Begin(ctx context.Context, id string, write func(ctx context.Context, tx *store.Tx, sealed string) error) (*Cipher, error) {
	key := make([]byte, keyBytes)
	rand.Read(key) // does not fail: it would end the program
	sealed, err := c.db.Seal(c.From, KeyColumn, id, key)
	if err != nil {
		return nil, err
	}
	err = c.InTx(ctx, func(ctx context.Context, tx *store.Tx) error {
		current, err := tx.Reseal(c.From, KeyColumn, id, sealed) // a rotation may have begun
		if err != nil {
			return err
		}
		return write(ctx, tx, current)
	})
	if err != nil {
		return nil, err
	}
	return NewCipher(c.Label, id, key)
}

// Open returns the cipher of a file with its sealed key.
func (c *Chunks) Open(id, sealed string) (*Cipher, error) {
	key, err := c.db.Unseal(c.From, KeyColumn, id, sealed)
	if err != nil {
		return nil, err
	}
	return NewCipher(c.Label, id, key)
}

// InTx runs a transaction of an upload, with a time limit of its own.
func (c *Chunks) InTx(ctx context.Context, f func(ctx context.Context, tx *store.Tx) error) error {
	limited, cancel := context.WithTimeout(ctx, WriteTime)
	defer cancel()
	return c.db.InTx(limited, func(tx *store.Tx) error { return f(limited, tx) })
}

// Write is InTx for a transaction that stores a chunk. One chunk at a time waits for the writer, so that other writes do not wait for a
// group of them. It returns apierr.Unavailable after the time limit.
func (c *Chunks) Write(ctx context.Context, f func(ctx context.Context, tx *store.Tx) error) error {
	limited, cancel := context.WithTimeout(ctx, WriteTime)
	defer cancel()
	select {
	case c.writes <- struct{}{}:
		defer func() { <-c.writes }()
	case <-limited.Done():
		return apierr.Unavailable.Wrap(limited.Err())
	}
	return c.InTx(limited, f)
}

// Cipher encrypts and decrypts the chunks of one file with AES-256-GCM. The nonce is the number of the chunk: a key encrypts one content,
// once. The label, the id of the file and what the caller adds are authenticated.
type Cipher struct {
	ID    string // of the file
	label string
	aead  cipher.AEAD
}

// NewCipher returns the cipher of a file.
func NewCipher(label, id string, key []byte) (*Cipher, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("key of a file: %w", err)
	}
	aead, err := cipher.NewGCM(block)
	return &Cipher{id, label, aead}, err
}

// Seal encrypts a chunk, in place if its capacity allows for the tag.
func (c *Cipher) Seal(chunk []byte, number int64, place ...byte) []byte {
	return c.aead.Seal(chunk[:0], nonce(number), chunk, c.authenticated(place))
}

// Open decrypts a chunk in place.
func (c *Cipher) Open(sealed []byte, number int64, place ...byte) ([]byte, error) {
	plain, err := c.aead.Open(sealed[:0], nonce(number), sealed, c.authenticated(place))
	if err != nil {
		return nil, fmt.Errorf("chunk %d of file %s was changed or belongs elsewhere: %w", number, c.ID, err)
	}
	return plain, nil
}

func nonce(number int64) []byte {
	return binary.BigEndian.AppendUint64(make([]byte, 4, 12), uint64(number)) //nolint:gosec // numbers are not negative
}

func (c *Cipher) authenticated(place []byte) []byte {
	return append([]byte(c.label+"\x00"+c.ID), place...)
}
