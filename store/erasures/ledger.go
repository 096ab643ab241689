// Package erasures keeps the ledger of erasures: an append-only, authenticated file beside the database. It names the records
// whose personal data were erased, by their ids. After the restore of an older backup, the erasures in the ledger are applied
// again.
//
// Each line is a JSON object. Its MAC covers the line and the MAC of the line before, so that lines cannot be changed, removed
// from the middle or exchanged without the key. The package does not know what a record is.
package erasures

import (
	"bytes"
	"crypto/hmac"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"kontor/store/clock"
	"kontor/store/datadir"
)

// Name is the name of the ledger in the data directory.
const Name = "kontor.erasures"

// Purpose is the purpose of the key of the MACs.
const Purpose = "erasure ledger"

// ErrLedger says that a ledger was changed, or was written with another key.
var ErrLedger = errors.New("the ledger of erasures is not authentic")

// Entry is an erasure. It holds no personal data.
type Entry struct {
	ID      string     `json:"id"`
	Kind    string     `json:"kind"`    // of the subject
	Subject string     `json:"subject"` // id of the record
	Reason  string     `json:"reason"`
	By      string     `json:"by"`
	At      clock.Time `json:"at"`
}

// line is an entry with its MAC.
type line struct {
	Entry
	MAC string `json:"mac"`
}

// MAC computes the keyed hash of a line.
type MAC func(data []byte) []byte

// Read reads a ledger and verifies it with mac; nil skips that. A missing file is an empty ledger. A last line without its end
// was not acknowledged: it is ignored.
func Read(path string, mac MAC) ([]Entry, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", path, datadir.Cause(err))
	}
	entries, _, err := Parse(data, mac)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return entries, nil
}

// maxLine bounds the length of a line.
const maxLine = 1024

// Parse returns the entries of a ledger, and the MAC of the last one.
func Parse(data []byte, mac MAC) (entries []Entry, last string, err error) {
	for number := 1; ; number++ {
		end := bytes.IndexByte(data, '\n')
		if end < 0 {
			return entries, last, nil
		}
		text := data[:end]
		data = data[end+1:]
		var l line
		if len(text) > maxLine {
			return nil, "", fmt.Errorf("line %d: %w", number, ErrLedger)
		}
		if err := json.Unmarshal(text, &l); err != nil || l.ID == "" || l.Kind == "" || l.Subject == "" {
			return nil, "", fmt.Errorf("line %d: %w", number, ErrLedger)
		}
		if mac != nil && !hmac.Equal([]byte(l.MAC), []byte(chained(mac, last, l.Entry))) {
			return nil, "", fmt.Errorf("line %d: %w", number, ErrLedger)
		}
		entries, last = append(entries, l.Entry), l.MAC
	}
}

// chained returns the MAC of an entry after the line with the MAC last.
func chained(mac MAC, last string, e Entry) string {
	text, err := json.Marshal(e)
	if err != nil {
		panic(err) // texts and a number
	}
	return hex.EncodeToString(mac(append([]byte(last+"\n"), text...)))
}

// Append adds entries durably. Entries with an id that the ledger has are skipped. It returns ErrLedger for a ledger that is
// not authentic, and does not change it.
func Append(path string, mac MAC, added ...Entry) error {
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s cannot be read: %w", path, datadir.Cause(err))
	}
	entries, last, err := Parse(data, mac)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	known := make(map[string]bool, len(entries))
	for _, e := range entries {
		known[e.ID] = true
	}
	added = slices.DeleteFunc(slices.Clone(added), func(e Entry) bool { return known[e.ID] })
	text := encode(mac, last, added)
	if len(text) == 0 {
		return nil
	}
	return write(path, bytes.LastIndexByte(data, '\n')+1, text)
}

// Encode returns a new ledger with the entries.
func Encode(mac MAC, entries []Entry) []byte { return encode(mac, "", entries) }

// encode returns the lines of entries after the line with the MAC last.
func encode(mac MAC, last string, entries []Entry) []byte {
	var text []byte
	for _, e := range entries {
		l := line{Entry: e, MAC: chained(mac, last, e)}
		last = l.MAC
		encoded, err := json.Marshal(l)
		if err != nil {
			panic(err) // texts and a number
		}
		text = append(append(text, encoded...), '\n')
	}
	return text
}

// write writes text at an offset, in place of a line without its end, and syncs the file and its directory.
func write(path string, offset int, text []byte) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, datadir.FileMode)
	if err != nil {
		return fmt.Errorf("%s cannot be written: %w", path, datadir.Cause(err))
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := f.Truncate(int64(offset)); err != nil {
		return err
	}
	if _, err := f.WriteAt(text, int64(offset)); err != nil {
		return fmt.Errorf("write %s: %w", path, datadir.Cause(err))
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("sync %s: %w", path, datadir.Cause(err))
	}
	return datadir.Sync(filepath.Dir(path))
}

// Longer returns the ledger that continues the other one, or an error if neither does: then one of them would lose erasures.
func Longer(a, b []byte) ([]byte, error) {
	if bytes.HasPrefix(a, b) {
		return a, nil
	}
	if bytes.HasPrefix(b, a) {
		return b, nil
	}
	return nil, errors.New("the two ledgers of erasures differ: neither continues the other")
}
