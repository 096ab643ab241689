package audittrail

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
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

// ExportedEntry is an entry with everything that its hash covers, as it is stored, and a line of an export.
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
	return query.Each(ctx, q, func(row query.Scanner) error {
		e, err := scanEntry(row)
		if err != nil {
			return err
		}
		return each(e)
	}, selectEntriesAfter, after, limit)
}

// WriteExport writes the entries from a sequence number on, and a signed head. It returns how many entries it wrote.
func WriteExport(ctx context.Context, q query.Querier, keys *sealing.Keys, from int64, w io.Writer) (n int64, err error) {
	const everything = 1 << 62
	out := bufio.NewWriter(w)
	none := strings.Repeat("0", hex.EncodedLen(sha256.Size))
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

// ExportReport describes a verified export.
type ExportReport struct {
	From, To  int64      // numbers of the first and the last entry, 0 where there is none
	SignedTo  int64      // everything up to here is covered by a signature
	Repeated  int64      // entries that the file contains again, after a restart of the exporter
	PublicKey string     // that signed, base64
	SignedAt  clock.Time // of the last signature
	Heads     int
}

// ExportError says which line of an export is wrong.
type ExportError struct {
	Line   int
	Reason string
}

// Error names the line.
func (e *ExportError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Reason) }

// maxExportLine is the longest line of an export that is read; entries have a few kilobytes at most.
const maxExportLine = 1 << 20

// VerifyExport verifies every hash and signature of an export. It needs neither the master key nor the database. key holds the
// public keys, in base64 with space between them, one of which must have signed each head. If it is empty, the key of the
// first head is used, and each key that the one before it has signed in the entry about a rotation; that proves only that
// the file was not changed without that key. The error is an *ExportError for the first wrong line. An export does
// not show whether entries are missing after its last head.
func VerifyExport(r io.Reader, key string) (ExportReport, error) {
	v := verification{keys: strings.Fields(key)}
	v.given = len(v.keys) > 0
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxExportLine)
	for lines.Scan() {
		v.line++
		if err := v.take(lines.Bytes()); err != nil {
			return v.report, &ExportError{Line: v.line, Reason: err.Error()}
		}
	}
	if err := lines.Err(); err != nil {
		return v.report, &ExportError{Line: v.line + 1, Reason: err.Error()}
	}
	switch {
	case v.report.Heads == 0:
		return v.report, &ExportError{Line: v.line, Reason: "there is no signed head"}
	case v.report.SignedTo < v.report.To:
		return v.report, &ExportError{Line: v.line, Reason: fmt.Sprintf("entries %d to %d are not signed", v.report.SignedTo+1, v.report.To)}
	}
	return v.report, nil
}

// verification is the state of verifying an export.
type verification struct {
	keys   []string // trusted public keys
	given  bool     // the caller named them
	line   int
	prev   [32]byte   // of the first entry
	hashes [][32]byte // of all entries from the first on
	report ExportReport

	rotations []ExportRotation // of the key, in the entries so far
}

func (v *verification) take(text []byte) error {
	if bytes.HasPrefix(text, []byte(`{"head":`)) {
		var h headLine
		if err := json.Unmarshal(text, &h, json.RejectUnknownMembers(true)); err != nil || !isWritten(h, text) {
			return errors.New("this is not a head of an export")
		}
		return v.takeHead(h)
	}
	var e ExportedEntry
	if err := json.Unmarshal(text, &e, json.RejectUnknownMembers(true)); err != nil || e.Seq <= 0 || !isWritten(e, text) {
		return errors.New("this is not an entry of an export")
	}
	return v.takeEntry(e)
}

// isWritten reports whether a line is written as the server writes it. So no member is missing, and none has a second spelling that another
// reader could understand differently.
func isWritten(line any, text []byte) bool {
	written, err := encodeLine(line)
	return err == nil && bytes.Equal(bytes.TrimSuffix(written, []byte{'\n'}), text)
}

func (v *verification) takeEntry(e ExportedEntry) error {
	prev, err := parseHash(e.PrevHash)
	if err != nil {
		return err
	}
	if e.PrevHash != hex.EncodeToString(prev[:]) {
		return errors.New("this is not an entry of an export")
	}
	if len(v.hashes) == 0 {
		if e.Seq == 1 && prev != [32]byte{} {
			return errors.New("entry 1 continues another one")
		}
		v.prev, v.report.From, v.report.To = prev, e.Seq, e.Seq-1
	}
	if e.Seq < v.report.From || e.Seq > v.report.To+1 {
		return fmt.Errorf("entry %d is missing", v.report.To+1)
	}
	if want, _ := v.hash(e.Seq - 1); prev != want {
		return fmt.Errorf("entry %d does not continue the entry before", e.Seq)
	}
	hash := chainHash(prev, &e)
	if e.Hash != hex.EncodeToString(hash[:]) || hash == [32]byte{} {
		return fmt.Errorf("entry %d was changed", e.Seq)
	}
	if e.Seq <= v.report.To {
		if known, _ := v.hash(e.Seq); known != hash {
			return fmt.Errorf("entry %d occurs twice with different content", e.Seq)
		}
		v.report.Repeated++
		return nil
	}
	v.hashes = append(v.hashes, hash)
	v.report.To = e.Seq
	if e.Action == ActionRotated {
		return v.takeRotation(e)
	}
	return nil
}

// hash returns the hash of an entry, or that of the one before the first.
func (v *verification) hash(seq int64) ([32]byte, bool) {
	switch at := seq - v.report.From; {
	case at == -1:
		return v.prev, true
	case at >= 0 && at < int64(len(v.hashes)):
		return v.hashes[at], true
	}
	return [32]byte{}, false
}

func (v *verification) takeHead(h headLine) error {
	if len(v.keys) == 0 {
		v.trustFirst(h.Head.PublicKey)
	}
	if !slices.Contains(v.keys, h.Head.PublicKey) {
		return errors.New("the head is signed with another key")
	}
	key, err := base64.StdEncoding.DecodeString(h.Head.PublicKey)
	if err != nil || len(key) != ed25519.PublicKeySize {
		return errors.New("the public key is not 32 bytes in base64")
	}
	signature, err := base64.StdEncoding.DecodeString(h.Signature)
	if err != nil || base64.StdEncoding.EncodeToString(signature) != h.Signature || !ed25519.Verify(key, h.Head.signed(), signature) {
		return errors.New("the signature of the head is wrong")
	}
	if h.Head.To != 0 {
		if err := v.covers(h.Head); err != nil {
			return err
		}
	} else if len(v.hashes) > 0 {
		return errors.New("the head belongs to an empty trail")
	}
	v.report.Heads++
	v.report.PublicKey, v.report.SignedAt = h.Head.PublicKey, h.Head.At
	v.report.SignedTo = max(v.report.SignedTo, h.Head.To)
	return nil
}

// trustFirst trusts the key of the first head. Rotations before that head have led to it.
func (v *verification) trustFirst(key string) {
	v.keys = []string{key}
	for _, r := range v.rotations {
		v.follow(r)
	}
}

// follow trusts the next key if the one before it is trusted and the caller has named no keys.
func (v *verification) follow(r ExportRotation) {
	if !v.given && slices.Contains(v.keys, r.FormerKey) {
		v.keys = append(v.keys, r.Key)
	}
}

// takeRotation reads the entry about a rotation of the keys.
func (v *verification) takeRotation(e ExportedEntry) error {
	r, err := parseRotation(e.Detail)
	if err != nil {
		return fmt.Errorf("entry %d: %w", e.Seq, err)
	}
	v.rotations = append(v.rotations, r)
	v.follow(r)
	return nil
}

// covers compares a head with the entries that it names.
func (v *verification) covers(h ExportHead) error {
	before, known := v.hash(h.From - 1)
	last, there := v.hash(h.To)
	if !known || !there || h.From > h.To || len(v.hashes) == 0 {
		return fmt.Errorf("the head names entries %d to %d, which are not before it", h.From, h.To)
	}
	if h.PrevHash != hex.EncodeToString(before[:]) || h.Hash != hex.EncodeToString(last[:]) {
		return errors.New("the head does not match the entries before it")
	}
	return nil
}
