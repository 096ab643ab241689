package store

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
)

// AuditEntry tells of one change: who did what to which record. Before and After are the record as it
// was and as it is (nil where there is none), or its [Digest]; only a keyed digest of their JSON is
// kept, which proves a record without showing it.
type AuditEntry struct {
	Actor, Action, RecType, RecID string
	Before, After                 any
}

// auditRow is an entry as it is stored, apart from its place in the chain.
type auditRow struct {
	at                            Time
	actor, action, recType, recID string
	before, after                 string // digests
}

// Audit appends an entry to the audit trail, in the same commit as the change it tells of.
func (tx *Tx) Audit(e AuditEntry) {
	before, after := tx.db.Digest(e.Before), tx.db.Digest(e.After)
	if err := errors.Join(before.err, after.err); err != nil {
		_ = tx.note(fmt.Errorf("audit %s %s: %w", e.Action, e.RecType, err))
		return
	}
	tx.entries = append(tx.entries, auditRow{at: tx.now, actor: e.Actor, action: e.Action, recType: e.RecType, recID: e.RecID,
		before: before.text, after: after.text})
}

// Digest is a record as an audit entry keeps it: the hexadecimal HMAC-SHA-256 of its JSON, empty for
// none. The key keeps a reader of the trail from guessing a record.
type Digest struct {
	text string
	err  error // told by Audit
}

// Digest makes the digest of a record before the transaction, where the record is known by then: the
// others need not wait for it. Bytes are taken for JSON.
func (db *DB) Digest(record any) Digest {
	var data []byte
	switch r := record.(type) {
	case nil:
		return Digest{}
	case Digest:
		return r
	case []byte:
		data = r
	case json.RawMessage:
		data = r
	default:
		db.Heavy("digest")
		var err error
		if data, err = json.Marshal(record); err != nil {
			return Digest{err: err}
		}
	}
	return Digest{text: hex.EncodeToString(db.Keyed("audit record", data))}
}

// chainHash is the hash of an entry: SHA-256 over the hash of the entry before (32 bytes, zero for the
// first), the sequence number and the time in milliseconds (8 bytes each, big endian), and then actor,
// action, record type, record id and the two digests as they are stored, each led by its length in
// bytes (4 bytes, big endian).
func chainHash(prev [sha256.Size]byte, seq int64, e *auditRow) [sha256.Size]byte {
	b := make([]byte, 0, 512)
	b = append(b, prev[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(seq))
	b = binary.BigEndian.AppendUint64(b, uint64(e.at))
	for _, s := range [...]string{e.actor, e.action, e.recType, e.recID, e.before, e.after} {
		b = binary.BigEndian.AppendUint32(b, uint32(len(s)))
		b = append(b, s...)
	}
	return sha256.Sum256(b)
}

// head is the end of the chain.
type head struct {
	seq  int64
	hash [sha256.Size]byte
}

// trail is the writer's knowledge of the chain. It is read when a transaction needs it and stays
// right, for nobody else writes; after a rollback it is read again.
type trail struct {
	known  bool
	head   head
	signed int64 // sequence number of the head that is stored with its signature
}

const selectHead = `SELECT seq, hash FROM audit_entries ORDER BY seq DESC LIMIT 1`

func (t *trail) forget() { t.known = false }

// load reads the end of the chain.
func (t *trail) load(ctx context.Context, q Querier) error {
	if t.known {
		return nil
	}
	t.head = head{}
	var hash string
	err := q.QueryRow(ctx, selectHead).Scan(&t.head.seq, &hash)
	if errors.Is(err, ErrNotFound) {
		err = nil
	} else if err == nil {
		t.head.hash, err = parseHash(hash)
	}
	t.known, t.signed = err == nil, t.head.seq
	return err
}

func parseHash(s string) (h [sha256.Size]byte, err error) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(h) {
		return h, fmt.Errorf("%w: audit hash %q", ErrCorrupt, s)
	}
	copy(h[:], b)
	return h, nil
}

const insertAudit = `
	INSERT INTO audit_entries
		(seq, at, actor, action, rec_type, rec_id, before_hash, after_hash, prev_hash, hash)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`

// append writes the entries of a closure that succeeded.
func (t *trail) append(ctx context.Context, tx *Tx) error {
	if len(tx.entries) == 0 {
		return nil
	}
	if err := t.load(ctx, tx); err != nil {
		return err
	}
	for i := range tx.entries {
		e := &tx.entries[i]
		next := head{seq: t.head.seq + 1}
		next.hash = chainHash(t.head.hash, next.seq, e)
		_, err := tx.Exec(ctx, insertAudit, next.seq, e.at, e.actor, e.action, e.recType, e.recID,
			e.before, e.after, hex.EncodeToString(t.head.hash[:]), hex.EncodeToString(next.hash[:]))
		if err != nil {
			return err
		}
		t.head = next
	}
	return nil
}

// sign stores, once for each group, the end of the chain with a keyed signature: without it, cutting
// off the newest entries would leave a chain without a flaw.
func (t *trail) sign(w *writer) error {
	if !t.known || t.signed == t.head.seq {
		return nil
	}
	s, err := w.conn.Prepare(upsertMeta)
	if err != nil {
		return translate(err)
	}
	if _, _, err = start(s, []any{metaAuditHead, w.db.secrets.signHead(t.head)}); err != nil {
		return err
	}
	s.Reset()
	t.signed = t.head.seq
	return nil
}
