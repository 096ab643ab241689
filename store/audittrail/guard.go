package audittrail

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"kontor/store/clock"
	"kontor/store/engine"
	"kontor/store/query"
	"kontor/store/sealing"
)

// ErrTampered means that the database was changed without the program.
var ErrTampered = errors.New("tampered with")

// Guard verifies a database at its start, and keeps its trail. It implements engine.Guard.
type Guard struct {
	Ledger
	path   string // of the database, for messages
	state  keyState
	lastAt clock.Time
}

// NewGuard returns the guard of the database at a path.
func NewGuard(keys *sealing.Keys, path string) *Guard {
	return &Guard{Ledger: Ledger{keys: keys}, path: path}
}

// Keyed returns a keyed digest for the engine's own purposes.
func (g *Guard) Keyed(purpose string, data []byte) []byte { return g.keys.Sign(purpose, data) }

// FormerKeyed returns the keyed digest under the master key before, while it is being replaced.
func (g *Guard) FormerKeyed(purpose string, data []byte) []byte {
	return g.keys.SignedBefore(purpose, data)
}

// Recognise finds the master key that the database was made with, among those that may be. It returns sealing.ErrWrongKey.
func (g *Guard) Recognise(ctx context.Context, s engine.Source) (known bool, err error) {
	g.state, err = recognise(ctx, query.NewView(s, 0), g.keys, g.path)
	return g.state != keyUnset, err
}

// Tampered returns one line with the reason why the start is rejected, and the next step.
func (g *Guard) Tampered(cause error) error {
	return fmt.Errorf("%s was %w and was left as it is: %w; keep the file as evidence, run \"kontor check\", and restore a backup", g.path, ErrTampered, cause)
}

// Settle verifies the head of a database that must have one. It adds a head to a new database, and to one of an earlier
// version with an empty trail. It rejects every other database without a head, because continuing would sign the rest of
// the trail.
func (g *Guard) Settle(ctx context.Context, m engine.Maintenance) error {
	q := query.NewView(m, 0)
	if g.state == keyUnset {
		blank, err := isBlank(ctx, m)
		if err != nil {
			return err
		}
		if !blank {
			return g.Tampered(&Break{Reason: "the check value of the secret key is missing"})
		}
	} else if err := verifyHead(ctx, q, g.keys); err != nil {
		if _, broken := errors.AsType[*Break](err); broken {
			return g.Tampered(err)
		}
		return err
	}
	if g.state == keyBound || g.state == keyRing {
		return nil
	}
	return m.Transact(func() error {
		newest, _, _, err := readHead(ctx, q)
		if err == nil {
			err = putMeta(m, metaHead, signHead(g.keys, newest))
		}
		if err == nil {
			err = putMeta(m, metaKeyCheck, boundCheck(g.keys))
		}
		return err
	})
}

// VerifyAll verifies the check value of the key and the whole trail.
func (g *Guard) VerifyAll(ctx context.Context, s engine.Source) error {
	q := query.NewView(s, 0)
	if _, err := recognise(ctx, q, g.keys, g.path); err != nil {
		return err
	}
	_, err := Verify(ctx, q, g.keys)
	return err
}

// LastEntryAt returns the time of the newest entry that the last Anchor found.
func (g *Guard) LastEntryAt() clock.Time { return g.lastAt }

// Anchor returns the newest entry and its time.
func (g *Guard) Anchor(ctx context.Context, s engine.Source) (a engine.Anchor, at clock.Time, err error) {
	a, at, _, err = readHead(ctx, query.NewView(s, 0))
	g.lastAt = at
	return a, at, err
}

// CheckAnchor returns a *Break when the trail lacks an entry that the engine has recorded. That is no loss when no commit
// is missing: the trail was changed.
func (g *Guard) CheckAnchor(ctx context.Context, s engine.Source, want engine.Anchor) error {
	hash, err := HashOf(ctx, s, want.Seq)
	if err != nil && !errors.Is(err, engine.ErrNotFound) {
		return err
	}
	if err == nil && hash == hex.EncodeToString(want.Hash[:]) {
		return nil
	}
	return &Break{Seq: want.Seq, Reason: "it is missing, or not the one that the mark beside the database names"}
}

// HashOf returns the hash of an entry, in hexadecimal. It returns engine.ErrNotFound when there is no such entry.
func HashOf(ctx context.Context, s engine.Source, seq int64) (hash string, err error) {
	err = query.NewView(s, 0).QueryRow(ctx, selectHash, seq).Scan(&hash)
	return hash, err
}

// CheckKey compares the master key with a database that is being checked. It returns sealing.ErrWrongKey, or a *Break when
// the check value is missing although the database is not empty.
func CheckKey(ctx context.Context, m Tables, keys *sealing.Keys, path string) error {
	state, err := recognise(ctx, query.NewView(m, 0), keys, path)
	if err != nil || state != keyUnset {
		return err
	}
	blank, err := isBlank(ctx, m)
	if err == nil && !blank {
		err = &Break{Reason: "the check value of the secret key is missing"}
	}
	return err
}

// Tables is a source that lists its tables.
type Tables interface {
	engine.Source
	Tables(ctx context.Context) ([]string, error)
}

// isBlank reports whether a database has a schema and not a single row: its first start was interrupted.
func isBlank(ctx context.Context, t Tables) (bool, error) {
	names, err := t.Tables(ctx)
	if err != nil {
		return false, err
	}
	q := query.NewView(t, 0)
	for _, name := range names {
		var filled bool
		if err := q.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM "`+name+`")`).Scan(&filled); err != nil || filled {
			return false, err
		}
	}
	return true, nil
}

// AppendOnlyTables returns the tables whose rows no statement may update or delete.
func AppendOnlyTables() []string { return []string{"audit_entries"} }

// metaHead is the row of the table meta with the signed head.
const metaHead = "audit_head"

// signHead returns the text of a head and its keyed digest.
func signHead(keys *sealing.Keys, h engine.Anchor) string {
	text := headText(h)
	return fmt.Sprintf("%s %x", text, keys.Sign("audit head", []byte(text)))
}

// headText returns the signed part of a head.
func headText(h engine.Anchor) string { return fmt.Sprintf("%d %x", h.Seq, h.Hash) }

const (
	selectFirstSeq = `SELECT COALESCE(MIN(seq), 1) FROM audit_entries`
	selectHash     = `SELECT hash FROM audit_entries WHERE seq = $1`
)

// verifyHead compares the newest entry with its predecessor and with the signed head. It is fast enough for a start; "kontor
// check" verifies the whole trail.
func verifyHead(ctx context.Context, q query.Querier, keys *sealing.Keys) error {
	var first int64
	if err := q.QueryRow(ctx, selectFirstSeq).Scan(&first); err != nil {
		return err
	}
	if first != 1 {
		return &Break{Seq: 1, Reason: "it is missing"}
	}
	newest, _, _, err := readHead(ctx, q)
	if err != nil {
		return err
	}
	if newest.Seq > 0 {
		before, err := readPredecessor(ctx, q, newest.Seq-1)
		if err != nil {
			return err
		}
		if _, err := verifyAfter(ctx, q, &before, 1); err != nil {
			return err
		}
	}
	return verifyEnd(ctx, q, keys, newest)
}

// readPredecessor reads the hash of an entry; the zero head precedes the first.
func readPredecessor(ctx context.Context, q query.Querier, seq int64) (engine.Anchor, error) {
	if seq == 0 {
		return engine.Anchor{}, nil
	}
	var hash string
	err := q.QueryRow(ctx, selectHash, seq).Scan(&hash)
	if errors.Is(err, engine.ErrNotFound) {
		return engine.Anchor{}, &Break{Seq: seq, Reason: "it is missing"}
	}
	if err != nil {
		return engine.Anchor{}, err
	}
	h := engine.Anchor{Seq: seq}
	h.Hash, err = parseHash(hash)
	return h, err
}

// verifyEnd compares the end of the chain with the signed head. Without keys it compares the text of the head and not its
// signature.
func verifyEnd(ctx context.Context, q query.Querier, keys *sealing.Keys, last engine.Anchor) error {
	signed, known, err := query.Meta(ctx, q, metaHead)
	if err != nil {
		return err
	}
	if !known {
		return missingHead(ctx, q, last)
	}
	if isSigned(keys, last, signed) {
		return nil
	}
	var end engine.Anchor
	var hash, signature string
	if _, err := fmt.Sscanf(signed, "%d %s %s", &end.Seq, &hash, &signature); err == nil && len(hash) == 2*sha256.Size && end.Seq > last.Seq {
		return &Break{Seq: last.Seq + 1, Reason: fmt.Sprintf("it is missing; the trail was signed up to entry %d", end.Seq)}
	}
	return &Break{Seq: last.Seq, Reason: "it is not the newest one that was signed"}
}

// isSigned reports whether a text is the signed head of a trail that ends with an entry.
func isSigned(keys *sealing.Keys, last engine.Anchor, signed string) bool {
	text := headText(last)
	digest, ok := strings.CutPrefix(signed, text+" ")
	if !ok || keys == nil {
		return ok
	}
	raw, err := hex.DecodeString(digest)
	return err == nil && keys.Verify("audit head", []byte(text), raw)
}

// missingHead returns nil only for an empty trail of an earlier version: such databases had no head.
func missingHead(ctx context.Context, q query.Querier, last engine.Anchor) error {
	check, known, err := query.Meta(ctx, q, metaKeyCheck)
	if err != nil || known && last.Seq == 0 && !strings.HasPrefix(check, boundPrefix) && !strings.HasPrefix(check, ringPrefix) {
		return err
	}
	return &Break{Seq: last.Seq, Reason: "its signed head is missing"}
}

// The check value of the key and the signed head of the trail belong together: a database that has the present form of the
// one has the other, from its first start on, even when its trail is empty. So erasing the trail together with its head
// leaves a trace that cannot be removed without the key. In the same way, a check value with ringPrefix promises a keyring.

// keyState is what a database says about its master key.
type keyState int

const (
	keyUnset keyState = iota // no check value: an interrupted first start, or a value that was erased
	keyOld                   // a check value from before the head was bound to it
	keyBound                 // a check value that promises a signed head
	keyRing                  // a check value that promises a signed head and a keyring
)

// The rows of the table meta about the master key.
const (
	metaKeyCheck   = "key_check"
	metaKeyring    = "keyring"
	metaFormerKeys = "former_keys" // check values of replaced master keys, for the message to users of one
)

const (
	boundPrefix = "2." // leads the check value of a database that has a signed head
	ringPrefix  = "3." // and of one that also has a keyring
)

const checkPurpose = "key check"

// boundCheck returns the check value that recognises the master key and promises a signed head.
func boundCheck(keys *sealing.Keys) string {
	return fmt.Sprintf("%s%x", boundPrefix, keys.Sign(checkPurpose, []byte("kontor, with a signed head")))
}

// ringCheck returns the check value that also promises a keyring.
func ringCheck(keys *sealing.Keys) string {
	return fmt.Sprintf("%s%x", ringPrefix, keys.Sign(checkPurpose, []byte("kontor, with a keyring")))
}

// oldCheck returns the check value of databases from before boundCheck.
func oldCheck(keys *sealing.Keys) string {
	return hex.EncodeToString(keys.Sign(checkPurpose, []byte("kontor")))
}

// KeyCheckValue returns the check value of the master key of a database, or "" without one. It differs after a rotation.
func KeyCheckValue(ctx context.Context, q query.Querier) string {
	value, _, _ := query.Meta(ctx, q, metaKeyCheck) // a database that cannot be read has none
	return value
}

// recognise makes that candidate the master key which the database was made with, and opens its keyring.
func recognise(ctx context.Context, q query.Querier, keys *sealing.Keys, path string) (keyState, error) {
	check, known, err := query.Meta(ctx, q, metaKeyCheck)
	if err != nil || !known {
		return keyUnset, err
	}
	for candidate := range keys.Candidates() {
		if err := keys.Choose(candidate); err != nil {
			return keyUnset, err
		}
		switch {
		case hmac.Equal([]byte(check), []byte(ringCheck(keys))):
			return keyRing, loadKeyring(ctx, q, keys)
		case hmac.Equal([]byte(check), []byte(boundCheck(keys))):
			return keyBound, nil
		case hmac.Equal([]byte(check), []byte(oldCheck(keys))):
			return keyOld, nil
		}
	}
	if err := keys.Choose(0); err != nil {
		return keyUnset, err
	}
	return keyUnset, explainWrongKey(ctx, q, keys, path)
}

func loadKeyring(ctx context.Context, q query.Querier, keys *sealing.Keys) error {
	wrapped, known, err := query.Meta(ctx, q, metaKeyring)
	if known {
		err = keys.Load(wrapped)
	} else if err == nil {
		err = errors.New("its keyring is missing")
	}
	if err != nil {
		return fmt.Errorf("%w: %w", engine.ErrCorrupt, err)
	}
	return nil
}

// formerKey is a master key that was replaced.
type formerKey struct {
	Checks []string   `json:"checks"` // what the check value of the database may have been
	At     clock.Time `json:"at"`
}

// explainWrongKey says whether the key was the right one before.
func explainWrongKey(ctx context.Context, q query.Querier, keys *sealing.Keys, path string) error {
	former, err := readFormerKeys(ctx, q)
	if err != nil {
		return err
	}
	for _, f := range former {
		for _, check := range f.Checks {
			if check == boundCheck(keys) || check == ringCheck(keys) {
				return fmt.Errorf("the secret key of %s was replaced at %s (kontor key rotate); use the new key: %w", path, f.At, sealing.ErrWrongKey)
			}
		}
	}
	return fmt.Errorf("%s was made with another secret key: %w", path, sealing.ErrWrongKey)
}

func readFormerKeys(ctx context.Context, q query.Querier) (former []formerKey, err error) {
	text, known, err := query.Meta(ctx, q, metaFormerKeys)
	if known {
		err = json.Unmarshal([]byte(text), &former)
	}
	return former, err
}

// StoreMasterKey writes the check value of a new master key and the keyring that it wraps, which it returns. The present keys must be
// those of the database: see [Renew].
func StoreMasterKey(ctx context.Context, tx query.Writer, present, next *sealing.Keys) (wrapped string, err error) {
	former, err := readFormerKeys(ctx, tx)
	if err != nil {
		return "", err
	}
	former = append(former, formerKey{Checks: []string{boundCheck(present), ringCheck(present)}, At: tx.Now()})
	text, err := json.Marshal(former)
	if err != nil {
		return "", err
	}
	if _, err := tx.Exec(ctx, engine.UpsertMeta, metaFormerKeys, string(text)); err != nil {
		return "", err
	}
	if _, err := tx.Exec(ctx, engine.UpsertMeta, metaKeyCheck, ringCheck(next)); err != nil {
		return "", err
	}
	return StoreKeyring(ctx, tx, next, *next.Keyring())
}

// StoreKeyring writes a keyring, wrapped by the master key, and returns it wrapped.
func StoreKeyring(ctx context.Context, tx query.Writer, keys *sealing.Keys, keyring sealing.Keyring) (wrapped string, err error) {
	if wrapped, err = keys.Wrap(keyring); err == nil {
		_, err = tx.Exec(ctx, engine.UpsertMeta, metaKeyring, wrapped)
	}
	return wrapped, err
}

// IsMasterKey reports whether a database says that a key is its master key.
func IsMasterKey(ctx context.Context, q query.Querier, key []byte) (bool, error) {
	var check string
	if err := q.QueryRow(ctx, engine.SelectMeta, metaKeyCheck).Scan(&check); err != nil {
		return false, err
	}
	keys, err := sealing.New(key)
	return err == nil && (check == ringCheck(keys) || check == boundCheck(keys)), err
}
