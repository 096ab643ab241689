package auth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"log/slog"
	"time"

	"kontor/modules/identity/auth/hashing"
	"kontor/server/apierr"
)

// hasher hashes and compares passwords. It has a short queue before its slots, so that a flood of sign-ins exhausts neither memory
// nor CPU.
type hasher struct {
	cost  HashCost
	dummy storedHash    // compared for unknown users, so that timing reveals nothing
	queue chan struct{} // callers that hold a slot or wait for one
	sums  *hashing.Hasher
}

// queuePerSlot is the number of waiting callers for each slot: at 22 ms a hash the last one waits three quarters of a second.
const queuePerSlot = 32

// retryHashing is the Retry-After of callers that are rejected because the queue is full, or because no hash could be computed.
const retryHashing = time.Second

func newHasher(cost HashCost, slots int, inProcess bool, log *slog.Logger) *hasher {
	// The sum is random and matches no password. Only the time of the comparison matters.
	dummy := storedHash{cost: cost, salt: make([]byte, saltBytes), sum: make([]byte, hashBytes)}
	rand.Read(dummy.salt)
	rand.Read(dummy.sum)
	return &hasher{
		cost:  cost,
		dummy: dummy,
		queue: make(chan struct{}, slots*(1+queuePerSlot)),
		sums:  hashing.New(slots, inProcess, log),
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

// hash hashes a password with a fresh salt and the present parameters. The caller must hold a place in the queue. It returns
// apierr.Unavailable when no hash can be computed.
func (h *hasher) hash(ctx context.Context, password string) (storedHash, error) {
	salt := make([]byte, saltBytes)
	rand.Read(salt) // does not fail: it would end the program
	sum, err := h.sum(ctx, h.cost, password, salt)
	return storedHash{cost: h.cost, salt: salt, sum: sum}, err
}

// matches hashes a password with the parameters of a stored hash, and compares in constant time. The caller must hold a place in
// the queue. It returns apierr.Unavailable when no hash can be computed.
func (h *hasher) matches(ctx context.Context, stored storedHash, password string) (bool, error) {
	sum, err := h.sum(ctx, stored.cost, password, stored.salt)
	if err != nil {
		return false, err
	}
	return subtle.ConstantTimeCompare(sum, stored.sum) == 1, nil
}

func (h *hasher) sum(ctx context.Context, cost HashCost, password string, salt []byte) ([]byte, error) {
	sum, err := h.sums.Sum(ctx, cost, password, salt)
	if errors.Is(err, hashing.ErrUnavailable) {
		return nil, &apierr.Error{Kind: apierr.Unavailable, Cause: err, Retry: retryHashing}
	}
	return sum, err
}

// Hashes returns the number of passwords hashed since the start.
func (s *Service) Hashes() int64 { return s.hasher.sums.Made() }

// HashPassword hashes a new password for [Service.SetPassword]. It takes about 20 ms; callers must not call it from within a
// transaction. It returns apierr.Unavailable when the queue is full, or when no hash can be computed.
func (s *Service) HashPassword(ctx context.Context, password string) (string, error) {
	if isTooLong(password) {
		return "", apierr.Invalid("password", "invalid.max_length", apierr.Args{"Max": maxPasswordLength})
	}
	release, err := s.hasher.acquire()
	if err != nil {
		return "", err
	}
	defer release()
	hash, err := s.hasher.hash(ctx, password)
	if err != nil {
		return "", err
	}
	return hash.String(), nil
}
