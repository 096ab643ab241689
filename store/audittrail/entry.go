// Package audittrail keeps an append-only chain of entries about changes and security events.
//
// Each entry holds keyed digests of a record before and after the change, and the hash of the entry before it. The newest
// entry, the head, is signed once for each group of writes. So an entry that was changed, removed or inserted is noticed,
// and so is a trail that was cut. An attacker with both the files and the master key can forge a trail; earlier exports to
// another machine prove that.
package audittrail

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"sync"

	"github.com/go-json-experiment/json"

	"kontor/store/clock"
	"kontor/store/query"
	"kontor/store/sealing"
)

// Entry says who did what to which record, or what happened to the security of the service. Before and After are the
// record before and after the change, each a [Record] or its [Digest]. Both are nil in an entry that says nothing about the
// state of a record. After alone is nil when the record was deleted. A record is compared with the newest entry that says
// something about its state. Only keyed digests are stored: they prove a record without showing it.
type Entry struct {
	Actor, Action, RecType, RecID string
	Before, After                 any

	// Kind is the kind of a security event, empty for a change. Detail is its JSON object, stored as it is.
	Kind, Detail string
	// Origin is where an event came from; nil means the origin of the transaction's context.
	Origin *Origin
	// Changes are the changed fields of an entry that says nothing about the state of its record. Others have those that differ
	// between Before and After.
	Changes []FieldChange
}

// Origin is where a change or an event came from.
type Origin struct {
	Session   string // id of the session of the user, if there is one
	Network   string // the client's address, shortened so that it identifies no household
	RequestID string
}

// The forms of an entry's hash.
const (
	formUnknown = 0 // of an entry that this package did not write
	formChange  = 1 // up to migration 21
	formOrigin  = 2 // with kind, origin and detail
)

// Pending is an entry that waits for the end of its transaction.
type Pending struct {
	entry       ExportedEntry
	fromContext bool    // the origin is that of the transaction's context
	values      *Values // nil for none
	forget      bool    // the values of earlier changes of the record are deleted
}

// Keep adds changed fields; nil for none. The entry must be that of a change, without a detail.
func (p *Pending) Keep(v *Values) {
	if v != nil && p.entry.Detail == "" && p.entry.Kind == "" {
		p.values, p.entry.Detail = v, v.detail()
	}
}

// Forget makes the entry delete the changed fields of its record.
func (p *Pending) Forget() { p.forget = true }

// Deletes reports whether the entry shows a record before a change and none after it.
func (p *Pending) Deletes() bool { return p.entry.BeforeHash != "" && p.entry.AfterHash == "" }

// NewPending prepares an entry. It returns the error of a digest that could not be computed.
func NewPending(e Entry, before, after Digest, at clock.Time) (Pending, error) {
	for _, d := range []Digest{before, after} {
		if d.err != nil {
			return Pending{}, fmt.Errorf("audit %s %s: %w", e.Action, e.RecType, d.err)
		}
	}
	p := Pending{entry: ExportedEntry{Form: formOrigin, At: at, Actor: e.Actor, Action: e.Action, RecType: e.RecType, RecID: e.RecID,
		BeforeHash: before.text, AfterHash: after.text, Kind: e.Kind, Detail: e.Detail}, fromContext: e.Origin == nil}
	if e.Origin != nil {
		p.from(*e.Origin)
	}
	return p, nil
}

func (p *Pending) from(o Origin) {
	p.entry.SessionID, p.entry.Network, p.entry.RequestID = o.Session, o.Network, o.RequestID
}

// originTag leads the bytes of form 2. Those of form 1 begin with a hash, so that no entry has the same bytes in both forms.
const originTag = "kontor audit entry 2\n"

// chainHash returns the hash of an entry: SHA-256 over these bytes.
//
// Form 1 begins with the hash of the previous entry (32 bytes, zero for the first), the sequence number and the time in
// milliseconds (8 bytes each, big endian). Then follow actor, action, record type, record id and the two digests as they are
// stored. Each is led by its length in bytes (4 bytes, big endian).
//
// Form 2: the text "kontor audit entry 2" and a line feed, all of form 1, and then kind (empty for a change), session id,
// network, request id and detail, each led by its length in the same way.
//
// Form 1 has no kind, origin or detail: its hash does not cover them. The hash of an unknown form is zero, which no entry has, and so is
// that of an entry of form 1 with one of these members.
func chainHash(prev [sha256.Size]byte, e *ExportedEntry) [sha256.Size]byte {
	b := make([]byte, 0, 512)
	switch e.Form {
	case formChange:
		if e.Kind != "" || e.SessionID != "" || e.Network != "" || e.RequestID != "" || e.Detail != "" {
			return [sha256.Size]byte{}
		}
	case formOrigin:
		b = append(b, originTag...)
	default:
		return [sha256.Size]byte{}
	}
	b = append(b, prev[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(e.Seq))
	b = binary.BigEndian.AppendUint64(b, uint64(e.At))
	b = appendMeasured(b, e.Actor, e.Action, e.RecType, e.RecID, e.BeforeHash, e.AfterHash)
	if e.Form == formOrigin {
		b = appendMeasured(b, e.Kind, e.SessionID, e.Network, e.RequestID, e.Detail)
	}
	return sha256.Sum256(b)
}

// appendMeasured appends texts, each led by its length.
func appendMeasured(b []byte, texts ...string) []byte {
	for _, s := range texts {
		b = binary.BigEndian.AppendUint32(b, uint32(len(s)))
		b = append(b, s...)
	}
	return b
}

// columns are the columns that scanEntry reads.
const columns = `seq, form, at, actor, action, rec_type, rec_id, before_hash, after_hash,
	kind, session_id, network, request_id, detail, prev_hash, hash`

const selectEntries = `
	SELECT ` + columns + `
	FROM audit_entries
	ORDER BY seq`

// selectEntriesOfForm1 reads a trail from before migration 21, whose table lacks the later columns.
const selectEntriesOfForm1 = `
	SELECT seq, 1, at, actor, action, rec_type, rec_id, before_hash, after_hash, NULL, '', '', '', '', prev_hash, hash
	FROM audit_entries
	ORDER BY seq`

const selectEntriesAfter = `
	SELECT ` + columns + `
	FROM audit_entries
	WHERE seq > $1
	ORDER BY seq
	LIMIT $2`

// scanEntry reads an entry with its place in the chain.
func scanEntry(rows query.Scanner) (e ExportedEntry, err error) {
	var kind *string
	err = rows.Scan(&e.Seq, &e.Form, &e.At, &e.Actor, &e.Action, &e.RecType, &e.RecID, &e.BeforeHash, &e.AfterHash,
		&kind, &e.SessionID, &e.Network, &e.RequestID, &e.Detail, &e.PrevHash, &e.Hash)
	if kind != nil {
		e.Kind = *kind
		if e.Kind == "" {
			e.Form = formUnknown // never written: a change has NULL, and both have the same hash
		}
	}
	return e, err
}

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
type Digester struct{ answers, rests sealing.MACs }

// NewDigester returns a digester with the keys of a database. Digests stay under the keys of its first generation, because
// entries cannot be changed. The database must have been recognised before the first digest.
func NewDigester(keys *sealing.Keys) *Digester {
	d := &Digester{}
	d.answers.Key = sync.OnceValue(func() []byte { return keys.DeriveFirst("audit answer", sha256.Size) })
	d.rests.Key = sync.OnceValue(func() []byte { return keys.DeriveFirst("audit rest", sha256.Size) })
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
	half := d.answers.Sum(sum[:0], answer)[:digestHalf]
	both := d.rests.Sum(half, rest)[:2*digestHalf]
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
