package store

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"sync"

	"github.com/go-json-experiment/json"
)

// Record is a record as the audit trail knows it.
type Record struct {
	// Answer is what the API answers for it, with fixed values in place of members that depend on the caller or the time. An
	// [*Answer] is not encoded again.
	Answer any
	// Stored is what else the database keeps of it and the API does not show; nil for nothing.
	Stored any
}

// As returns the record with an answer that is encoded already, so that it is encoded once.
func (r Record) As(answer *Answer) Record {
	r.Answer = answer
	return r
}

// Digest is what an audit entry keeps of a [Record]: 16 bytes over the JSON of its answer and 16 bytes over the JSON of the
// rest, each the beginning of an HMAC-SHA-256 under a key of its own, in hexadecimal. It is empty for no record. Whoever has
// the key and the JSON that the API answered can compare the first half without the database. The key keeps a reader of the
// trail from guessing a record.
type Digest struct {
	text string
	err  error // reported by Audit
}

// digestHalf is the length of each half of a digest, in bytes.
const digestHalf = 16

// Digest makes the digest of a record before the transaction, where the record is known by then: the others need not wait
// for it. Anything but a Record is taken for an answer without a rest.
func (db *DB) Digest(record any) Digest {
	if _, made := record.(Digest); record != nil && !made {
		db.Heavy("digest")
	}
	return db.secrets.digest(record)
}

func (s *secrets) digest(record any) Digest {
	switch r := record.(type) {
	case nil:
		return Digest{}
	case Digest:
		return r
	case Record:
		return s.digestRecord(r)
	}
	return s.digestRecord(Record{Answer: record})
}

func (s *secrets) digestRecord(r Record) Digest {
	answer, err := encodeBody(r.Answer)
	if err != nil {
		return Digest{err: fmt.Errorf("answer: %w", err)}
	}
	var rest []byte
	if r.Stored != nil {
		if rest, err = json.Marshal(r.Stored, json.Deterministic(true)); err != nil {
			return Digest{err: fmt.Errorf("stored: %w", err)}
		}
	}
	var sum [2 * sha256.Size]byte
	half := s.answers.sum(sum[:0], answer)[:digestHalf]
	both := s.rests.sum(half, rest)[:2*digestHalf]
	return Digest{text: hex.EncodeToString(both)}
}

// macs computes many HMAC-SHA-256 under one key, without setting the key up for each.
type macs struct{ free sync.Pool }

func (m *macs) use(key []byte) {
	m.free.New = func() any { return hmac.New(sha256.New, key) }
}

func (m *macs) sum(to, data []byte) []byte {
	h := m.free.Get().(hash.Hash)
	defer m.free.Put(h)
	h.Reset()
	h.Write(data)
	return h.Sum(to)
}
