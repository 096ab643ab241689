package audittrail

import (
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"kontor/store/clock"
	"kontor/store/engine"
	"kontor/store/query"
	"kontor/store/sealing"
)

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
	head   engine.Anchor
	text   string // head.Hash in hexadecimal; empty: not encoded yet
	signed int64  // sequence number of the head whose signature is stored
}

// hashText returns the hash of the head in hexadecimal.
func (s *state) hashText() string {
	if s.text == "" {
		s.text = hex.EncodeToString(s.head.Hash[:])
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
	return l.now.head, l.now.known
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
		p := &entries[i]
		if p.fromContext {
			p.from(fromContext)
		}
		e := &p.entry
		var kind *string // NULL for a change
		if e.Kind != "" {
			kind = &e.Kind
		}
		e.Seq = l.now.head.Seq + 1
		next := engine.Anchor{Seq: e.Seq, Hash: chainHash(l.now.head.Hash, e)}
		text := hex.EncodeToString(next.Hash[:])
		// Pointers to the texts: an interface with a text would be allocated.
		_, err := query.Exec(ctx, tx, insertEntry, []any{e.Seq, e.Form, &e.At, &e.Actor, &e.Action, &e.RecType, &e.RecID, &e.BeforeHash, &e.AfterHash,
			kind, &e.SessionID, &e.Network, &e.RequestID, &e.Detail, l.now.hashText(), text})
		if err != nil {
			return err
		}
		if p.values != nil || p.forget {
			if err := writeValues(ctx, tx, p); err != nil {
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
	SELECT seq, hash, at, COALESCE((SELECT value FROM meta WHERE name = 'key_check'), '')
	FROM audit_entries ORDER BY seq DESC LIMIT 1`

// load reads the newest entry, unless it is known. It returns sealing.ErrWrongKey if another process has replaced the master key.
func (l *Ledger) load(ctx context.Context, from engine.Source) error {
	if l.now.known {
		return nil
	}
	q := query.NewView(from, 0)
	newest, _, check, err := readHead(ctx, q)
	if err == nil {
		err = l.checkKeys(ctx, q, check)
	}
	if err != nil {
		return err
	}
	l.now = state{known: true, head: newest, signed: newest.Seq}
	return nil
}

// readHead reads the newest entry with its time, and the check value of the master key. They are zero for an empty trail.
func readHead(ctx context.Context, q query.Querier) (h engine.Anchor, at clock.Time, check string, err error) {
	var hash string
	err = q.QueryRow(ctx, selectHead).Scan(&h.Seq, &hash, &at, &check)
	if errors.Is(err, engine.ErrNotFound) {
		return h, 0, "", nil
	}
	if err == nil {
		h.Hash, err = parseHash(hash)
	}
	return h, at, check, err
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
	if !l.now.known || l.now.signed == l.now.head.Seq {
		return nil
	}
	if err := putMeta(tx, metaHead, signHead(l.keys, l.now.head)); err != nil {
		return err
	}
	l.now.signed = l.now.head.Seq
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

// Several processes may use a database, and one of them replaces its master key. The others must not sign the head of the trail
// with the former one, nor seal values with it.

// follower compares the keys of this process with those of the database.
type follower struct {
	mu       sync.Mutex // held while the present keys change
	followed string     // the wrapped keyring that Follow has found last
	expected atomic.Pointer[string]
}

// Expect says that a transaction of this process replaces the master key, with a wrapped keyring; an empty text ends it.
func (l *Ledger) Expect(wrapped string) { l.follower.expected.Store(&wrapped) }

// Adopt runs a function that changes the present keys.
func (l *Ledger) Adopt(change func() error) error {
	l.follower.mu.Lock()
	defer l.follower.mu.Unlock()
	l.follower.followed = ""
	return change()
}

const selectKeys = `SELECT name, value FROM meta WHERE name IN ('key_check', 'keyring')`

// Follow makes the master key and the keyring of the database the present ones. It returns sealing.ErrWrongKey if the master key was
// replaced by one that this process was not started with.
func (l *Ledger) Follow(ctx context.Context, q query.Querier) error {
	f := &l.follower
	f.mu.Lock()
	defer f.mu.Unlock()
	check, wrapped, err := readKeys(ctx, q)
	if err != nil || check == "" {
		return err
	}
	if isCheckOf(l.keys, check) {
		if wrapped == "" || wrapped == f.followed {
			return nil
		}
		if err := l.keys.Load(wrapped); err != nil {
			return fmt.Errorf("%w: %w", engine.ErrCorrupt, err)
		}
		f.followed = wrapped
		return nil
	}
	for candidate := range l.keys.Candidates() {
		next, err := l.keys.Candidate(candidate)
		if err != nil {
			return err
		}
		if !isCheckOf(next, check) {
			continue
		}
		if err := next.Load(wrapped); err != nil {
			return fmt.Errorf("%w: %w", engine.ErrCorrupt, err)
		}
		l.keys.Become(next)
		f.followed = wrapped
		return nil
	}
	return explainWrongKey(ctx, q, l.keys, "the database")
}

// readKeys returns the check value of the master key and the wrapped keyring, or empty texts.
func readKeys(ctx context.Context, q query.Querier) (check, wrapped string, err error) {
	err = query.Each(ctx, q, func(row query.Scanner) error {
		var name, value string
		err := row.Scan(&name, &value)
		if name == metaKeyring {
			wrapped = value
		} else {
			check = value
		}
		return err
	}, selectKeys)
	return check, wrapped, err
}

// isCheckOf reports whether a check value is that of the master key.
func isCheckOf(keys *sealing.Keys, check string) bool {
	for _, of := range []func(*sealing.Keys) string{ringCheck, boundCheck, oldCheck} {
		if hmac.Equal([]byte(check), []byte(of(keys))) {
			return true
		}
	}
	return false
}

// checkKeys returns nil if the database still has the master key of this process, or one that it can follow. An empty check value is
// that of a new database.
func (l *Ledger) checkKeys(ctx context.Context, q query.Querier, check string) error {
	if check == "" || isCheckOf(l.keys, check) {
		return nil
	}
	if expected := l.follower.expected.Load(); expected != nil && *expected != "" {
		if _, wrapped, err := readKeys(ctx, q); err != nil || wrapped == *expected {
			return err
		}
	}
	return l.Follow(ctx, q)
}

// PresentKeyring returns the keyring that the database has. It returns sealing.ErrWrongKey if the master key was replaced.
func (l *Ledger) PresentKeyring(ctx context.Context, q query.Querier) (sealing.Keyring, error) {
	check, wrapped, err := readKeys(ctx, q)
	if err != nil {
		return sealing.Keyring{}, err
	}
	if !isCheckOf(l.keys, check) {
		return sealing.Keyring{}, explainWrongKey(ctx, q, l.keys, "the database")
	}
	return l.keys.Unwrap(wrapped)
}

// Renew makes the keyring of the database that of keys. It fails if another process has replaced their master key.
func Renew(ctx context.Context, q query.Querier, keys *sealing.Keys) error {
	check, wrapped, err := readKeys(ctx, q)
	if err != nil {
		return err
	}
	if !isCheckOf(keys, check) {
		return errReplaced
	}
	if wrapped == "" {
		return nil
	}
	return keys.Load(wrapped)
}

// errReplaced says that another process has replaced the master key.
var errReplaced = errors.New("another process has replaced the secret key in the meantime")

// ActionRotated is the action of the entry about a rotation of the master key. Its detail is an [ExportRotation].
const ActionRotated = "keys.rotated"

// ExportRotation says that exports are signed with another key from now on. The former key has signed the statement, so that
// an export that spans a rotation can be verified with the key that was known before.
type ExportRotation struct {
	Generation int    `json:"generation"`
	FormerKey  string `json:"former_export_key"`
	Key        string `json:"export_key"` // both Ed25519, base64
	Signature  string `json:"signature"`
}

// signed returns what the signature covers: these four lines, each with a line feed.
func (r ExportRotation) signed() []byte {
	return fmt.Appendf(nil, "kontor audit export key 1\n%d\n%s\n%s\n", r.Generation, r.FormerKey, r.Key)
}

// RotateExportKey returns the statement about the key of the next exports.
func RotateExportKey(present, next *sealing.Keys) ExportRotation {
	r := ExportRotation{Generation: next.Generation(), FormerKey: PublicExportKey(present), Key: PublicExportKey(next)}
	r.Signature = base64.StdEncoding.EncodeToString(ed25519.Sign(exportKey(present), r.signed()))
	return r
}

// parseRotation reads the detail of an entry about a rotation, and verifies its signature.
func parseRotation(detail string) (r ExportRotation, err error) {
	if err := json.Unmarshal([]byte(detail), &r); err != nil {
		return r, errors.New("the entry about a rotation of the keys is malformed")
	}
	former, err := base64.StdEncoding.DecodeString(r.FormerKey)
	if err != nil || len(former) != ed25519.PublicKeySize {
		return r, errors.New("the former public key is not 32 bytes in base64")
	}
	signature, err := base64.StdEncoding.DecodeString(r.Signature)
	if err != nil || !ed25519.Verify(former, r.signed(), signature) {
		return r, errors.New("the signature of the new public key is wrong")
	}
	return r, nil
}
