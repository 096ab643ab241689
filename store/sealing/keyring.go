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
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// Keyring holds the generations of keys after a first replacement of the master key. It is stored wrapped by the master key.
type Keyring struct {
	Generations []Generation `json:"generations"` // the oldest first
	// Former holds keys of the master key before the present one. They count for the moment in which it is replaced.
	Former map[string][]byte `json:"former,omitempty"`
	// Resealing says that a rotation is not complete: values may be sealed with former generations.
	Resealing bool `json:"resealing,omitempty"`
	// Announced says that the modules have followed the replacement of the master key.
	Announced bool `json:"announced,omitempty"`
	// Compromised says that the operator has no trust in what was signed before the rotation.
	Compromised bool `json:"compromised,omitempty"`
	// ExportKeys are the public keys that verify exports of the audit trail from before the present one.
	ExportKeys []ExportKey `json:"export_keys,omitempty"`
}

// Generation is a generation of keys.
type Generation struct {
	Number    int               `json:"number"`
	CreatedAt time.Time         `json:"created_at,omitzero"` // unknown for generation 0
	Root      []byte            `json:"root,omitempty"`      // of the newest one
	Kept      map[string][]byte `json:"kept,omitempty"`      // of former ones, by purpose
}

// Seals reports whether values that were sealed with the generation can be opened.
func (g Generation) Seals() bool { return g.Root != nil || g.Kept[sealPurpose] != nil }

// ExportKey is a public key, in base64, and when it was replaced.
type ExportKey struct {
	PublicKey string    `json:"public_key"`
	Until     time.Time `json:"until"`
}

// ring is a master key with its keyring, ready for use.
type ring struct {
	master      *secret
	former      *secret // nil except while the master key is being replaced
	generations []*generation
	keyring     *Keyring // nil: the only generation is derived from the master key
}

type generation struct {
	number int
	*secret
}

func (r *ring) newest() *generation { return r.generations[len(r.generations)-1] }

func newRing(master []byte, keyring *Keyring) (*ring, error) {
	first, err := newSecret(master, nil)
	if err != nil {
		return nil, err
	}
	r := &ring{master: first, keyring: keyring}
	if keyring == nil {
		r.generations = []*generation{{0, first}}
		return r, nil
	}
	for _, g := range keyring.Generations {
		s, err := newSecret(g.Root, g.Kept)
		if err != nil {
			return nil, err
		}
		r.generations = append(r.generations, &generation{g.Number, s})
	}
	if len(r.generations) == 0 || r.newest().root == nil {
		return nil, errKeyring
	}
	if keyring.Former != nil {
		r.former, err = newSecret(nil, keyring.Former)
	}
	return r, err
}

var errKeyring = errors.New("the keyring cannot be opened with the secret key")

// wrapVersion leads a wrapped keyring.
const wrapVersion = "k1."

// keyringPlace is what a wrapped keyring is bound to.
var keyringPlace = place("meta", "keyring")

// Wrap encrypts a keyring with a key that depends on the master key.
func (k *Keys) Wrap(keyring Keyring) (string, error) {
	text, err := json.Marshal(keyring)
	if err != nil {
		return "", err
	}
	aead, err := newAEAD(k.DeriveMaster("keyring", sealingBytes))
	if err != nil {
		return "", err
	}
	return wrapVersion + base64.RawURLEncoding.EncodeToString(aead.Seal(nil, nil, text, keyringPlace)), nil //nolint:gosec // the cipher makes a random nonce
}

// Unwrap opens a keyring that Wrap encrypted with the present master key.
func (k *Keys) Unwrap(wrapped string) (keyring Keyring, err error) {
	aead, err := newAEAD(k.DeriveMaster("keyring", sealingBytes))
	if err != nil {
		return keyring, err
	}
	text, ok := strings.CutPrefix(wrapped, wrapVersion)
	data, err := base64.RawURLEncoding.DecodeString(text)
	if !ok || err != nil {
		return keyring, errKeyring
	}
	plain, err := aead.Open(nil, nil, data, keyringPlace)
	if err != nil {
		return keyring, errKeyring
	}
	if err := json.Unmarshal(plain, &keyring); err != nil {
		return keyring, fmt.Errorf("%w: %w", errKeyring, err)
	}
	return keyring, nil
}

// Load opens the keyring of the database with the present master key, and makes it the present one.
func (k *Keys) Load(wrapped string) error {
	keyring, err := k.Unwrap(wrapped)
	if err != nil {
		return err
	}
	return k.Use(keyring)
}

// Use makes a keyring the present one.
func (k *Keys) Use(keyring Keyring) error {
	r, err := newRing(k.current.Load().master.root, &keyring)
	if err == nil {
		k.current.Store(r)
	}
	return err
}

// Copy returns keys that stay what the present ones are now.
func (k *Keys) Copy() *Keys {
	c := &Keys{candidates: k.candidates, chosen: k.chosen}
	c.current.Store(k.current.Load())
	return c
}

// Become makes the master key and the keyring of other keys the present ones.
func (k *Keys) Become(other *Keys) { k.current.Store(other.current.Load()) }

// Next returns the keyring for a new master key: with a new generation of random keys, and of the former ones only what
// remains in use. exportKey is the public key that the present master key signs exports with.
func (k *Keys) Next(now time.Time, exportKey string, compromised bool) Keyring {
	r := k.current.Load()
	next := Keyring{Compromised: compromised}
	if r.keyring != nil {
		next.Generations = slices.Clone(r.keyring.Generations)
		next.ExportKeys = slices.Clone(r.keyring.ExportKeys)
	} else {
		next.Generations = []Generation{{}}
	}
	last := &next.Generations[len(next.Generations)-1]
	last.Root, last.Kept = nil, r.newest().keep(Retained...)
	next.Generations = append(next.Generations, Generation{Number: last.Number + 1, CreatedAt: now, Root: NewMasterKey()})
	next.ExportKeys = append(next.ExportKeys, ExportKey{exportKey, now})
	next.Former = r.master.keep(signing...)
	next.Resealing = true
	return next
}

// Replaced returns the keyring once nothing is signed with the former master key any more.
func (r Keyring) Replaced() Keyring {
	r.Former = nil
	return r
}

// Resealed returns the keyring after a rotation.
func (r Keyring) Resealed() Keyring {
	r.Resealing = false
	return r
}

// Retired returns the keyring without the keys that opened values of former generations.
func (r Keyring) Retired() Keyring {
	r.Generations = slices.Clone(r.Generations)
	for i, g := range r.Generations {
		if g.Root == nil {
			kept := maps.Clone(g.Kept)
			maps.DeleteFunc(kept, func(purpose string, _ []byte) bool { return slices.Contains(transient, purpose) })
			r.Generations[i].Kept = kept
		}
	}
	return r
}

// Without returns the keyring without the keys of former generations for a keyed hash.
func (r Keyring) Without(purpose string) Keyring {
	r.Generations = slices.Clone(r.Generations)
	for i, g := range r.Generations {
		r.Generations[i].Kept = maps.Clone(g.Kept)
		delete(r.Generations[i].Kept, keyedPrefix+purpose)
	}
	return r
}

// Retirable reports whether former generations can still open values.
func (r Keyring) Retirable() bool {
	return slices.ContainsFunc(r.Generations, func(g Generation) bool { return g.Root == nil && g.Seals() })
}

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
