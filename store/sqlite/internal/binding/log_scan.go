package binding

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
)

// The format of the log is in https://www.sqlite.org/fileformat2.html#the_write_ahead_log.
const (
	logHeader   = 32
	frameHeader = 24
	logMagic    = 0x377f0682 // and 1 where the checksums are over big-endian words
)

// LogScan is what a look at the log of a database has found.
type LogScan struct {
	Bytes   int64
	Frames  int // intact ones, from the beginning up to the last commit
	Commits int // among these
	// Beyond and CommitsBeyond are intact frames of the same generation, and commits among them, behind one that is
	// damaged: the engine does not read them.
	Beyond, CommitsBeyond int

	pages map[int64]bool // that the engine reads from the log
}

// ScanLog looks at the log of the database at path without the engine, which takes everything behind the first damaged
// frame for a write that was cut off. A log that is missing or empty is no error.
func ScanLog(path string) (s LogScan, err error) {
	f, err := os.Open(path + Log.suffix())
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return s, err
	}
	s.Bytes = info.Size()
	return s, s.read(bufio.NewReaderSize(f, 1<<20))
}

// checksum is the engine's running checksum.
type checksum struct {
	order  binary.ByteOrder
	s0, s1 uint32
}

func (c *checksum) add(b []byte) {
	for ; len(b) >= 8; b = b[8:] {
		c.s0 += c.order.Uint32(b) + c.s1
		c.s1 += c.order.Uint32(b[4:]) + c.s0
	}
}

// set continues from a checksum that is stored, and is reports whether one is right.
func (c *checksum) set(b []byte) {
	c.s0, c.s1 = binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
}
func (c *checksum) is(b []byte) bool {
	return c.s0 == binary.BigEndian.Uint32(b) && c.s1 == binary.BigEndian.Uint32(b[4:])
}

// read walks along a log. Each frame is checked from the checksum that the one before holds, so that frames behind a
// damaged one are recognised.
func (s *LogScan) read(in io.Reader) error {
	header := make([]byte, logHeader)
	if more, err := fill(in, header); !more {
		return err
	}
	magic, size := binary.BigEndian.Uint32(header), int(binary.BigEndian.Uint32(header[8:]))
	if magic&^1 != logMagic || size < 512 || size > 65536 || size&(size-1) != 0 {
		return nil // no log: the engine reads none of it either
	}
	sum := checksum{order: binary.LittleEndian}
	if magic&1 == 1 {
		sum.order = binary.BigEndian
	}
	sum.add(header[:24])
	whole := sum.is(header[24:])
	sum.set(header[24:])
	salts := [8]byte(header[16:])

	s.pages = map[int64]bool{}
	var uncommitted []int64
	frame := make([]byte, frameHeader+size)
	for n := 1; ; n++ {
		more, err := fill(in, frame)
		if !more {
			return err
		}
		sum.add(frame[:8])
		sum.add(frame[frameHeader:])
		ours := [8]byte(frame[8:]) == salts
		intact := ours && sum.is(frame[16:]) && binary.BigEndian.Uint32(frame) != 0
		sum.set(frame[16:])
		whole = whole && intact
		commit := binary.BigEndian.Uint32(frame[4:]) != 0
		s.count(n, intact, whole, commit)
		if whole {
			uncommitted = append(uncommitted, int64(binary.BigEndian.Uint32(frame)))
		}
		if whole && commit {
			for _, page := range uncommitted {
				s.pages[page] = true
			}
			uncommitted = uncommitted[:0]
		}
	}
}

// count adds a frame. Frames behind the last commit belong to nobody.
func (s *LogScan) count(n int, intact, whole, commit bool) {
	switch {
	case whole && commit:
		s.Frames = n
		s.Commits++
	case whole || !intact:
	default:
		s.Beyond++
		if commit {
			s.CommitsBeyond++
		}
	}
}

// fill reads one part of the log and reports whether it is there whole.
func fill(in io.Reader, b []byte) (more bool, err error) {
	_, err = io.ReadFull(in, b)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return false, nil
	}
	return err == nil, err
}
