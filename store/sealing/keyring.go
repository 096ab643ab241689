package sealing

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
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
