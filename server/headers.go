package server

import (
	"bytes"
	"strings"

	"github.com/valyala/fasthttp"

	"kontor/server/apierr"
)

// listHeader is the value of a header that is a list. Several lines of it are one list (RFC 9110, section 5.3).
func listHeader(header *fasthttp.RequestHeader, name string) string {
	lines := header.PeekAll(name)
	if len(lines) == 1 {
		return string(lines[0])
	}
	return strings.TrimSpace(string(bytes.Join(lines, []byte(", "))))
}

// repeated reports whether a header has more than one line.
func repeated(header *fasthttp.RequestHeader, name string) bool { return len(header.PeekAll(name)) > 1 }

// once refuses a second line of a header that has one value. Which of them counts is for nobody to guess: what is in
// front of us may have looked at the other (RFC 9110, section 5.3; RFC 6750, section 3.1).
func once(header *fasthttp.RequestHeader, name string) error {
	if repeated(header, name) {
		return apierr.Invalid(name, "invalid.header_twice")
	}
	return nil
}

// closes reports whether the client wants the connection closed. The engine understands the option only when it stands
// alone and in lower case; it is neither bound to be (RFC 9110, section 7.6.1).
func closes(header *fasthttp.RequestHeader) bool {
	if header.ConnectionClose() {
		return true
	}
	for option := range strings.SplitSeq(listHeader(header, fasthttp.HeaderConnection), ",") {
		if strings.EqualFold(strings.TrimSpace(option), "close") {
			return true
		}
	}
	return false
}

// ambiguous reports whether the end of the body can be told in two ways: by a length and by chunks, or by a coding that
// is none any more. What is in front of us may see a body where a second request is seen here, or the other way round
// (RFC 9112, sections 6.1 and 11.2).
func ambiguous(header *fasthttp.RequestHeader) bool {
	const (
		chunked = -1
		none    = -2
	)
	if header.ContentLength() == none && (header.IsGet() || header.IsHead()) {
		return false // nobody sees a body there
	}
	raw := header.RawHeaders()
	if countLines(raw, fasthttp.HeaderTransferEncoding) == 0 {
		return false
	}
	return header.ContentLength() != chunked || countLines(raw, fasthttp.HeaderContentLength) > 0
}

// countLines counts the lines of a header of which the engine itself keeps the last, or none.
func countLines(raw []byte, name string) int {
	count := 0
	for len(raw) > 0 {
		end := bytes.IndexByte(raw, '\n')
		if end < 0 {
			end = len(raw) - 1
		}
		if len(raw) > len(name) && raw[len(name)] == ':' && strings.EqualFold(string(raw[:len(name)]), name) {
			count++
		}
		raw = raw[end+1:]
	}
	return count
}
