package auth

import (
	"encoding/base64"
	"errors"
	"fmt"

	"golang.org/x/crypto/argon2"

	"kontor/modules/identity/auth/hashing"
)

// HashCost holds the parameters of an Argon2id hash.
type HashCost = hashing.Cost

// DefaultHashCost is the first recommendation of OWASP: 19 MiB, two passes, one thread. A hash took 22 ms where it was
// measured.
var DefaultHashCost = HashCost{MemoryKiB: 19 << 10, Passes: 2, Threads: 1}

const (
	saltBytes = 16
	hashBytes = hashing.SumBytes
	// maxStoredMemoryKiB limits the memory that a stored hash may require, so that a damaged row cannot exhaust the machine.
	maxStoredMemoryKiB = hashing.MaxMemoryKiB
	maxStoredPasses    = hashing.MaxPasses
)

// storedHash is the hash of a password with its parameters.
type storedHash struct {
	cost HashCost
	salt []byte
	sum  []byte
}

var errHashForm = errors.New("stored password hash has an unknown form")

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
