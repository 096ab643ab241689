package server

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"
)

// framing follows the requests of a connection, byte by byte, and ends it before a request whose parts have ambiguous ends. A proxy may
// see a body where this server sees a second request, or the other way round (RFC 9112, sections 2.2, 5.2, 6.1, 7.1 and 11.2).
// The engine accepts more than framing does:
//
//   - a line that ends without a carriage return;
//   - a header line that continues the one before;
//   - a body with a length and chunks, or with a coding other than chunked;
//   - a chunk size followed by spaces, by an extension without a name, or by one with a quoted text.
//
// The zero value is at the start of a connection.
type framing struct {
	part      framePart
	left      int64 // bytes of content before the next line
	length    int64 // of the body; with hasLength
	err       error // what every further read returns
	chunked   bool
	hasLength bool

	kept []byte // the beginning of a line that has not arrived completely
	last byte   // its last byte so far
	cut  bool   // kept lacks a part of it
}

// framePart is the part of a request that a line belongs to.
type framePart uint8

const (
	partFirstLine framePart = iota
	partHeaders
	partChunkSize
	partChunkEnd
	partTrailer
)

// maxKeptLine bounds the memory for a line that arrives in pieces. Longer lines may be headers without a meaning for the framing.
const maxKeptLine = 256

var errFraming = errors.New("the framing of the request is ambiguous")

// read reads from a connection up to an ambiguous line, and returns errFraming from then on. The engine answers with 400.
func (f *framing) read(from io.Reader, b []byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	n, err := from.Read(b)
	if good := f.follow(b[:n]); good < n {
		f.err = errFraming
		return good, f.err
	}
	return n, err
}

// follow returns how many of the next bytes the engine may see: all, or those before the end of an ambiguous line.
func (f *framing) follow(b []byte) (n int) {
	for n < len(b) {
		if f.left > 0 {
			content := min(f.left, int64(len(b)-n))
			f.left -= content
			n += int(content)
			continue
		}
		end := bytes.IndexByte(b[n:], '\n')
		if end < 0 {
			f.keep(b[n:])
			return len(b)
		}
		line, last, cut := b[n:n+end], byte(0), false
		if len(f.kept) > 0 {
			f.keep(line)
			line, last, cut = f.kept, f.last, f.cut
			f.kept, f.cut = f.kept[:0], false
		} else if end > 0 {
			last = line[end-1]
		}
		if n += end; last != '\r' || !f.take(bytes.TrimSuffix(line, []byte{'\r'}), cut) {
			return n
		}
		n++
	}
	return n
}

// keep adds to a line that has not arrived completely.
func (f *framing) keep(piece []byte) {
	if len(piece) == 0 {
		return
	}
	fits := min(len(piece), maxKeptLine-len(f.kept))
	f.kept = append(f.kept, piece[:fits]...)
	f.cut = f.cut || fits < len(piece)
	f.last = piece[len(piece)-1]
}

// take follows one line, of which only the beginning is known when it is cut. It reports false when the line is ambiguous.
func (f *framing) take(line []byte, cut bool) bool {
	switch f.part {
	case partFirstLine:
		if len(line) > 0 { // empty lines before a request are allowed (RFC 9112, section 2.2)
			f.part = partHeaders
		}
	case partHeaders:
		if len(line) == 0 {
			return f.endHead()
		}
		return f.header(line, cut)
	case partChunkSize:
		return !cut && f.chunk(line)
	case partChunkEnd:
		f.part = partChunkSize
		return len(line) == 0
	case partTrailer:
		if len(line) == 0 {
			f.part = partFirstLine
			return true
		}
		return !continues(line)
	}
	return true
}

// continues reports whether a header line continues the one before.
func continues(line []byte) bool { return line[0] == ' ' || line[0] == '\t' }

// header keeps what a header line says about the body. The engine rejects malformed names.
func (f *framing) header(line []byte, cut bool) bool {
	if continues(line) {
		return false
	}
	switch line[0] | 0x20 {
	case 'c':
		value, ok := valueOf(line, fasthttp.HeaderContentLength)
		if !ok {
			return true
		}
		length, err := strconv.ParseUint(value, 10, 62) // accepts no sign
		first := !f.hasLength
		f.hasLength, f.length = true, int64(length)
		return err == nil && first && !cut
	case 't':
		value, ok := valueOf(line, fasthttp.HeaderTransferEncoding)
		if !ok {
			return true
		}
		first := !f.chunked
		f.chunked = true
		return first && !cut && strings.EqualFold(value, "chunked")
	}
	return true
}

// valueOf returns the value of a header line if it has the name.
func valueOf(line []byte, name string) (value string, ok bool) {
	if len(line) <= len(name) || line[len(name)] != ':' || !strings.EqualFold(string(line[:len(name)]), name) {
		return "", false
	}
	return string(bytes.TrimLeft(line[len(name)+1:], " \t")), true
}

// endHead begins the body, or the next request.
func (f *framing) endHead() bool {
	chunked, hasLength, length := f.chunked, f.hasLength, f.length
	f.chunked, f.hasLength, f.length = false, false, 0
	if chunked {
		f.part = partChunkSize
		return !hasLength
	}
	f.part, f.left = partFirstLine, length
	return true
}

// chunk begins a chunk: hexadecimal digits, and extensions.
func (f *framing) chunk(line []byte) bool {
	digits, extensions, extended := strings.Cut(string(line), ";")
	size, err := strconv.ParseUint(digits, 16, 60) // as many digits as the engine accepts
	if err != nil || extended && !areExtensions(extensions) {
		return false
	}
	if f.part, f.left = partChunkEnd, int64(size); size == 0 {
		f.part = partTrailer
	}
	return true
}

// areExtensions reports whether a text is a list of chunk extensions that all recipients read alike: names, with or without a
// value, of visible characters without quotes.
func areExtensions(text string) bool {
	for extension := range strings.SplitSeq(text, ";") {
		name, value, valued := strings.Cut(extension, "=")
		if !isToken(name) || valued && !isToken(value) {
			return false
		}
	}
	return true
}

// isToken reports whether a text is a token (RFC 9110, section 5.6.2).
func isToken(text string) bool {
	return visibleASCII(text) && !strings.ContainsAny(text, `"(),/:;<=>?@[\]{}`)
}
