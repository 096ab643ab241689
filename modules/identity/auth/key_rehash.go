package auth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"golang.org/x/crypto/argon2"

	"kontor/modules/identity/auth/hashing"
	"kontor/server/apierr"
	"kontor/store"
)

// After a rotation of the master key, the stored hash of an API key is under a former key until the API key is used: only then
// its text is known. The hash begins with the generation of its key; that of generation 0 has no such beginning.

// keyPurpose is the purpose of the hashes of API keys.
const keyPurpose = "api key"

// generationPrefix leads the hashes of a generation.
func generationPrefix(generation int) string {
	if generation == 0 {
		return ""
	}
	return strconv.Itoa(generation) + ":"
}

// olderKeyHashes returns the hashes of a key under former generations, the newest first.
func (s *Service) olderKeyHashes(key string) (hashes []string) {
	generation := s.db.KeyGeneration()
	for _, older := range s.db.KeyedOlder(keyPurpose, []byte(key)) {
		generation--
		hashes = append(hashes, generationPrefix(generation)+hex.EncodeToString(older))
	}
	return hashes
}

const updateKeyHash = `
	UPDATE api_keys SET key_hash = $3, version = version + 1
	WHERE id = $1 AND key_hash = $2`

const (
	// The parameters are the pattern of the newest hashes, and the present time.
	countOlderKeys = `
		SELECT COUNT(*) FROM api_keys
		WHERE key_hash NOT LIKE $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $2)`

	selectUnusedKeys = `
		SELECT id FROM api_keys
		WHERE key_hash NOT LIKE $1 AND revoked_at IS NULL AND COALESCE(last_used_at, created_at) < $2
		ORDER BY id`
)

// newestHashes returns the pattern of the newest hashes. Without a rotation every hash is one.
func (s *Service) newestHashes() string { return generationPrefix(s.db.KeyGeneration()) + "%" }

// OlderKeys returns how many valid API keys have not been used since the last rotation of the master key.
func (s *Service) OlderKeys(ctx context.Context) (n int64, err error) {
	err = s.db.QueryRow(ctx, countOlderKeys, s.newestHashes(), s.db.Now()).Scan(&n)
	return n, err
}

// RevokeUnusedKeys revokes the API keys that have not been used since the last rotation of the master key, nor since a time.
// It returns how many.
func (s *Service) RevokeUnusedKeys(ctx context.Context, since store.Time) (revoked int, err error) {
	if err := s.FlushKeyUse(ctx); err != nil {
		return 0, err
	}
	unused, err := store.All(ctx, s.db, store.Text, selectUnusedKeys, s.newestHashes(), since)
	if err != nil {
		return 0, err
	}
	for _, id := range unused {
		if err := s.RevokeKey(ctx, id); err != nil {
			return revoked, err
		}
		revoked++
	}
	return revoked, nil
}

// ForgetOlderHashes removes the former keys of hashes of API keys when no valid API key needs them. Call it about once an hour.
func (s *Service) ForgetOlderHashes(ctx context.Context) error {
	if len(s.db.KeyedOlder(keyPurpose, nil)) == 0 {
		return nil
	}
	n, err := s.OlderKeys(ctx)
	if err != nil || n > 0 {
		return err
	}
	return s.db.ForgetKeyed(ctx, keyPurpose)
}

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
