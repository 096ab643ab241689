package files

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
)

// The content of a file is encrypted in chunks with AES-256-GCM and a random key of its own. The nonce is the number of the chunk: a
// key encrypts one content, once. The number, the id of the file and whether the chunk is the last one are authenticated, so that
// chunks cannot be exchanged, repeated, reordered or left out.

const (
	keyBytes   = 32
	tagBytes   = 16
	chunkBytes = 256<<10 - tagBytes // of content; the stored chunk has 256 KiB
)

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
		return nil, fmt.Errorf("key of a file: %w", err)
	}
	aead, err := cipher.NewGCM(block)
	return &chunkCipher{id, aead}, err
}

// seal encrypts a chunk in place. Its capacity must allow for the tag.
func (c *chunkCipher) seal(chunk []byte, number int64, last bool) []byte {
	nonce, place := c.bound(number, last)
	return c.aead.Seal(chunk[:0], nonce, chunk, place)
}

var errChunk = errors.New("a chunk of the file was changed or belongs elsewhere")

// open decrypts a chunk in place.
func (c *chunkCipher) open(sealed []byte, number int64, last bool) ([]byte, error) {
	nonce, place := c.bound(number, last)
	plain, err := c.aead.Open(sealed[:0], nonce, sealed, place)
	if err != nil {
		return nil, fmt.Errorf("chunk %d of file %s: %w", number, c.id, errChunk)
	}
	return plain, nil
}

// bound returns the nonce of a chunk, and what is authenticated with it.
func (c *chunkCipher) bound(number int64, last bool) (nonce, place []byte) {
	nonce = binary.BigEndian.AppendUint64(make([]byte, 4, c.aead.NonceSize()), uint64(number)) //nolint:gosec // numbers are not negative
	place = append(append([]byte("kontor/file\x00"), c.id...), nonce...)
	if last {
		return nonce, append(place, 1)
	}
	return nonce, append(place, 0)
}

// chunksOf returns the number of chunks of a file.
func chunksOf(size int64) int64 { return (size + chunkBytes - 1) / chunkBytes }
