// Package etag compares entity tags with the conditional headers of requests (RFC 9110, section 13.1).
package etag

import (
	"slices"
	"strings"
)

// codings are the content codings whose form of a record has its own tag: "v3-gzip" beside "v3".
var codings = []string{"-zstd", "-gzip"}

// ForCoding returns the tag of the form of a record in a content coding.
func ForCoding(tag, coding string) string { return tag + "-" + coding }

// Beside returns a tag that also names the state of what an answer shows beside its record. A change of the record compares the
// version of the record only.
func Beside(tag, state string) string { return tag + besideMark + state }

const besideMark = "~"

// Match reports whether the header If-Match contains a tag by the strong comparison. Tags are given without quotes. The
// header * matches any tag. The tag of a compressed form names the same version of the record.
func Match(header, tag string) bool {
	_, found := find(header, tag, false)
	return found
}

// version returns a tag without the state of what the answer shows beside the record.
func version(tag string) string {
	tag, _, _ = strings.Cut(tag, besideMark)
	return tag
}

// NoneMatch reports whether the header If-None-Match contains a tag by the weak comparison, which ignores W/, so that the answer
// is 304. An empty header contains none. It returns the tag in the form that the client has.
func NoneMatch(header, tag string) (form string, found bool) { return find(header, tag, true) }

func find(header, tag string, weak bool) (matched string, found bool) {
	if header == "" {
		return "", false
	}
	for candidate := range strings.SplitSeq(header, ",") {
		candidate = strings.TrimSpace(candidate)
		if candidate == "*" {
			return tag, true
		}
		if weak {
			candidate = strings.TrimPrefix(candidate, "W/")
		}
		if len(candidate) < 2 || candidate[0] != '"' || candidate[len(candidate)-1] != '"' {
			continue
		}
		candidate = candidate[1 : len(candidate)-1]
		if candidate == tag || isCoded(candidate, tag) || !weak && version(candidate) == tag {
			return candidate, true
		}
	}
	return "", false
}

// isCoded reports whether a tag is that of a compressed form.
func isCoded(candidate, tag string) bool {
	rest, ok := strings.CutPrefix(candidate, tag)
	return ok && slices.Contains(codings, rest)
}
