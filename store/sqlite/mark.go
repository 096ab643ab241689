package sqlite

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"kontor/store/clock"
	"kontor/store/datadir"
	"kontor/store/engine"
)

// position is how far a database has come. A start must find the same position again.
type position struct {
	commits int64
	head    engine.Anchor // the end of the audit trail
	at      clock.Time
	clean   bool // the process that wrote it closed the database in order
}

// MarkName is the file beside the database that records how far the log was acknowledged. A log that was lost, cut or
// damaged, and a database that was rolled back, look intact by themselves; compared with the mark they do not.
//
// The file has two slots, written in turn, so that one is always complete. A slot is written after the log was synced, so
// that it never promises more than the log holds. It is synced only now and then: after a crash of the process it is exact,
// after a loss of power it may be some seconds old.
const MarkName = "kontor.mark"

const (
	markMagic  = "kontorm1"
	markSlot   = 4096 // bytes from slot to slot, so that no two share a block of the disk
	markLength = len(markMagic) + 8*5 + sha256.Size
	markSigned = markLength + sha256.Size // with the keyed digest after it
)

// signer computes keyed digests for what is stored about positions.
type signer interface {
	Keyed(purpose string, data []byte) []byte
	FormerKeyed(purpose string, data []byte) []byte // nil unless the key is being replaced
}

// isSigned compares a keyed digest.
func isSigned(s signer, purpose string, data, digest []byte) bool {
	former := s.FormerKeyed(purpose, data)
	return hmac.Equal(digest, s.Keyed(purpose, data)) || former != nil && hmac.Equal(digest, former)
}

// mark is the open mark file of a database.
type mark struct {
	signer signer

	mu         sync.Mutex
	file       *os.File
	generation uint64 // of the newest slot
	last       position
}

// encodeMark returns the content of a slot.
func encodeMark(s signer, generation uint64, p position) []byte {
	b := make([]byte, 0, markSigned)
	b = append(b, markMagic...)
	clean := uint64(0)
	if p.clean {
		clean = 1
	}
	for _, v := range [...]uint64{generation, clean, uint64(p.commits), uint64(p.head.Seq), uint64(p.at)} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	b = append(b, p.head.Hash[:]...)
	return append(b, s.Keyed("mark", b)...)
}

// decodeMark reads a slot. ok is false for one that is empty, incomplete, or not written with this key.
func decodeMark(s signer, b []byte) (generation uint64, p position, ok bool) {
	if len(b) < markSigned || !bytes.HasPrefix(b, []byte(markMagic)) ||
		!isSigned(s, "mark", b[:markLength], b[markLength:markSigned]) {
		return 0, position{}, false
	}
	var v [5]uint64
	for i := range v {
		v[i] = binary.BigEndian.Uint64(b[len(markMagic)+8*i:])
	}
	p = position{clean: v[1] == 1, commits: int64(v[2]), head: engine.Anchor{Seq: int64(v[3])}, at: clock.Time(v[4])}
	copy(p.head.Hash[:], b[markLength-sha256.Size:])
	return v[0], p, true
}

// errNoMark says that there is no mark, or none that can be read with the key.
var errNoMark = errors.New("there is no mark")

// readMark reads the mark of a directory. It returns errNoMark when no slot is complete.
func readMark(d *datadir.Directory, s signer) (generation uint64, p position, err error) {
	data, err := markBytes(d)
	if err != nil {
		return 0, p, err
	}
	return parseMark(s, data)
}

// markBytes reads the file of the mark.
func markBytes(d *datadir.Directory) ([]byte, error) {
	data, err := os.ReadFile(d.File(MarkName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNoMark
	}
	return data, err
}

// parseMark returns the newest complete slot.
func parseMark(s signer, data []byte) (generation uint64, p position, err error) {
	found := false
	for at := 0; at < len(data) && at <= markSlot; at += markSlot {
		if g, q, ok := decodeMark(s, data[at:]); ok && (!found || g > generation) {
			generation, p, found = g, q, true
		}
	}
	if !found {
		return 0, p, errNoMark
	}
	return generation, p, nil
}

// findMark returns the position in the mark, or nil when there is none.
func findMark(d *datadir.Directory, s signer) (*position, error) {
	_, p, err := readMark(d, s)
	if errors.Is(err, errNoMark) {
		return nil, nil
	}
	return &p, err
}

// openMark opens the mark file, or creates it, and writes the position into it. The previous position must have been
// compared before.
func openMark(d *datadir.Directory, s signer, p position) (*mark, error) {
	generation, _, err := readMark(d, s)
	fresh := errors.Is(err, errNoMark)
	if err != nil && !fresh {
		return nil, err
	}
	file, err := os.OpenFile(d.File(MarkName), os.O_RDWR|os.O_CREATE, datadir.FileMode)
	if err != nil {
		return nil, fmt.Errorf("data directory %s cannot be written: %w", d.Path(), datadir.Cause(err))
	}
	m := &mark{signer: s, file: file, generation: generation}
	if err = m.write(p); err == nil && fresh {
		// Both slots at once: later writes need no more space.
		if err = m.write(p); err == nil {
			err = m.sync()
		}
		if err == nil {
			err = datadir.Sync(d.Path())
		}
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return m, nil
}

// write writes a position into the older slot, without a sync.
func (m *mark) write(p position) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := m.generation + 1
	if _, err := m.file.WriteAt(encodeMark(m.signer, next, p), int64(next%2)*markSlot); err != nil {
		return err
	}
	m.generation, m.last = next, p
	return nil
}

// sync waits until the mark is on the disk.
func (m *mark) sync() error {
	if err := datadir.SyncFile(m.file); err != nil {
		return &fs.PathError{Op: "sync", Path: m.file.Name(), Err: err}
	}
	return nil
}

// finish records that the database was closed in order.
func (m *mark) finish() error {
	m.mu.Lock()
	p := m.last
	m.mu.Unlock()
	p.clean = true
	err := m.write(p)
	if err == nil {
		err = m.sync()
	}
	return errors.Join(err, m.file.Close())
}

// SyncMark makes the mark beside the database at a path durable, whichever process writes it.
func SyncMark(d *datadir.Directory) error {
	err := datadir.SyncClosed(d.File(MarkName))
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || isReadOnlyFileSystem(err) {
		return nil // there is nothing that this process could make durable
	}
	return fmt.Errorf("%s cannot be synced: %w", MarkName, datadir.Cause(err))
}
