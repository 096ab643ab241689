package sealing

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"strconv"
	"strings"
	"sync"
)

// A sealed value begins with its form: 1 for generation 0, and 2 with the number of the generation for later ones.
const (
	firstForm = "1."
	laterForm = "2."
)

// SealedPrefix leads every value that is sealed with the newest generation, and no other one.
func (k *Keys) SealedPrefix() string { return prefix(k.Generation()) }

// IsNewest reports whether a value is sealed with the newest generation.
func (k *Keys) IsNewest(sealed string) bool { return strings.HasPrefix(sealed, k.SealedPrefix()) }

func prefix(generation int) string {
	if generation == 0 {
		return firstForm
	}
	return laterForm + strconv.Itoa(generation) + "."
}

// Seal encrypts a value with AES-256-GCM and binds it to a table, column and row. Unseal rejects it for any other place.
func (k *Keys) Seal(table, column, rowID string, plain []byte) string {
	g := k.current.Load().newest()
	return g.seal(g.aead, table, column, rowID, plain)
}

func (g *generation) seal(aead cipher.AEAD, table, column, rowID string, plain []byte) string {
	sealed := aead.Seal(nil, nil, plain, place(table, column, rowID))
	return prefix(g.number) + base64.RawURLEncoding.EncodeToString(sealed)
}

// Unseal decrypts a value that Seal made for the same place.
func (k *Keys) Unseal(table, column, rowID, sealed string) ([]byte, error) {
	return k.UnsealWith(nil, table, column, rowID, sealed)
}

// SealWith is Seal with a key that depends on a further secret. The value cannot be opened without that secret.
func (k *Keys) SealWith(further []byte, table, column, rowID string, plain []byte) (string, error) {
	g := k.current.Load().newest()
	aead, err := g.with(further)
	if err != nil {
		return "", err
	}
	return g.seal(aead, table, column, rowID, plain), nil
}

// UnsealWith decrypts a value that SealWith made for the same place with the same secret.
func (k *Keys) UnsealWith(further []byte, table, column, rowID, sealed string) ([]byte, error) {
	plain, err := k.open(further, place(table, column, rowID), sealed)
	if err != nil {
		return nil, fmt.Errorf("unseal %s.%s: %w", table, column, err)
	}
	return plain, nil
}

// with returns a cipher whose key depends on the generation and a further secret.
func (g *generation) with(further []byte) (cipher.AEAD, error) {
	return newAEAD(mac(g.sealing, append([]byte("kontor/further\x00"), further...)))
}

var (
	errForm = errors.New("unknown form")
	// ErrGeneration says that the keyring has no key for the generation of a value.
	ErrGeneration = errors.New("the key of its generation does not exist any more")
)

func (k *Keys) open(further, bound []byte, sealed string) ([]byte, error) {
	g, text, err := k.generationOf(sealed)
	if err != nil {
		return nil, err
	}
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil, err
	}
	aead := g.aead
	if further != nil {
		if aead, err = g.with(further); err != nil {
			return nil, err
		}
	}
	return aead.Open(nil, nil, data, bound)
}

// generationOf returns the generation of a sealed value, and the rest of the text.
func (k *Keys) generationOf(sealed string) (*generation, string, error) {
	number := 0
	text, first := strings.CutPrefix(sealed, firstForm)
	if !first {
		rest, later := strings.CutPrefix(sealed, laterForm)
		digits, value, found := strings.Cut(rest, ".")
		var err error
		if number, err = strconv.Atoi(digits); !later || !found || err != nil || number <= 0 {
			return nil, "", errForm
		}
		text = value
	}
	for _, g := range k.current.Load().generations {
		if g.number == number && g.aead != nil {
			return g, text, nil
		}
	}
	return nil, "", ErrGeneration
}

// place encodes a place so that no two places have the same bytes: each part is led by its length.
func place(parts ...string) []byte {
	var b []byte
	for _, p := range parts {
		b = binary.BigEndian.AppendUint32(b, uint32(len(p)))
		b = append(b, p...)
	}
	return b
}

// sealPurpose derives the key that seals values.
const sealPurpose = "seal"

// Retained are the purposes whose keys a generation keeps when a newer one has taken its place. Other keys cannot be derived
// from then on.
var Retained = []string{
	sealPurpose,                         // until every value was sealed again
	keyedPrefix + "kyc document number", // likewise
	keyedPrefix + "idempotency body",    // for a day
	keyedPrefix + "api key",             // until each API key was used, or revoked
	keyedPrefix + "service token",       // until each token was used, has expired, or was revoked
	keyedPrefix + "recovery code",       // until the codes of each user were used, or replaced
	keyedPrefix + "customer name",       // former identities are stored as hashes only
	keyedPrefix + "customer birth",      // likewise
	keyedPrefix + "person address",      // likewise: former addresses
	"audit answer", "audit rest",        // digests of the audit trail cannot be made again
	"erasure ledger", // the ledger of erasures is kept for good
}

// transient are the kept purposes that are not needed once every value was sealed again.
var transient = []string{sealPurpose, keyedPrefix + "kyc document number", keyedPrefix + "idempotency body"}

// signing are the purposes of a former master key that count until its replacement is complete.
var signing = []string{keyedPrefix + "mark", keyedPrefix + "commits", keyedPrefix + "audit head"}

// secret derives keys: all from its root, or, without a root, those that were kept.
type secret struct {
	root    []byte
	kept    map[string][]byte // by purpose
	macs    sync.Map          // purpose → *MACs, for keyed
	sealing []byte            // nil when no values are sealed with it any more
	aead    cipher.AEAD
}

func newSecret(root []byte, kept map[string][]byte) (*secret, error) {
	s := &secret{root: root, kept: kept}
	if s.sealing = kept[sealPurpose]; root != nil {
		s.sealing = s.derive(sealPurpose, sealingBytes)
	}
	if s.sealing == nil {
		return s, nil
	}
	var err error
	s.aead, err = newAEAD(s.sealing)
	return s, err
}

// sealingBytes is the length of a key for AES-256.
const sealingBytes = 32

func newAEAD(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// derive returns n bytes that depend on the secret and the purpose alone (HKDF-SHA-256). It panics for a purpose that was not
// kept, and when n is larger than HKDF allows: both are mistakes of the program.
func (s *secret) derive(purpose string, n int) []byte {
	if s.root == nil {
		key, ok := s.kept[purpose]
		if !ok || len(key) != n {
			panic(fmt.Sprintf("sealing: a former generation has no key for %q; list the purpose in Retained", purpose))
		}
		return key
	}
	key, err := hkdf.Key(sha256.New, s.root, nil, "kontor/"+purpose, n)
	if err != nil {
		panic(err)
	}
	return key
}

// keyed returns the HMAC-SHA-256 of data under a key of its own for the purpose.
func (s *secret) keyed(purpose string, data []byte) []byte {
	found, ok := s.macs.Load(purpose)
	if !ok {
		key := s.derive(keyedPrefix+purpose, sha256.Size)
		found, _ = s.macs.LoadOrStore(purpose, &MACs{Key: func() []byte { return key }})
	}
	return found.(*MACs).Sum(make([]byte, 0, sha256.Size), data)
}

// MACs computes HMAC-SHA-256 under one key. It keeps what was computed of the key alone, which is half of the work for short data. It
// may be used by any goroutine.
type MACs struct {
	Key  func() []byte
	free sync.Pool // of hash.Hash
}

// Sum appends the HMAC of data.
func (m *MACs) Sum(to, data []byte) []byte {
	h, ok := m.free.Get().(hash.Hash)
	if !ok {
		h = hmac.New(sha256.New, m.Key())
	}
	defer m.free.Put(h)
	h.Write(data)
	sum := h.Sum(to)
	h.Reset()
	return sum
}

// keep returns the keys for some purposes.
func (s *secret) keep(purposes ...string) map[string][]byte {
	kept := map[string][]byte{}
	for _, p := range purposes {
		kept[p] = s.derive(p, sha256.Size)
	}
	return kept
}
