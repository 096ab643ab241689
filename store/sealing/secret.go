package sealing

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"hash"
	"sync"
)

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
	macs    sync.Map          // purpose → *macs, for keyed
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
		found, _ = s.macs.LoadOrStore(purpose, &macs{key: s.derive(keyedPrefix+purpose, sha256.Size)})
	}
	return found.(*macs).sum(data)
}

// macs computes HMAC-SHA-256 under one key. It keeps what was computed of the key alone, which is half of the work for short data.
type macs struct {
	key  []byte
	free sync.Pool // of hash.Hash
}

func (m *macs) sum(data []byte) []byte {
	h, ok := m.free.Get().(hash.Hash)
	if !ok {
		h = hmac.New(sha256.New, m.key)
	}
	defer m.free.Put(h)
	h.Write(data)
	sum := h.Sum(make([]byte, 0, sha256.Size))
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
