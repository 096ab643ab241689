package store

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
)

// masterKeyBytes is the length of the master key.
const masterKeyBytes = 32

// secrets derives all keys from the master key. No two purposes share one.
type secrets struct {
	master  []byte
	derived sync.Map // purpose → []byte, for Keyed
	aead    cipher.AEAD

	answers, rests macs // for the halves of digests
}

func newSecrets(master []byte) (*secrets, error) {
	s := &secrets{master: master}
	s.answers.use(s.derive("audit answer", sha256.Size))
	s.rests.use(s.derive("audit rest", sha256.Size))
	block, err := aes.NewCipher(s.derive("seal", 32))
	if err != nil {
		return nil, err
	}
	s.aead, err = cipher.NewGCMWithRandomNonce(block)
	return s, err
}

func (s *secrets) derive(purpose string, n int) []byte {
	key, err := hkdf.Key(sha256.New, s.master, nil, "kontor/"+purpose, n)
	if err != nil {
		panic(err) // n is beyond what HKDF can give: a programming mistake
	}
	return key
}

// parseMasterKey reads a key in hexadecimal or base64.
func parseMasterKey(text string) ([]byte, error) {
	text = strings.TrimSpace(text)
	for _, decode := range []func(string) ([]byte, error){
		hex.DecodeString, base64.StdEncoding.DecodeString, base64.RawStdEncoding.DecodeString,
		base64.URLEncoding.DecodeString, base64.RawURLEncoding.DecodeString,
	} {
		if key, err := decode(text); err == nil && len(key) == masterKeyBytes {
			return key, nil
		}
	}
	return nil, errors.New("the secret key must be 32 bytes, written as 64 hexadecimal digits or in base64")
}

func newMasterKey() []byte {
	key := make([]byte, masterKeyBytes)
	rand.Read(key) // never fails: it ends the program instead
	return key
}

// DeriveKey gives n bytes that only this database's master key gives for the purpose.
func (db *DB) DeriveKey(purpose string, n int) []byte { return db.secrets.derive("derive/"+purpose, n) }

// Keyed is the HMAC-SHA-256 of data under a key of its own for the purpose. It recognises a value
// again that must not be stored.
func (db *DB) Keyed(purpose string, data []byte) []byte { return db.secrets.keyed(purpose, data) }

func (s *secrets) keyed(purpose string, data []byte) []byte {
	key, ok := s.derived.Load(purpose)
	if !ok {
		key, _ = s.derived.LoadOrStore(purpose, s.derive("keyed/"+purpose, sha256.Size))
	}
	mac := hmac.New(sha256.New, key.([]byte))
	mac.Write(data)
	return mac.Sum(nil)
}

// check is what recognised the master key before it promised a signed head, see [secrets.boundCheck].
func (s *secrets) check() string { return hex.EncodeToString(s.keyed("key check", []byte("kontor"))) }

// signHead signs the end of the audit trail.
func (s *secrets) signHead(h head) string {
	text := headText(h)
	return fmt.Sprintf("%s %x", text, s.keyed("audit head", []byte(text)))
}

// sealVersion leads every sealed value, so that another cipher can follow one day.
const sealVersion = "1."

// Seal encrypts a value for one place, with AES-256-GCM: it opens nowhere but in this table, column
// and row.
func (db *DB) Seal(table, column, rowID string, plain []byte) (string, error) {
	db.Heavy("seal")
	sealed := db.secrets.aead.Seal(nil, nil, plain, sealPlace(table, column, rowID))
	return sealVersion + base64.RawURLEncoding.EncodeToString(sealed), nil
}

// Unseal gives back what Seal was given for the same place.
func (db *DB) Unseal(table, column, rowID, sealed string) ([]byte, error) {
	db.Heavy("unseal")
	text, ok := strings.CutPrefix(sealed, sealVersion)
	if !ok {
		return nil, fmt.Errorf("unseal %s.%s: unknown form", table, column)
	}
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("unseal %s.%s: %w", table, column, err)
	}
	plain, err := db.secrets.aead.Open(nil, nil, data, sealPlace(table, column, rowID))
	if err != nil {
		return nil, fmt.Errorf("unseal %s.%s: %w", table, column, err)
	}
	return plain, nil
}

// sealPlace writes a place so that no two places look the same.
func sealPlace(parts ...string) []byte {
	var b []byte
	for _, p := range parts {
		b = binary.BigEndian.AppendUint32(b, uint32(len(p)))
		b = append(b, p...)
	}
	return b
}
