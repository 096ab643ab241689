package etag_test

import (
	"testing"

	"kontor/server/etag"
)

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		header       string
		strong, weak bool
	}{
		{``, false, false},
		{`"v1"`, true, true},
		{`W/"v1"`, false, true},
		{`"v0", "v1"`, true, true},
		{`"v0",W/"v1" `, false, true},
		{`*`, true, true},
		{`v1`, false, false},
		{`"v10"`, false, false},
		{`"v1`, false, false},
		{`"v1-gzip"`, true, true},
		{`W/"v1-zstd"`, false, true},
		{`"v1-br"`, false, false},
		{`"v1-gzip-gzip"`, false, false},
		{`"-gzip"`, false, false},
		{`"`, false, false},
	} {
		if got := etag.Match(c.header, "v1"); got != c.strong {
			t.Errorf("If-Match: %s: got %t", c.header, got)
		}
		if _, got := etag.NoneMatch(c.header, "v1"); got != c.weak {
			t.Errorf("If-None-Match: %s: got %t", c.header, got)
		}
	}
}
