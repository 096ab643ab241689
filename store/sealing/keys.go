// Package sealing derives the keys of a database from its master key, and encrypts single values with them.
//
// No two purposes share a key. A sealed value can be opened only for the place (table, column, row) that it was sealed for.
// The package stores nothing.
package sealing

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strings"
	"sync"
)

// MasterKeyBytes is the length of a master key.
const MasterKeyBytes = 32

var (
	// ErrWrongKey says that the database was created with another master key.
	ErrWrongKey = errors.New("wrong secret key")
	// ErrNoKey says that an operation needs the master key and it was not found.
	ErrNoKey = errors.New("the secret key is neither in the data directory nor in KONTOR_SECRET_KEY")
)

// Keys derives all keys from a master key. Its methods may be called from any goroutine.
type Keys struct {
	master []byte
	macs   sync.Map // purpose → derived key, for Keyed
	aead   cipher.AEAD
}

// New returns the keys of a master key.
func New(master []byte) (*Keys, error) {
	k := &Keys{master: master}
	block, err := aes.NewCipher(k.Derive("seal", 32))
	if err != nil {
		return nil, err
	}
	k.aead, err = cipher.NewGCMWithRandomNonce(block)
	return k, err
}

// ParseMasterKey reads a master key in hexadecimal or base64.
func ParseMasterKey(text string) ([]byte, error) {
	text = strings.TrimSpace(text)
	for _, decode := range []func(string) ([]byte, error){
		hex.DecodeString, base64.StdEncoding.DecodeString, base64.RawStdEncoding.DecodeString,
		base64.URLEncoding.DecodeString, base64.RawURLEncoding.DecodeString,
	} {
		if key, err := decode(text); err == nil && len(key) == MasterKeyBytes {
			return key, nil
		}
	}
	return nil, errors.New("the secret key must be 32 bytes, written as 64 hexadecimal digits or in base64")
}

// NewMasterKey returns a random master key.
func NewMasterKey() []byte {
	key := make([]byte, MasterKeyBytes)
	rand.Read(key) // never fails: it ends the program instead
	return key
}

// Derive returns n bytes that depend on the master key and the purpose alone (HKDF-SHA-256). It panics when n is larger
// than HKDF allows.
func (k *Keys) Derive(purpose string, n int) []byte {
	key, err := hkdf.Key(sha256.New, k.master, nil, "kontor/"+purpose, n)
	if err != nil {
		panic(err)
	}
	return key
}

// Keyed returns the HMAC-SHA-256 of data under a key of its own for the purpose.
func (k *Keys) Keyed(purpose string, data []byte) []byte {
	key, ok := k.macs.Load(purpose)
	if !ok {
		key, _ = k.macs.LoadOrStore(purpose, k.Derive("keyed/"+purpose, sha256.Size))
	}
	mac := hmac.New(sha256.New, key.([]byte))
	mac.Write(data)
	return mac.Sum(nil)
}
