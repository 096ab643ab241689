package store

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json"
)

// ExportedEntry is a line of an export: an audit entry with everything that its hash covers.
type ExportedEntry struct {
	Seq        int64  `json:"seq"`
	Form       int    `json:"form"`
	At         Time   `json:"at"`
	Actor      string `json:"actor"`
	Kind       string `json:"kind"` // empty for a change
	Action     string `json:"action"`
	RecType    string `json:"rec_type"`
	RecID      string `json:"rec_id"`
	SessionID  string `json:"session_id"`
	Network    string `json:"network"`
	RequestID  string `json:"request_id"`
	Detail     string `json:"detail"` // JSON as text, because the hash covers its bytes
	BeforeHash string `json:"before_hash"`
	AfterHash  string `json:"after_hash"`
	PrevHash   string `json:"prev_hash"`
	Hash       string `json:"hash"`
}

// ExportHead closes a part of an export: it names the entries before it, and is signed.
type ExportHead struct {
	From      int64  `json:"from"`      // number of the first entry, 0 where there is none
	To        int64  `json:"to"`        // and of the last
	PrevHash  string `json:"prev_hash"` // of the first entry
	Hash      string `json:"hash"`      // of the last
	At        Time   `json:"at"`
	PublicKey string `json:"public_key"` // Ed25519, base64
}

// headLine is the line of a head.
type headLine struct {
	Head      ExportHead `json:"head"`
	Signature string     `json:"signature"` // of [ExportHead.signed], base64
}

// signed is what the signature of a head covers: these seven lines, each with a line feed.
func (h ExportHead) signed() []byte {
	return fmt.Appendf(nil, "kontor audit export 1\n%d\n%d\n%s\n%s\n%s\n%s\n", h.From, h.To, h.PrevHash, h.Hash, h.At, h.PublicKey)
}

// exportKey is the key that signs exports. Its public half proves an export to people who must not have the master key.
func (s *secrets) exportKey() ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(s.derive("audit export", ed25519.SeedSize))
}

func encodeKey(key ed25519.PublicKey) string { return base64.StdEncoding.EncodeToString(key) }

// ExportKey returns the public key that verifies exports of this database, in base64.
func (db *DB) ExportKey() string { return db.secrets.publicExportKey() }

func (s *secrets) publicExportKey() string {
	return encodeKey(s.exportKey().Public().(ed25519.PublicKey))
}

// head signs a head and returns its line.
func (s *secrets) head(first, last ExportedEntry, at Time) ([]byte, error) {
	key := s.exportKey()
	h := ExportHead{From: first.Seq, To: last.Seq, PrevHash: first.PrevHash, Hash: last.Hash, At: at, PublicKey: s.publicExportKey()}
	return encodeLine(headLine{Head: h, Signature: base64.StdEncoding.EncodeToString(ed25519.Sign(key, h.signed()))})
}

// encodeLine encodes one line of an export.
func encodeLine(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	return append(b, '\n'), err
}

// ExportBatch is a part of the trail on its way out.
type ExportBatch struct {
	Entries []ExportedEntry
	Lines   [][]byte // one for each entry, each with its line feed
	Head    []byte   // the signed line behind them
}

// ExportAfter returns at most limit entries behind a sequence number, with a signed head. An empty batch has no head.
func (db *DB) ExportAfter(ctx context.Context, seq int64, limit int) (ExportBatch, error) {
	var b ExportBatch
	err := readExport(ctx, db, seq, limit, func(e ExportedEntry) error {
		l, err := encodeLine(e)
		b.Entries, b.Lines = append(b.Entries, e), append(b.Lines, l)
		return err
	})
	if err != nil || len(b.Entries) == 0 {
		return b, err
	}
	b.Head, err = db.secrets.head(b.Entries[0], b.Entries[len(b.Entries)-1], db.Now())
	return b, err
}

// readExport hands over entries behind a sequence number.
func readExport(ctx context.Context, q Querier, after int64, limit int, each func(ExportedEntry) error) error {
	rows, err := q.Query(ctx, selectTrailFrom, after, limit)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		seq, e, prev, hash, err := scanTrail(rows)
		if err != nil {
			return err
		}
		if err := each(e.exported(seq, prev, hash)); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (e *auditRow) exported(seq int64, prev, hash string) ExportedEntry {
	return ExportedEntry{Seq: seq, Form: e.form, At: e.at, Actor: e.actor, Kind: e.kind, Action: e.action, RecType: e.recType, RecID: e.recID,
		SessionID: e.origin.Session, Network: e.origin.Network, RequestID: e.origin.RequestID, Detail: e.detail,
		BeforeHash: e.before, AfterHash: e.after, PrevHash: prev, Hash: hash}
}

// row is the entry as its hash covers it.
func (x ExportedEntry) row() *auditRow {
	return &auditRow{form: x.Form, at: x.At, actor: x.Actor, kind: x.Kind, action: x.Action, recType: x.RecType, recID: x.RecID,
		origin: Origin{Session: x.SessionID, Network: x.Network, RequestID: x.RequestID}, detail: x.Detail, before: x.BeforeHash, after: x.AfterHash}
}

// ErrNoKey says that something needs the master key, which is not there.
var ErrNoKey = errors.New("the secret key is neither in the data directory nor in KONTOR_SECRET_KEY")

// ExportAudit writes the trail of a database from an entry on, with a signed head at the end. It works beside a process
// that uses the database and needs the master key.
func ExportAudit(ctx context.Context, o Options, from int64, w io.Writer) (entries int64, err error) {
	d := &directory{path: o.Dir}
	key, err := d.existingKey(o.SecretKey)
	if err != nil {
		return 0, err
	}
	if key == nil {
		return 0, ErrNoKey
	}
	path := d.file(databaseName)
	conn, _, err := openExisting(path)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	conn.SetContext(ctx)
	if err := conn.Run(beginRead); err != nil {
		return 0, explain(path, translate(err))
	}
	clock := o.Clock
	if clock == nil {
		clock = systemClock{}
	}
	return writeExport(ctx, &View{reader: &reader{conn: conn}}, key, from, TimeOf(clock.Now()), w)
}

// writeExport writes entries and their head.
func writeExport(ctx context.Context, q Querier, key *secrets, from int64, now Time, w io.Writer) (n int64, err error) {
	const everything = 1 << 62
	out := bufio.NewWriter(w)
	none := strings.Repeat("0", hex.EncodedLen(len(head{}.hash)))
	first, last := ExportedEntry{PrevHash: none}, ExportedEntry{Hash: none}
	err = readExport(ctx, q, max(from, 1)-1, everything, func(e ExportedEntry) error {
		if n == 0 {
			first = e
		}
		last = e
		n++
		l, err := encodeLine(e)
		if err == nil {
			_, err = out.Write(l)
		}
		return err
	})
	if err != nil {
		return n, err
	}
	l, err := key.head(first, last, now)
	if err == nil {
		_, err = out.Write(l)
	}
	return n, errors.Join(err, out.Flush())
}

// PublicExportKey returns the public key that verifies exports of the database in a directory. It needs the master key.
func PublicExportKey(o Options) (string, error) {
	key, err := (&directory{path: o.Dir}).existingKey(o.SecretKey)
	if err != nil {
		return "", err
	}
	if key == nil {
		return "", ErrNoKey
	}
	return key.publicExportKey(), nil
}
