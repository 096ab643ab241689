package binding

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
)

// logMagic begins a log. Its lowest bit is set where the checksums are over big-endian words.
const logMagic = 0x377f0682

// LogScan describes the log of a database.
type LogScan struct {
	Bytes   int64
	Frames  int // intact frames, from the beginning up to the last commit
	Commits int // among these
	// Beyond and CommitsBeyond count intact frames of the same generation, and commits among them, after a damaged frame:
	// SQLite does not read them.
	Beyond, CommitsBeyond int

	pages map[int64]bool // that SQLite reads from the log
}

// ScanLog reads the log of a database without SQLite, which treats everything after the first damaged frame as an
// interrupted write. A missing or empty log is no error.
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

// checksum is SQLite's running checksum of a log.
type checksum struct {
	order  binary.ByteOrder
	s0, s1 uint32
}

// newChecksum returns the checksum for a log with a magic number.
func newChecksum(magic uint32) checksum {
	if magic&1 == 1 {
		return checksum{order: binary.BigEndian}
	}
	return checksum{order: binary.LittleEndian}
}

func (c *checksum) add(b []byte) {
	for ; len(b) >= 8; b = b[8:] {
		c.s0 += c.order.Uint32(b) + c.s1
		c.s1 += c.order.Uint32(b[4:]) + c.s0
	}
}

// set continues from a stored checksum.
func (c *checksum) set(b []byte) {
	c.s0, c.s1 = binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
}

// equals compares the checksum with a stored one.
func (c *checksum) equals(b []byte) bool {
	return c.s0 == binary.BigEndian.Uint32(b) && c.s1 == binary.BigEndian.Uint32(b[4:])
}

// read reads a log. It verifies each frame from the stored checksum of the frame before, so that it recognises intact
// frames after a damaged one.
func (s *LogScan) read(in io.Reader) error {
	header := make([]byte, logHeaderBytes)
	if more, err := fill(in, header); !more {
		return err
	}
	magic, size := binary.BigEndian.Uint32(header), int(binary.BigEndian.Uint32(header[8:]))
	if magic&^1 != logMagic || size < 512 || size > 65536 || size&(size-1) != 0 {
		return nil // not a log: SQLite does not read it either
	}
	sum := newChecksum(magic)
	sum.add(header[:24])
	whole := sum.equals(header[24:])
	sum.set(header[24:])
	salts := [8]byte(header[16:])

	s.pages = map[int64]bool{}
	var uncommitted []int64
	frame := make([]byte, frameHeaderBytes+size)
	for n := 1; ; n++ {
		more, err := fill(in, frame)
		if !more {
			return err
		}
		sum.add(frame[:8])
		sum.add(frame[frameHeaderBytes:])
		ours := [8]byte(frame[8:]) == salts
		intact := ours && sum.equals(frame[16:]) && binary.BigEndian.Uint32(frame) != 0
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

// count counts a frame. Intact frames after the last commit are not counted: they were never committed.
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

// fill reads one part of the log. more is false at the end, and for an incomplete part.
func fill(in io.Reader, b []byte) (more bool, err error) {
	_, err = io.ReadFull(in, b)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return false, nil
	}
	return err == nil, err
}
