package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
)

// Audit appends an entry to the audit trail, in the same commit as the change it tells of.
func (tx *Tx) Audit(e AuditEntry) {
	before, after := tx.db.Digest(e.Before), tx.db.Digest(e.After)
	if err := errors.Join(before.err, after.err); err != nil {
		_ = tx.note(fmt.Errorf("audit %s %s: %w", e.Action, e.RecType, err))
		return
	}
	row := auditRow{form: formOrigin, at: tx.now, actor: e.Actor, action: e.Action, recType: e.RecType, recID: e.RecID,
		before: before.text, after: after.text, kind: e.Kind, detail: e.Detail, fromContext: e.Origin == nil}
	if e.Origin != nil {
		row.origin = *e.Origin
	}
	tx.entries = append(tx.entries, row)
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
		(seq, form, at, actor, action, rec_type, rec_id, before_hash, after_hash, kind, session_id, network, request_id, detail,
		prev_hash, hash)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)`

// append writes the entries of a closure that succeeded.
func (t *trail) append(ctx context.Context, tx *Tx) error {
	if len(tx.entries) == 0 {
		return nil
	}
	if err := t.load(ctx, tx); err != nil {
		return err
	}
	origin := tx.db.originOf(ctx)
	for i := range tx.entries {
		e := &tx.entries[i]
		if e.fromContext {
			e.origin = origin
		}
		var kind any // NULL for a change
		if e.kind != "" {
			kind = e.kind
		}
		next := head{seq: t.head.seq + 1}
		next.hash = chainHash(t.head.hash, next.seq, e)
		_, err := tx.Exec(ctx, insertAudit, next.seq, e.form, e.at, e.actor, e.action, e.recType, e.recID, e.before, e.after,
			kind, e.origin.Session, e.origin.Network, e.origin.RequestID, e.detail, hex.EncodeToString(t.head.hash[:]), hex.EncodeToString(next.hash[:]))
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
