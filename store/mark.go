package store

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
)

// position is how far a database has come: what a start must find again.
type position struct {
	commits int64
	head    head // the end of the audit trail
	at      Time
	clean   bool // the process that wrote it has ended in order
}

// markName is the file that says outside the database how far the database has come. A log that was lost, cut or damaged,
// and a database that was rolled back, look whole by themselves; compared with the mark they do not.
//
// The file has two slots, which are written in turn, so that one of them is whole whenever a write is cut off. A slot is
// written after the log was synced, so that it never promises more than the log holds, and is itself synced only now and
// then: after a crash of the process it is exact, after a loss of power it may be some seconds old.
const markName = "kontor.mark"

const (
	markMagic  = "kontorm1"
	markSlot   = 4096 // bytes from slot to slot: no two share a block of the disk
	markLength = len(markMagic) + 8*5 + sha256.Size
	markSigned = markLength + sha256.Size // with the keyed digest behind it
)

// mark is the open mark file of a database.
type mark struct {
	secrets *secrets

	mu         sync.Mutex
	file       *os.File
	generation uint64 // of the newest slot
	last       position
}

// encode makes the content of a slot.
func (s *secrets) encodeMark(generation uint64, p position) []byte {
	b := make([]byte, 0, markSigned)
	b = append(b, markMagic...)
	clean := uint64(0)
	if p.clean {
		clean = 1
	}
	for _, v := range [...]uint64{generation, clean, uint64(p.commits), uint64(p.head.seq), uint64(p.at)} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	b = append(b, p.head.hash[:]...)
	return append(b, s.keyed("mark", b)...)
}

// decodeMark reads a slot. It reports false for one that is empty, cut off, or not written with this key.
func (s *secrets) decodeMark(b []byte) (generation uint64, p position, ok bool) {
	if len(b) < markSigned || !bytes.HasPrefix(b, []byte(markMagic)) ||
		!hmac.Equal(b[markLength:markSigned], s.keyed("mark", b[:markLength])) {
		return 0, position{}, false
	}
	var v [5]uint64
	for i := range v {
		v[i] = binary.BigEndian.Uint64(b[len(markMagic)+8*i:])
	}
	p = position{clean: v[1] == 1, commits: int64(v[2]), head: head{seq: int64(v[3])}, at: Time(v[4])}
	copy(p.head.hash[:], b[markLength-sha256.Size:])
	return v[0], p, true
}

// errNoMark says that there is no mark, or none that can be read with the key.
var errNoMark = errors.New("there is no mark")

// readMark reads the mark of a directory. It returns errNoMark when no slot is whole.
func (d *directory) readMark(s *secrets) (generation uint64, p position, err error) {
	data, err := os.ReadFile(d.file(markName))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, p, errNoMark
	}
	if err != nil {
		return 0, p, err
	}
	found := false
	for at := 0; at < len(data) && at <= markSlot; at += markSlot {
		if g, q, ok := s.decodeMark(data[at:]); ok && (!found || g > generation) {
			generation, p, found = g, q, true
		}
	}
	if !found {
		return 0, p, errNoMark
	}
	return generation, p, nil
}

// openMark opens the mark file, or makes it, and writes the position into it. What is in it must have been compared.
func (d *directory) openMark(s *secrets, p position) (*mark, error) {
	generation, _, err := d.readMark(s)
	fresh := errors.Is(err, errNoMark)
	if err != nil && !fresh {
		return nil, err
	}
	file, err := os.OpenFile(d.file(markName), os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return nil, fmt.Errorf("data directory %s cannot be written: %w", d.path, cause(err))
	}
	m := &mark{secrets: s, file: file, generation: generation}
	if err = m.write(p); err == nil && fresh {
		// Both slots at once: later writes need no room.
		if err = m.write(p); err == nil {
			err = m.sync()
		}
		if err == nil {
			err = syncDirectory(d.path)
		}
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return m, nil
}

// newMark writes the mark of a database that nobody uses, durably.
func (d *directory) newMark(s *secrets, p position) error {
	m, err := d.openMark(s, p)
	if err != nil {
		return err
	}
	return errors.Join(m.sync(), m.file.Close())
}

// write puts a position into the older slot, without a sync.
func (m *mark) write(p position) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := m.generation + 1
	if _, err := m.file.WriteAt(m.secrets.encodeMark(next, p), int64(next%2)*markSlot); err != nil {
		return err
	}
	m.generation, m.last = next, p
	return nil
}

// sync waits until what was written is on the disk.
func (m *mark) sync() error {
	if err := syncFile(m.file); err != nil {
		return &fs.PathError{Op: "sync", Path: m.file.Name(), Err: err}
	}
	return nil
}

// finish writes that the database was closed in order.
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
