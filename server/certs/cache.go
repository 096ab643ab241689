package certs

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"log/slog"

	"golang.org/x/crypto/acme/autocert"
)

// sealedCache keeps account and certificates in files that are encrypted with AES-256-GCM and bound to their names.
type sealedCache struct {
	autocert.DirCache
	aead cipher.AEAD
	log  *slog.Logger
}

func newSealedCache(dir string, key []byte, log *slog.Logger) (*sealedCache, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return &sealedCache{autocert.DirCache(dir), aead, log}, err
}

// Get returns an entry. An entry under another key, such as one from before a rotation of the master key, counts as missing:
// the manager then obtains another certificate.
func (c *sealedCache) Get(ctx context.Context, name string) ([]byte, error) {
	sealed, err := c.DirCache.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	plain, err := c.aead.Open(nil, nil, sealed, []byte(name))
	if err != nil {
		c.log.Warn("a file of the certificates cannot be decrypted and is replaced", "name", name)
		return nil, autocert.ErrCacheMiss
	}
	return plain, nil
}

// Put stores an entry.
func (c *sealedCache) Put(ctx context.Context, name string, plain []byte) error {
	return c.DirCache.Put(ctx, name, c.aead.Seal(nil, nil, plain, []byte(name))) //nolint:gosec // the cipher makes a random nonce
}
