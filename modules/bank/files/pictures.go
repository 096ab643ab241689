package files

import (
	"bytes"
	"encoding/binary"
)

// jpegParts follows the markers of a JPEG (ITU-T T.81, annex B).
type jpegParts struct {
	state   jpegState
	marker  byte
	head    []byte // of a segment: its length, and the size of the picture in the header of a frame
	skip    int
	size    int64 // pixels; 0 before the first frame
	scanned bool  // there was a scan
	rest    []byte
}

type jpegState int

const (
	jpegSeek    jpegState = iota // data of a scan, or between two segments
	jpegMarker                   // after 0xff
	jpegSegment                  // in the head of a segment
	jpegSkip                     // in the rest of a segment
	jpegRest                     // after the picture
	jpegBroken
)

// The markers.
const (
	markerTEM  = 0x01
	markerSOF  = 0xc0
	markerDHT  = 0xc4
	markerJPG  = 0xc8
	markerDAC  = 0xcc
	markerSOF3 = 0xcf
	markerRST0 = 0xd0
	markerSOI  = 0xd8
	markerEOI  = 0xd9
	markerSOS  = 0xda
)

const (
	lengthBytes = 2
	frameBytes  = lengthBytes + 5 // with precision, height and width
	restBytes   = 64              // of what follows the picture
)

func (s *jpegParts) pixels() int64 { return s.size }

func (s *jpegParts) write(p []byte) {
	for len(p) > 0 {
		switch s.state {
		case jpegSeek:
			found := bytes.IndexByte(p, 0xff)
			if found < 0 {
				return
			}
			p, s.state = p[found+1:], jpegMarker
		case jpegMarker:
			s.take(p[0])
			p = p[1:]
		case jpegSegment:
			s.head, p = append(s.head, p[0]), p[1:]
			s.segment()
		case jpegSkip:
			n := min(s.skip, len(p))
			if p, s.skip = p[n:], s.skip-n; s.skip == 0 {
				s.state = jpegSeek
			}
		case jpegRest:
			if len(s.rest) == 0 {
				p = bytes.TrimLeft(p, "\x00 \t\r\n")
			}
			s.rest = append(s.rest, p[:min(len(p), restBytes-len(s.rest))]...)
			return
		case jpegBroken:
			return
		}
	}
}

// take reads the code of a marker.
func (s *jpegParts) take(code byte) {
	s.marker = code
	switch {
	case code == 0xff: // a fill byte
	case code == 0 || code == markerTEM || code >= markerRST0 && code <= markerSOI:
		s.state = jpegSeek
	case code == markerEOI:
		s.state = jpegRest
	default:
		s.head, s.state = s.head[:0], jpegSegment
	}
}

// segment reads the head of a segment once enough of it has arrived.
func (s *jpegParts) segment() {
	frame := s.marker >= markerSOF && s.marker <= markerSOF3 && s.marker != markerDHT && s.marker != markerJPG && s.marker != markerDAC
	want := lengthBytes
	if frame {
		want = frameBytes
	}
	if len(s.head) < want {
		return
	}
	length := int(binary.BigEndian.Uint16(s.head))
	if length < want {
		s.state = jpegBroken
		return
	}
	if frame {
		height, width := binary.BigEndian.Uint16(s.head[3:]), binary.BigEndian.Uint16(s.head[5:])
		s.size = max(s.size, int64(height)*int64(width))
	}
	s.scanned = s.scanned || s.marker == markerSOS
	if s.skip, s.state = length-len(s.head), jpegSkip; s.skip == 0 {
		s.state = jpegSeek
	}
}

// verdict accepts padding after the picture, and what cameras append: further pictures such as thumbnails and gain maps, the film of a
// motion photo (ISO 14496-12), and the trailer of Samsung phones.
func (s *jpegParts) verdict(tail []byte) string {
	const filmStart = 8
	switch {
	case s.state != jpegRest || s.size == 0 || !s.scanned:
		return "files.damaged"
	case len(s.rest) == 0, bytes.HasPrefix(s.rest, []byte(jpegStart)), bytes.HasSuffix(bytes.TrimRight(tail, "\x00 \t\r\n"), []byte("SEFT")),
		bytes.Contains(s.rest[:min(len(s.rest), filmStart)], []byte("ftyp")):
		return ""
	}
	return "files.foreign_data"
}

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
