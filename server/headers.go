package server

import (
	"bytes"
	"strings"

	"github.com/valyala/fasthttp"

	"kontor/server/apierr"
)

// initials are the first letters of the names of a request's headers, one bit for each. Most of the headers that are asked for are not
// sent, and their letters tell so without a comparison of all names.
type initials uint32

// initialsOf returns the initials of the lines of a head without its first line.
func initialsOf(raw []byte) (found initials) {
	for len(raw) > 0 {
		found |= 1 << (raw[0] & 31) // the same for both cases
		end := bytes.IndexByte(raw, '\n')
		if end < 0 {
			break
		}
		raw = raw[end+1:]
	}
	return found
}

// may reports whether a header with the name may have been sent.
func (i initials) may(name string) bool { return i&(1<<(name[0]&31)) != 0 }

// list returns the value of a header of the request that is a list, see [listHeader].
func (r *call) list(name string) string {
	if !r.initials.may(name) {
		return ""
	}
	return listHeader(&r.fiber.Request().Header, name)
}

// listHeader returns the value of a header that is a list. Several lines of it are one list (RFC 9110, section 5.3).
func listHeader(header *fasthttp.RequestHeader, name string) string {
	lines := header.PeekAll(name)
	if len(lines) == 1 {
		return string(lines[0])
	}
	return strings.TrimSpace(string(bytes.Join(lines, []byte(", "))))
}

// repeated reports whether a header has more than one line.
func repeated(header *fasthttp.RequestHeader, name string) bool { return len(header.PeekAll(name)) > 1 }

// checkSingle rejects a second line of a header that has one value: a proxy may have used the other line (RFC 9110,
// section 5.3; RFC 6750, section 3.1).
func checkSingle(header *fasthttp.RequestHeader, name string) error {
	if repeated(header, name) {
		return apierr.Invalid(name, "invalid.header_twice")
	}
	return nil
}

// wantsClose reports whether the client wants the connection closed. The engine recognizes the option only when it is the
// only one and in lower case; clients may write it otherwise (RFC 9110, section 7.6.1).
func (r *call) wantsClose() bool {
	if r.fiber.Request().Header.ConnectionClose() {
		return true
	}
	for option := range strings.SplitSeq(r.list(fasthttp.HeaderConnection), ",") {
		if strings.EqualFold(strings.TrimSpace(option), "close") {
			return true
		}
	}
	return false
}

// countLines counts the lines of a header of which the engine keeps only the last, or none.
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

// visibleASCII reports whether a text is not empty and consists of visible ASCII characters.
func visibleASCII(text string) bool {
	for i := range len(text) {
		if text[i] < 0x21 || text[i] > 0x7e {
			return false
		}
	}
	return text != ""
}
