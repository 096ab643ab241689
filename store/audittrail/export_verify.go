package audittrail

import (
	"bufio"
	"bytes"
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
)

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
		if err := json.Unmarshal(text, &h, json.RejectUnknownMembers(true)); err != nil {
			return errors.New("this is not a head of an export")
		}
		return v.takeHead(h)
	}
	var e ExportedEntry
	if err := json.Unmarshal(text, &e, json.RejectUnknownMembers(true)); err != nil || e.Seq <= 0 {
		return errors.New("this is not an entry of an export")
	}
	return v.takeEntry(e)
}

func (v *verification) takeEntry(e ExportedEntry) error {
	prev, err := parseHash(e.PrevHash)
	if err != nil {
		return err
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
	hash := chainHash(prev, e.Seq, e.row())
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
	if err != nil || !ed25519.Verify(key, h.Head.signed(), signature) {
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
