package audittrail

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"kontor/store/clock"
	"kontor/store/query"
	"kontor/store/sealing"
)

// ExportedEntry is a line of an export: an entry with everything that its hash covers.
type ExportedEntry struct {
	Seq        int64      `json:"seq"`
	Form       int        `json:"form"`
	At         clock.Time `json:"at"`
	Actor      string     `json:"actor"`
	Kind       string     `json:"kind"` // empty for a change
	Action     string     `json:"action"`
	RecType    string     `json:"rec_type"`
	RecID      string     `json:"rec_id"`
	SessionID  string     `json:"session_id"`
	Network    string     `json:"network"`
	RequestID  string     `json:"request_id"`
	Detail     string     `json:"detail"` // JSON as text, because the hash covers its bytes
	BeforeHash string     `json:"before_hash"`
	AfterHash  string     `json:"after_hash"`
	PrevHash   string     `json:"prev_hash"`
	Hash       string     `json:"hash"`
}

// ExportHead ends a part of an export. It names the entries before it and is signed.
type ExportHead struct {
	From      int64      `json:"from"`      // number of the first entry, 0 where there is none
	To        int64      `json:"to"`        // and of the last
	PrevHash  string     `json:"prev_hash"` // of the first entry
	Hash      string     `json:"hash"`      // of the last
	At        clock.Time `json:"at"`
	PublicKey string     `json:"public_key"` // Ed25519, base64
}

// headLine is the line of a head.
type headLine struct {
	Head      ExportHead `json:"head"`
	Signature string     `json:"signature"` // of [ExportHead.signed], base64
}

// signed returns what the signature of a head covers: these seven lines, each with a line feed.
func (h ExportHead) signed() []byte {
	return fmt.Appendf(nil, "kontor audit export 1\n%d\n%d\n%s\n%s\n%s\n%s\n", h.From, h.To, h.PrevHash, h.Hash, h.At, h.PublicKey)
}

// exportKey returns the key that signs exports. Its public half proves an export to people who must not have the master key.
func exportKey(keys *sealing.Keys) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(keys.DeriveMaster("audit export", ed25519.SeedSize))
}

// PublicExportKey returns the public key that verifies exports, in base64.
func PublicExportKey(keys *sealing.Keys) string {
	return base64.StdEncoding.EncodeToString(exportKey(keys).Public().(ed25519.PublicKey))
}

// PublicExportKeys returns the present public key and those from before rotations of the master key, the newest first.
func PublicExportKeys(keys *sealing.Keys) []string {
	public := []string{PublicExportKey(keys)}
	if ring := keys.Keyring(); ring != nil {
		for _, former := range slices.Backward(ring.ExportKeys) {
			public = append(public, former.PublicKey)
		}
	}
	return public
}

// encodeHead signs a head and returns its line.
func encodeHead(keys *sealing.Keys, first, last ExportedEntry, at clock.Time) ([]byte, error) {
	h := ExportHead{From: first.Seq, To: last.Seq, PrevHash: first.PrevHash, Hash: last.Hash, At: at, PublicKey: PublicExportKey(keys)}
	return encodeLine(headLine{Head: h, Signature: base64.StdEncoding.EncodeToString(ed25519.Sign(exportKey(keys), h.signed()))})
}

// encodeLine encodes one line of an export.
func encodeLine(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	return append(b, '\n'), err
}

// ExportBatch is a part of the trail, encoded for an export.
type ExportBatch struct {
	Entries []ExportedEntry
	Lines   [][]byte // one for each entry, each with its line feed
	Head    []byte   // the signed line after them
}

// ExportAfter returns at most limit entries after a sequence number, with a signed head. An empty batch has no head.
func ExportAfter(ctx context.Context, q query.Querier, keys *sealing.Keys, seq int64, limit int) (ExportBatch, error) {
	var b ExportBatch
	err := eachExported(ctx, q, seq, limit, func(e ExportedEntry) error {
		l, err := encodeLine(e)
		b.Entries, b.Lines = append(b.Entries, e), append(b.Lines, l)
		return err
	})
	if err != nil || len(b.Entries) == 0 {
		return b, err
	}
	b.Head, err = encodeHead(keys, b.Entries[0], b.Entries[len(b.Entries)-1], q.Now())
	return b, err
}

// eachExported calls each with the entries after a sequence number.
func eachExported(ctx context.Context, q query.Querier, after int64, limit int, each func(ExportedEntry) error) error {
	rows, err := q.Query(ctx, selectEntriesAfter, after, limit)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		seq, e, prev, hash, err := scanEntry(rows)
		if err != nil {
			return err
		}
		if err := each(e.exported(seq, prev, hash)); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (e *row) exported(seq int64, prev, hash string) ExportedEntry {
	return ExportedEntry{Seq: seq, Form: e.form, At: e.at, Actor: e.actor, Kind: e.kind, Action: e.action, RecType: e.recType, RecID: e.recID,
		SessionID: e.origin.Session, Network: e.origin.Network, RequestID: e.origin.RequestID, Detail: e.detail,
		BeforeHash: e.before, AfterHash: e.after, PrevHash: prev, Hash: hash}
}

// row returns the entry as its hash covers it.
func (x ExportedEntry) row() *row {
	return &row{form: x.Form, at: x.At, actor: x.Actor, kind: x.Kind, action: x.Action, recType: x.RecType, recID: x.RecID,
		origin: Origin{Session: x.SessionID, Network: x.Network, RequestID: x.RequestID}, detail: x.Detail, before: x.BeforeHash, after: x.AfterHash}
}

// WriteExport writes the entries from a sequence number on, and a signed head. It returns how many entries it wrote.
func WriteExport(ctx context.Context, q query.Querier, keys *sealing.Keys, from int64, w io.Writer) (n int64, err error) {
	const everything = 1 << 62
	out := bufio.NewWriter(w)
	none := strings.Repeat("0", hex.EncodedLen(len(head{}.hash)))
	first, last := ExportedEntry{PrevHash: none}, ExportedEntry{Hash: none}
	err = eachExported(ctx, q, max(from, 1)-1, everything, func(e ExportedEntry) error {
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
	l, err := encodeHead(keys, first, last, q.Now())
	if err == nil {
		_, err = out.Write(l)
	}
	return n, errors.Join(err, out.Flush())
}
