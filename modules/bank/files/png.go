package files

import (
	"bytes"
	"encoding/binary"
)

// pngParts follows the chunks of a PNG (PNG, third edition, section 5.3).
type pngParts struct {
	seen   int64 // bytes of the file so far
	head   []byte
	skip   int64 // bytes until the next chunk
	size   int64 // pixels
	ended  bool
	broken bool
	beyond bool // other data follow the picture
}

const (
	pngHead   = 8  // of a chunk: its length and type
	pngCheck  = 4  // its checksum
	ihdrBytes = 13 // the content of the first chunk
)

func (s *pngParts) pixels() int64 { return s.size }

func (s *pngParts) write(p []byte) {
	if s.seen == 0 {
		s.skip = int64(len(pngStart))
	}
	s.seen += int64(len(p))
	for len(p) > 0 && !s.broken {
		if s.skip > 0 {
			n := min(s.skip, int64(len(p)))
			p, s.skip = p[n:], s.skip-n
			continue
		}
		if s.ended {
			s.beyond = s.beyond || len(bytes.Trim(p, "\x00 \t\r\n")) > 0
			return
		}
		want := pngHead
		if s.size == 0 {
			want += 8 // width and height of the first chunk
		}
		n := min(want-len(s.head), len(p))
		s.head, p = append(s.head, p[:n]...), p[n:]
		if len(s.head) == want {
			s.chunk()
		}
	}
}

// chunk reads the head of a chunk.
func (s *pngParts) chunk() {
	length, kind := int64(binary.BigEndian.Uint32(s.head)), string(s.head[4:pngHead])
	s.skip = length + pngCheck
	switch {
	case s.size == 0:
		width, height := int64(binary.BigEndian.Uint32(s.head[8:])), int64(binary.BigEndian.Uint32(s.head[12:]))
		s.broken = kind != "IHDR" || length != ihdrBytes || width < 1 || height < 1 || width > 1<<31-1 || height > 1<<31-1
		s.size = max(width*height, 1)
		s.skip -= 8
	case kind == "IEND":
		s.ended = true
	}
	for _, c := range []byte(kind) {
		s.broken = s.broken || (c|0x20) < 'a' || (c|0x20) > 'z'
	}
	s.head = s.head[:0]
}

func (s *pngParts) verdict([]byte) string {
	switch {
	case s.beyond:
		return "files.foreign_data"
	case s.broken || !s.ended || s.skip > 0:
		return "files.damaged"
	}
	return ""
}
