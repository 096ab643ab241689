package web_test

import (
	"testing"

	"kontor/web"
)

func TestTakesGzip(t *testing.T) {
	for header, want := range map[string]bool{
		"": false, "gzip": true, "GZIP": true, "x-gzip": true, "br, gzip": true, "deflate, br": false, "*": true, "gzip;q=1.0": true, "gzip; q=0.5": true,
		"gzip;q=0": false, "gzip;q=0.000": false, "gzip; q=0, *": false, "*;q=0": false, "gzip, *;q=0": true, "br;q=1, *;q=0.1": true,
		"identity;q=0": false, "gzip, identity;q=0": true, "identity;q=0, *": true, "gzip;q=0.3, identity": false, "gzip;q=0.5, identity;q=0.5": true,
		"br;q=1.0, gzip;q=0": false, "gzip;q=x": false, "gzip;q=-1": false, "gzip;q=2": false, "gzip;q=NaN": false, "gzip;level=9": false, "gzippo": false, ", ,": false,
	} {
		if got := web.TakesGzip(header); got != want {
			t.Errorf("%q: got %t, want %t", header, got, want)
		}
	}
}

func FuzzTakesGzip(f *testing.F) {
	f.Add("gzip;q=0.5, identity;q=0, *;q=0")
	f.Fuzz(func(t *testing.T, header string) {
		// The last weight of gzip applies.
		if web.TakesGzip(header + ", gzip;q=0") {
			t.Fatalf("%q with gzip;q=0 is sent gzip", header)
		}
		if !web.TakesGzip(header + ", gzip;q=1") {
			t.Fatalf("%q with gzip;q=1 is sent plain", header)
		}
	})
}
