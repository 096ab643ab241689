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

// HashCost is what one Argon2id hash costs.
type HashCost struct {
	MemoryKiB uint32
	Passes    uint32
	Threads   uint8
}

// DefaultHashCost is the first recommendation of OWASP: 19 MiB, two passes, one thread. 22 ms on the machine where it
// was measured.
var DefaultHashCost = HashCost{MemoryKiB: 19 << 10, Passes: 2, Threads: 1}

const (
	saltBytes = 16
	hashBytes = 32
	// maxStoredMemoryKiB bounds what a stored hash may ask for, so that a damaged row cannot take the machine.
	maxStoredMemoryKiB = 1 << 20
	maxStoredPasses    = 64
)

// storedHash is a password's hash with the parameters it was made with.
type storedHash struct {
	cost HashCost
	salt []byte
	sum  []byte
}

var errHashForm = errors.New("stored password hash has an unknown form")

// newHash hashes a password with a fresh salt.
func newHash(cost HashCost, password string) storedHash {
	salt := make([]byte, saltBytes)
	rand.Read(salt) // never fails: it ends the program instead
	return storedHash{cost: cost, salt: salt, sum: cost.sum(password, salt)}
}

func (c HashCost) sum(password string, salt []byte) []byte {
	return argon2.IDKey([]byte(password), salt, c.Passes, c.MemoryKiB, c.Threads, hashBytes)
}

// matches hashes the password alike and compares in constant time.
func (h storedHash) matches(password string) bool {
	return subtle.ConstantTimeCompare(h.cost.sum(password, h.salt), h.sum) == 1
}

// String is the form that is stored, the PHC string format: $argon2id$v=19$m=19456,t=2,p=1$salt$hash.
func (h storedHash) String() string {
	encode := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s",
		argon2.Version, h.cost.MemoryKiB, h.cost.Passes, h.cost.Threads, encode(h.salt), encode(h.sum))
}

// parseHash reads the stored form.
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

// hasher runs hashes in as many slots as there are cores, with a short queue before them: a flood of sign-ins takes
// neither the machine's memory nor its time.
type hasher struct {
	cost  HashCost
	decoy storedHash    // what is hashed for a user who does not exist
	queue chan struct{} // places: in a slot or waiting for one
	slots chan struct{}
	made  atomic.Int64
}

// queuePerSlot is how many callers may wait for each slot: at 22 ms a hash the last one waits three quarters of a second.
const queuePerSlot = 32

// retryHashing is what a caller is told to wait when the queue is full.
const retryHashing = time.Second

func newHasher(cost HashCost, slots int) *hasher {
	// The decoy's sum is no hash of anything: what it costs is the comparison with it.
	decoy := storedHash{cost: cost, salt: make([]byte, saltBytes), sum: make([]byte, hashBytes)}
	rand.Read(decoy.salt)
	rand.Read(decoy.sum)
	return &hasher{
		cost:  cost,
		decoy: decoy,
		queue: make(chan struct{}, slots*(1+queuePerSlot)),
		slots: make(chan struct{}, slots),
	}
}

// enter takes a place in the queue, or says that the service is busy. Who has a place gets a slot. Call the function it
// gives when done.
func (h *hasher) enter() (leave func(), err error) {
	select {
	case h.queue <- struct{}{}:
		return func() { <-h.queue }, nil
	default:
		return nil, apierr.Unavailable.RetryAfter(retryHashing)
	}
}

// hash makes a new hash of a password at the cost of today. The caller holds a place in the queue.
func (h *hasher) hash(password string) storedHash {
	h.slots <- struct{}{}
	defer func() { <-h.slots }()
	h.made.Add(1)
	return newHash(h.cost, password)
}

// matches compares a password with a stored hash. The caller holds a place in the queue.
func (h *hasher) matches(stored storedHash, password string) bool {
	h.slots <- struct{}{}
	defer func() { <-h.slots }()
	h.made.Add(1)
	return stored.matches(password)
}

// Hashes is how many passwords have been hashed since the start.
func (s *Service) Hashes() int64 { return s.hasher.made.Load() }

// HashPassword hashes a new password for [Service.SetPassword]. It takes some 20 ms and is not for use in a transaction. It
// returns apierr.Unavailable when too many wait.
func (s *Service) HashPassword(_ context.Context, password string) (string, error) {
	if isTooLong(password) {
		return "", apierr.Invalid("password", "invalid.max_length", apierr.Args{"Max": maxPasswordLength})
	}
	leave, err := s.hasher.enter()
	if err != nil {
		return "", err
	}
	defer leave()
	return s.hasher.hash(password).String(), nil
}
