// Package certs provides the certificates of a server that terminates TLS itself: from files, or from a certificate authority
// by ACME.
package certs

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/acme/autocert"
)

// Files is a certificate in two files. It is read again when a file changes.
type Files struct {
	cert, key string
	now       func() time.Time
	log       *slog.Logger

	mu      sync.Mutex
	checked time.Time
	seen    [2]fs.FileInfo
	current *tls.Certificate
}

// recheck is the interval at which the files are compared with what was read.
const recheck = time.Second

// LoadFiles reads a certificate with its chain, and its private key, both in PEM form. It rejects a certificate that is not
// valid now.
func LoadFiles(cert, key string, now func() time.Time, log *slog.Logger) (*Files, error) {
	f := &Files{cert: cert, key: key, now: now, log: log, checked: now()}
	f.seen = f.stat()
	var err error
	f.current, err = f.load()
	return f, err
}

// Get returns the current certificate. If the files have changed, it reads them first; if they are not usable, it keeps the
// earlier certificate.
func (f *Files) Get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	if since := now.Sub(f.checked); since >= 0 && since < recheck {
		return f.current, nil
	}
	f.checked = now
	found := f.stat()
	if same(found[0], f.seen[0]) && same(found[1], f.seen[1]) {
		return f.current, nil
	}
	f.seen = found
	loaded, err := f.load()
	if err != nil {
		f.log.Error("the changed certificate is not used", "cause", err)
		return f.current, nil
	}
	f.current = loaded
	f.log.Info("certificate loaded", "file", f.cert, "expires", loaded.Leaf.NotAfter)
	return f.current, nil
}

// Expires returns the end of the current certificate.
func (f *Files) Expires() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.current.Leaf.NotAfter
}

func (f *Files) stat() (found [2]fs.FileInfo) {
	for i, name := range []string{f.cert, f.key} {
		found[i], _ = os.Stat(name) // nil for a missing file, which load reports
	}
	return found
}

func same(a, b fs.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

func (f *Files) load() (*tls.Certificate, error) {
	cert, err := readPEM("server.tls_cert", f.cert, "certificate", "CERTIFICATE")
	if err != nil {
		return nil, err
	}
	key, err := readPEM("server.tls_key", f.key, "private key", "PRIVATE KEY")
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("the private key in server.tls_key %s and the certificate in server.tls_cert %s cannot be used together (%w)", f.key, f.cert, err)
	}
	switch now, leaf := f.now(), pair.Leaf; {
	case now.After(leaf.NotAfter):
		return nil, fmt.Errorf("the certificate in server.tls_cert %s expired at %s; renew it", f.cert, leaf.NotAfter.Format(time.RFC3339))
	case now.Before(leaf.NotBefore):
		return nil, fmt.Errorf("the certificate in server.tls_cert %s is valid only from %s on; check the clock of this machine", f.cert, leaf.NotBefore.Format(time.RFC3339))
	}
	return &pair, nil
}

// maxPEM exceeds any chain of certificates. A larger file was named by mistake.
const maxPEM = 1 << 20

// readPEM reads a file that has a PEM block whose type ends with kind.
func readPEM(setting, name, what, kind string) ([]byte, error) {
	info, err := os.Stat(name)
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxPEM) {
		return nil, fmt.Errorf("%s %s is not a file of a usual size", setting, name)
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(name) //nolint:gosec // a setting names the file
	}
	if err != nil {
		if path, ok := errors.AsType[*fs.PathError](err); ok {
			err = path.Err
		}
		return nil, fmt.Errorf("%s %s cannot be read: %w", setting, name, err)
	}
	for rest := text; ; {
		block, more := pem.Decode(rest)
		if block == nil {
			return nil, fmt.Errorf("%s %s contains no %s in PEM form", setting, name, what)
		}
		if strings.HasSuffix(block.Type, kind) {
			return text, nil
		}
		rest = more
	}
}

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
