package store

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
)

// AuditEntry says who did what to which record, or what happened to the security of the service. Before and After are
// the record as it was and as it is, a [Record] or its [Digest]. Both are nil in an entry that says nothing about the
// state of a record; After alone is nil when the record is gone. A record is compared with the newest entry that says
// something about its state. Only keyed digests are stored: they prove a record without showing it.
type AuditEntry struct {
	Actor, Action, RecType, RecID string
	Before, After                 any

	// Kind is the kind of a security event, empty for a change. Detail is its JSON object, stored as it is.
	Kind, Detail string
	// Origin is where an event came from; nil takes that of the transaction's context.
	Origin *Origin
}

// Origin is where a change or an event came from.
type Origin struct {
	Session   string // id of the session of the user, if there is one
	Network   string // the client's address, shortened so that it names no household
	RequestID string
}

// SetOrigin registers how the origin of a change follows from the context of its transaction. Call it before the first
// write. Without it entries have no origin.
func (db *DB) SetOrigin(of func(ctx context.Context) Origin) { db.origin = of }

// originOf returns the origin of what a context does.
func (db *DB) originOf(ctx context.Context) Origin {
	if db.origin == nil {
		return Origin{}
	}
	return db.origin(ctx)
}

// The forms of an entry's hash.
const (
	formChange = 1 // up to migration 21
	formOrigin = 2 // with kind, origin and detail
)

// auditRow is an entry as it is stored, apart from its place in the chain.
type auditRow struct {
	form                          int
	at                            Time
	actor, action, recType, recID string
	before, after                 string // digests
	kind                          string
	origin                        Origin
	detail                        string

	fromContext bool // the origin is that of the transaction's context
}

// originTag leads what the hash of form 2 covers, so that no entry has the same bytes in both forms: those of form 1
// begin with a hash.
const originTag = "kontor audit entry 2\n"

// chainHash is the hash of an entry: SHA-256 over these bytes.
//
// Form 1: the hash of the entry before (32 bytes, zero for the first), the sequence number and the time in milliseconds
// (8 bytes each, big endian), and then actor, action, record type, record id and the two digests as they are stored, each
// led by its length in bytes (4 bytes, big endian).
//
// Form 2: the text "kontor audit entry 2" and a line feed, all of form 1, and then kind (empty for a change), session id,
// network, request id and detail, each led by its length in the same way.
//
// An unknown form has the hash zero, which no entry has.
func chainHash(prev [sha256.Size]byte, seq int64, e *auditRow) [sha256.Size]byte {
	b := make([]byte, 0, 512)
	switch e.form {
	case formChange:
	case formOrigin:
		b = append(b, originTag...)
	default:
		return [sha256.Size]byte{}
	}
	b = append(b, prev[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(seq))
	b = binary.BigEndian.AppendUint64(b, uint64(e.at))
	b = appendMeasured(b, e.actor, e.action, e.recType, e.recID, e.before, e.after)
	if e.form == formOrigin {
		b = appendMeasured(b, e.kind, e.origin.Session, e.origin.Network, e.origin.RequestID, e.detail)
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

// trailColumns are what scanTrail reads.
const trailColumns = `seq, form, at, actor, action, rec_type, rec_id, before_hash, after_hash,
	kind, session_id, network, request_id, detail, prev_hash, hash`

// selectTrailOfForm1 reads a trail whose table has no columns but those of form 1.
const selectTrailOfForm1 = `
	SELECT seq, 1, at, actor, action, rec_type, rec_id, before_hash, after_hash, NULL, '', '', '', '', prev_hash, hash
	FROM audit_entries
	ORDER BY seq`

// scanTrail reads an entry with its place in the chain.
func scanTrail(rows *Rows) (seq int64, e auditRow, prev, hash string, err error) {
	var kind *string
	err = rows.Scan(&seq, &e.form, &e.at, &e.actor, &e.action, &e.recType, &e.recID, &e.before, &e.after,
		&kind, &e.origin.Session, &e.origin.Network, &e.origin.RequestID, &e.detail, &prev, &hash)
	if kind != nil {
		e.kind = *kind
		if e.kind == "" {
			e.form = 0 // never written: a change has NULL, and both must not pass for each other
		}
	}
	if e.form == formChange && (e.kind != "" || e.origin != Origin{} || e.detail != "") {
		e.form = 0 // its hash would not cover what was put in
	}
	return seq, e, prev, hash, err
}
