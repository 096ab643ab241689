// Package etag compares entity tags with the conditional headers of requests (RFC 9110, section 13.1).
package etag

import "strings"

// Match reports whether the header If-Match contains a tag by the strong comparison. Tags are given without quotes. The
// header * matches any tag.
func Match(header, tag string) bool { return contains(header, tag, false) }

// NoneMatch reports whether the header If-None-Match contains a tag by the weak comparison, which ignores W/, so that the answer
// is 304. An empty header contains none.
func NoneMatch(header, tag string) bool { return contains(header, tag, true) }

func contains(header, tag string, weak bool) bool {
	if header == "" {
		return false
	}
	for candidate := range strings.SplitSeq(header, ",") {
		candidate = strings.TrimSpace(candidate)
		if candidate == "*" {
			return true
		}
		if weak {
			candidate = strings.TrimPrefix(candidate, "W/")
		}
		if len(candidate) == len(tag)+2 && candidate[0] == '"' && candidate[len(candidate)-1] == '"' && candidate[1:len(candidate)-1] == tag {
			return true
		}
	}
	return false
}
