package auth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/argon2"

	"kontor/server/apierr"
)

// HashCost holds the parameters of an Argon2id hash.
type HashCost struct {
	MemoryKiB uint32
	Passes    uint32
	Threads   uint8
}

// DefaultHashCost is the first recommendation of OWASP: 19 MiB, two passes, one thread. A hash took 22 ms where it was
// measured.
var DefaultHashCost = HashCost{MemoryKiB: 19 << 10, Passes: 2, Threads: 1}

const (
	saltBytes = 16
	hashBytes = 32
	// maxStoredMemoryKiB limits the memory that a stored hash may require, so that a damaged row cannot exhaust the machine.
	maxStoredMemoryKiB = 1 << 20
	maxStoredPasses    = 64
)

// storedHash is the hash of a password with its parameters.
type storedHash struct {
	cost HashCost
	salt []byte
	sum  []byte
}

var errHashForm = errors.New("stored password hash has an unknown form")

// newHash hashes a password with a fresh salt.
func newHash(cost HashCost, password string) storedHash {
	salt := make([]byte, saltBytes)
	rand.Read(salt) // does not fail: it would end the program
	return storedHash{cost: cost, salt: salt, sum: cost.sum(password, salt)}
}

func (c HashCost) sum(password string, salt []byte) []byte {
	return argon2.IDKey([]byte(password), salt, c.Passes, c.MemoryKiB, c.Threads, hashBytes)
}

// matches hashes a password with the same parameters and compares in constant time.
func (h storedHash) matches(password string) bool {
	return subtle.ConstantTimeCompare(h.cost.sum(password, h.salt), h.sum) == 1
}

// String returns the stored form, a PHC string: $argon2id$v=19$m=19456,t=2,p=1$salt$hash.
func (h storedHash) String() string {
	encode := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s",
		argon2.Version, h.cost.MemoryKiB, h.cost.Passes, h.cost.Threads, encode(h.salt), encode(h.sum))
}

// parseHash parses the stored form.
func parseHash(text string) (storedHash, error) {
	var h storedHash
	var version int
	var rest string
	_, err := fmt.Sscanf(text, "$argon2id$v=%d$m=%d,t=%d,p=%d$%s", &version, &h.cost.MemoryKiB, &h.cost.Passes, &h.cost.Threads, &rest)
	if err != nil || version != argon2.Version {
		return h, errHashForm
	}
	for i := range rest {
		if rest[i] != '$' {
			continue
		}
		decoding := base64.RawStdEncoding.Strict()
		var saltErr, sumErr error
		h.salt, saltErr = decoding.DecodeString(rest[:i])
		h.sum, sumErr = decoding.DecodeString(rest[i+1:])
		sane := h.cost.MemoryKiB <= maxStoredMemoryKiB && h.cost.Passes > 0 && h.cost.Passes <= maxStoredPasses &&
			h.cost.Threads > 0 && len(h.salt) >= saltBytes && len(h.sum) == hashBytes
		if saltErr != nil || sumErr != nil || !sane {
			return h, errHashForm
		}
		return h, nil
	}
	return h, errHashForm
}

// hasher limits concurrent hashes to a number of slots, with a short queue before them, so that a flood of sign-ins exhausts
// neither memory nor CPU.
type hasher struct {
	cost  HashCost
	dummy storedHash    // compared for unknown users, so that timing reveals nothing
	queue chan struct{} // callers that hold a slot or wait for one
	slots chan struct{}
	made  atomic.Int64
}

// queuePerSlot is the number of waiting callers for each slot: at 22 ms a hash the last one waits three quarters of a second.
const queuePerSlot = 32

// retryHashing is the Retry-After of callers that are rejected because the queue is full.
const retryHashing = time.Second

func newHasher(cost HashCost, slots int) *hasher {
	// The sum is random and matches no password. Only the time of the comparison matters.
	dummy := storedHash{cost: cost, salt: make([]byte, saltBytes), sum: make([]byte, hashBytes)}
	rand.Read(dummy.salt)
	rand.Read(dummy.sum)
	return &hasher{
		cost:  cost,
		dummy: dummy,
		queue: make(chan struct{}, slots*(1+queuePerSlot)),
		slots: make(chan struct{}, slots),
	}
}

// acquire takes a place in the queue, or returns apierr.Unavailable when the queue is full. Callers must call release.
func (h *hasher) acquire() (release func(), err error) {
	select {
	case h.queue <- struct{}{}:
		return func() { <-h.queue }, nil
	default:
		return nil, apierr.Unavailable.RetryAfter(retryHashing)
	}
}

// hash hashes a password with the present parameters. The caller must hold a place in the queue.
func (h *hasher) hash(password string) storedHash {
	h.slots <- struct{}{}
	defer func() { <-h.slots }()
	h.made.Add(1)
	return newHash(h.cost, password)
}

// matches compares a password with a stored hash. The caller must hold a place in the queue.
func (h *hasher) matches(stored storedHash, password string) bool {
	h.slots <- struct{}{}
	defer func() { <-h.slots }()
	h.made.Add(1)
	return stored.matches(password)
}

// Hashes returns the number of passwords hashed since the start.
func (s *Service) Hashes() int64 { return s.hasher.made.Load() }

// HashPassword hashes a new password for [Service.SetPassword]. It takes about 20 ms; callers must not call it from within a
// transaction. It returns apierr.Unavailable when the queue is full.
func (s *Service) HashPassword(_ context.Context, password string) (string, error) {
	if isTooLong(password) {
		return "", apierr.Invalid("password", "invalid.max_length", apierr.Args{"Max": maxPasswordLength})
	}
	release, err := s.hasher.acquire()
	if err != nil {
		return "", err
	}
	defer release()
	return s.hasher.hash(password).String(), nil
}
