// Package sealing derives the keys of a database from its master key and its keyring, and encrypts single values with them.
//
// No two purposes share a key. A sealed value can be opened only for the place (table, column, row) that it was sealed for.
// The package stores nothing.
//
// The master key proves that a database, and what is stored about it, belong together. Values are sealed and hashed under
// generations of keys. Generation 0 is derived from the first master key. A rotation adds a random generation and replaces
// the master key, which from then on wraps the [Keyring].
package sealing

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
)

// MasterKeyBytes is the length of a master key.
const MasterKeyBytes = 32

var (
	// ErrWrongKey says that the database was created with another master key.
	ErrWrongKey = errors.New("wrong secret key")
	// ErrNoKey says that an operation needs the master key and it was not found.
	ErrNoKey = errors.New("the secret key is neither in the data directory nor in KONTOR_SECRET_KEY")
)

// Keys are the keys of one database. Its methods may be called from any goroutine, except Choose and Load, which belong to
// the opening of the database, and Use and Become, which belong to a rotation: they must not run at the same time.
type Keys struct {
	candidates [][]byte
	chosen     int
	current    atomic.Pointer[ring]
}

// New returns the keys of a master key. Further candidates are master keys that the database may have instead, see Choose.
func New(master []byte, further ...[]byte) (*Keys, error) {
	k := &Keys{candidates: append([][]byte{master}, further...)}
	return k, k.Choose(0)
}

// Candidate returns the keys of a candidate as master key, without a keyring.
func (k *Keys) Candidate(candidate int) (*Keys, error) { return New(k.candidates[candidate]) }

// Candidates returns the number of master keys that the database may have.
func (k *Keys) Candidates() int { return len(k.candidates) }

// Choose makes a candidate the master key, without a keyring.
func (k *Keys) Choose(candidate int) error {
	r, err := newRing(k.candidates[candidate], nil)
	if err == nil {
		k.chosen = candidate
		k.current.Store(r)
	}
	return err
}

// Chosen returns the candidate that is the master key.
func (k *Keys) Chosen() int { return k.chosen }

// IsMaster reports whether a key is the present master key.
func (k *Keys) IsMaster(key []byte) bool { return hmac.Equal(key, k.current.Load().master.root) }

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

// Sign returns the HMAC-SHA-256 of data under the master key, with a key of its own for the purpose. It proves what is stored
// about the database itself.
func (k *Keys) Sign(purpose string, data []byte) []byte {
	return k.current.Load().master.keyed(purpose, data)
}

// SignedBefore returns what Sign returned before the master key was replaced. It returns nil except while a replacement is
// not complete.
func (k *Keys) SignedBefore(purpose string, data []byte) []byte {
	if former := k.current.Load().former; former != nil {
		return former.keyed(purpose, data)
	}
	return nil
}

// Verify reports whether a signature is that of Sign or SignedBefore.
func (k *Keys) Verify(purpose string, data, signature []byte) bool {
	before := k.SignedBefore(purpose, data)
	return hmac.Equal(signature, k.Sign(purpose, data)) || before != nil && hmac.Equal(signature, before)
}

// DeriveMaster returns n bytes that depend on the master key and the purpose alone.
func (k *Keys) DeriveMaster(purpose string, n int) []byte {
	return k.current.Load().master.derive(purpose, n)
}

// BackupKey returns 32 bytes that encrypt continuous backups. They depend on the master key alone, because a restore has nothing
// else.
func (k *Keys) BackupKey() []byte { return k.DeriveMaster("continuous backup", MasterKeyBytes) }

// DeriveFirst returns n bytes that depend on the first generation and the purpose alone, and stay the same for the life of the
// database. The purpose must be in Retained.
func (k *Keys) DeriveFirst(purpose string, n int) []byte {
	return k.current.Load().generations[0].derive(purpose, n)
}

// Keyed returns the HMAC-SHA-256 of data under the newest generation, with a key of its own for the purpose.
func (k *Keys) Keyed(purpose string, data []byte) []byte {
	return k.current.Load().newest().keyed(purpose, data)
}

// KeyedOlder returns what Keyed returned under former generations, the newest first. The purpose must be in Retained.
func (k *Keys) KeyedOlder(purpose string, data []byte) [][]byte {
	former := k.current.Load().generations
	former = former[:len(former)-1]
	if len(former) > 0 && !slices.Contains(Retained, keyedPrefix+purpose) {
		panic("sealing: " + purpose + " is not in Retained")
	}
	var all [][]byte
	for _, g := range slices.Backward(former) {
		if g.kept[keyedPrefix+purpose] != nil {
			all = append(all, g.keyed(purpose, data))
		}
	}
	return all
}

// Generation returns the number of the newest generation.
func (k *Keys) Generation() int { return k.current.Load().newest().number }

// Keyring returns the keyring, or nil when the master key was never replaced.
func (k *Keys) Keyring() *Keyring { return k.current.Load().keyring }

// keyedPrefix leads the purposes of keyed hashes in derivations.
const keyedPrefix = "keyed/"

// mac returns the HMAC-SHA-256 of data.
func mac(key, data []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(data)
	return h.Sum(nil)
}
