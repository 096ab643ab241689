package audittrail

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"sync"

	"github.com/go-json-experiment/json"

	"kontor/store/sealing"
)

// Record is a record as the audit trail sees it.
type Record struct {
	// Answer is the record as the API answers it, with fixed values for members that depend on the caller or the time. A value
	// with a method EncodedRecord is not encoded again.
	Answer any
	// Stored is what the database stores of it and the API does not show; nil for nothing.
	Stored any
}

// As returns the record with an answer that is encoded already, so that it is encoded once.
func (r Record) As(answer interface{ EncodedRecord() ([]byte, error) }) Record {
	r.Answer = answer
	return r
}

// Digest is what an entry stores of a [Record]: 16 bytes over the JSON of its answer and 16 bytes over the JSON of the
// rest. Each is the beginning of an HMAC-SHA-256 under a key of its own, in hexadecimal. It is empty for no record. With the
// key and the JSON that the API answered, the first half can be compared without the database. Without the key, a reader
// of the trail cannot confirm a guess about a record.
type Digest struct {
	text   string
	err    error   // reported by NewPending
	answer []byte  // the JSON of the answer, for changed fields
	values *Values // the changed fields that lead to the record; nil: not prepared
}

// String returns the digest as an entry stores it; empty for no record.
func (d Digest) String() string { return d.text }

// Present reports whether there is a record.
func (d Digest) Present() bool { return d.text != "" }

// Values returns the changed fields that were prepared, or nil.
func (d Digest) Values() *Values { return d.values }

// digestHalf is the length of each half of a digest, in bytes.
const digestHalf = 16

// Digester computes digests. It may be used by any goroutine.
type Digester struct{ answers, rests macs }

// NewDigester returns a digester with the keys of a database. Digests stay under the keys of its first generation, because
// entries cannot be changed. The database must have been recognised before the first digest.
func NewDigester(keys *sealing.Keys) *Digester {
	d := &Digester{}
	d.answers.use(func() []byte { return keys.DeriveFirst("audit answer", sha256.Size) })
	d.rests.use(func() []byte { return keys.DeriveFirst("audit rest", sha256.Size) })
	return d
}

// Of returns the digest of a Record, of nil, or of any other value, which counts as an answer without a rest. It returns a
// Digest unchanged.
func (d *Digester) Of(record any) Digest {
	switch r := record.(type) {
	case nil:
		return Digest{}
	case Digest:
		return r
	case Record:
		return d.ofRecord(r)
	}
	return d.ofRecord(Record{Answer: record})
}

func (d *Digester) ofRecord(r Record) Digest {
	answer, err := EncodeAnswer(r.Answer)
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
	half := d.answers.sum(sum[:0], answer)[:digestHalf]
	both := d.rests.sum(half, rest)[:2*digestHalf]
	return Digest{text: hex.EncodeToString(both), answer: answer}
}

// EncodeAnswer returns the JSON of a body as the server writes it. It returns bytes unchanged, and nil for nil.
func EncodeAnswer(body any) ([]byte, error) {
	switch b := body.(type) {
	case nil:
		return nil, nil
	case []byte:
		return b, nil
	case interface{ EncodedRecord() ([]byte, error) }:
		return b.EncodedRecord()
	}
	return json.Marshal(body, json.Deterministic(true))
}

// macs computes HMAC-SHA-256 under one key. It keeps the prepared states, because setting up the key costs two hash blocks.
type macs struct{ free sync.Pool }

func (m *macs) use(key func() []byte) {
	key = sync.OnceValue(key)
	m.free.New = func() any { return hmac.New(sha256.New, key()) }
}

func (m *macs) sum(to, data []byte) []byte {
	h := m.free.Get().(hash.Hash)
	defer m.free.Put(h)
	h.Reset()
	h.Write(data)
	return h.Sum(to)
}
