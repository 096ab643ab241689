package hashing

import (
	"encoding/binary"
	"errors"

	"golang.org/x/crypto/argon2"
)

// Cost holds the parameters of an Argon2id sum.
type Cost struct {
	MemoryKiB uint32
	Passes    uint32
	Threads   uint8
}

const (
	// SumBytes is the length of a sum.
	SumBytes = 32

	// MaxMemoryKiB is the greatest memory that a stored hash may require.
	MaxMemoryKiB = 1 << 20
	// MaxPasses is the greatest number of passes of a stored hash.
	MaxPasses = 64

	minSaltBytes = 8
	maxSaltBytes = 1 << 10
)

// sum computes a sum in this process.
func (c Cost) sum(password, salt []byte) []byte {
	return argon2.IDKey(password, salt, c.Passes, c.MemoryKiB, c.Threads, SumBytes)
}

// isSane reports whether a sum can be computed. A worker rejects other requests, so that a fault cannot exhaust the machine.
func (c Cost) isSane() bool {
	return c.MemoryKiB > 0 && c.MemoryKiB <= MaxMemoryKiB && c.Passes > 0 && c.Passes <= MaxPasses && c.Threads > 0
}

// costBytes is the length of a cost in a request.
const costBytes = 9

var errRequest = errors.New("invalid request for a sum")

// encodeRequest returns the request for a sum: the cost, and the salt. The password follows as the file of the request.
func encodeRequest(c Cost, salt []byte) []byte {
	request := binary.BigEndian.AppendUint32(nil, c.MemoryKiB)
	request = binary.BigEndian.AppendUint32(request, c.Passes)
	return append(append(request, c.Threads), salt...)
}

// decodeRequest parses a request.
func decodeRequest(request []byte) (c Cost, salt []byte, err error) {
	if len(request) < costBytes+minSaltBytes || len(request) > costBytes+maxSaltBytes {
		return Cost{}, nil, errRequest
	}
	c = Cost{MemoryKiB: binary.BigEndian.Uint32(request), Passes: binary.BigEndian.Uint32(request[4:]), Threads: request[8]}
	if !c.isSane() {
		return Cost{}, nil, errRequest
	}
	return c, request[costBytes:], nil
}
