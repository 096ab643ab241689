package audittrail

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"kontor/store/engine"
	"kontor/store/query"
	"kontor/store/sealing"
)

// head is the newest entry of a chain.
type head struct {
	seq  int64
	hash [sha256.Size]byte
}

// Ledger appends entries to the trail and signs its head. It implements engine.Ledger.
type Ledger struct {
	keys     *sealing.Keys
	follower follower

	now, saved state
}

// state is what the ledger remembers of the table. It stays correct until a transaction is undone, because only the
// ledger writes to the table.
type state struct {
	known  bool
	head   head
	text   string // head.hash in hexadecimal; empty: not encoded yet
	signed int64  // sequence number of the head whose signature is stored
}

// hashText returns the hash of the head in hexadecimal.
func (s *state) hashText() string {
	if s.text == "" {
		s.text = hex.EncodeToString(s.head.hash[:])
	}
	return s.text
}

// Save remembers the state before a job.
func (l *Ledger) Save() { l.saved = l.now }

// Restore returns to the state of the last Save.
func (l *Ledger) Restore() { l.now = l.saved }

// Forget makes the ledger read the table again before it appends.
func (l *Ledger) Forget() { l.now.known = false }

// End returns the newest entry. known is false when the ledger has not read the table.
func (l *Ledger) End() (engine.Anchor, bool) {
	return engine.Anchor{Seq: l.now.head.seq, Hash: l.now.head.hash}, l.now.known
}

const insertEntry = `
	INSERT INTO audit_entries
		(seq, form, at, actor, action, rec_type, rec_id, before_hash, after_hash, kind, session_id, network, request_id, detail,
		prev_hash, hash)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)`

// Append writes entries to the chain. origin is that of the entries that have none of their own.
func (l *Ledger) Append(ctx context.Context, tx engine.Source, entries []Pending, origin func() Origin) error {
	if len(entries) == 0 {
		return nil
	}
	if err := l.load(ctx, tx); err != nil {
		return err
	}
	fromContext := origin()
	for i := range entries {
		e := &entries[i]
		if e.fromContext {
			e.origin = fromContext
		}
		var kind *string // NULL for a change
		if e.kind != "" {
			kind = &e.kind
		}
		last := l.now.head
		next := head{seq: last.seq + 1}
		next.hash = chainHash(last.hash, next.seq, &e.row)
		text := hex.EncodeToString(next.hash[:])
		// Pointers to the texts: an interface with a text would be allocated.
		_, err := query.Exec(ctx, tx, insertEntry, []any{next.seq, e.form, &e.at, &e.actor, &e.action, &e.recType, &e.recID, &e.before, &e.after,
			kind, &e.origin.Session, &e.origin.Network, &e.origin.RequestID, &e.detail, l.now.hashText(), text})
		if err != nil {
			return err
		}
		if e.values != nil || e.forget {
			if err := writeValues(ctx, tx, next.seq, e); err != nil {
				return err
			}
		}
		l.now.head, l.now.text = next, text
	}
	return nil
}

// EndStatement returns the statement that reads the newest entry.
func (l *Ledger) EndStatement() string { return selectHead }

// selectHead also reads the check value of the master key, in one round trip to a database on another machine.
const selectHead = `
	SELECT seq, hash, COALESCE((SELECT value FROM meta WHERE name = 'key_check'), '')
	FROM audit_entries ORDER BY seq DESC LIMIT 1`

// load reads the newest entry, unless it is known. It returns sealing.ErrWrongKey if another process has replaced the master key.
func (l *Ledger) load(ctx context.Context, from engine.Source) error {
	if l.now.known {
		return nil
	}
	q := query.NewView(from, 0)
	newest, check, err := readHead(ctx, q)
	if err == nil {
		err = l.checkKeys(ctx, q, check)
	}
	if err != nil {
		return err
	}
	l.now = state{known: true, head: newest, signed: newest.seq}
	return nil
}

// readHead reads the newest entry, and the check value of the master key. Number and check value are zero for an empty trail.
func readHead(ctx context.Context, q query.Querier) (h head, check string, err error) {
	var hash string
	err = q.QueryRow(ctx, selectHead).Scan(&h.seq, &hash, &check)
	if errors.Is(err, engine.ErrNotFound) {
		return head{}, "", nil
	}
	if err == nil {
		h.hash, err = parseHash(hash)
	}
	return h, check, err
}

func parseHash(s string) (h [sha256.Size]byte, err error) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(h) {
		return h, fmt.Errorf("%w: audit hash %q", engine.ErrCorrupt, s)
	}
	copy(h[:], b)
	return h, nil
}

// Seal stores the signed head when the group has appended entries. Without the signature, a trail whose newest entries were
// removed would be an intact chain.
func (l *Ledger) Seal(tx engine.Source) error {
	if !l.now.known || l.now.signed == l.now.head.seq {
		return nil
	}
	if err := putMeta(tx, metaHead, signHead(l.keys, l.now.head)); err != nil {
		return err
	}
	l.now.signed = l.now.head.seq
	return nil
}

// SignAgain makes the next Seal sign the head although there is no new entry, for a new master key. Call it within a
// transaction.
func (l *Ledger) SignAgain(ctx context.Context, tx engine.Source) error {
	err := l.load(ctx, tx)
	l.now.signed = -1
	return err
}

// putMeta writes a row of the table meta.
func putMeta(tx engine.Source, name, value string) error {
	// A transaction is not interrupted, so the context does not matter.
	_, err := query.Exec(context.Background(), tx, engine.UpsertMeta, []any{name, value})
	return err
}
