package accept_test

import (
	"testing"

	"kontor/server/accept"
)

func TestBest(t *testing.T) {
	for header, want := range map[string]string{
		"text/csv":                         "text/csv",
		"TEXT/CSV ; bom=true":              "text/csv",
		"text/*":                           "text/csv",
		"*/*":                              "application/json",
		"text/csv, application/json":       "application/json",
		"text/csv, application/json;q=0.9": "text/csv",
		"text/csv;q=0.5, */*;q=0.1":        "text/csv",
		"text/csv;q=0, */*":                "application/json",
		"text/csv;q=0":                     "",
		"text/csv;q=two":                   "",
		"image/png":                        "",
		"":                                 "",
		"text/*;q=1, text/csv;q=0.2, application/json;q=0.5": "application/json",
	} {
		if got := accept.Best(header, "application/json", "text/csv").Value; got != want {
			t.Errorf("%s: got %q, want %q", header, got, want)
		}
	}
	if got := accept.Best(`text/csv; charset="UTF-8"; BOM=True; q=0.8`, "text/csv").Parameters; got["bom"] != "true" || got["charset"] != "utf-8" || len(got) != 2 {
		t.Errorf("got the parameters %v", got)
	}
}

func TestCoding(t *testing.T) {
	for header, want := range map[string]struct {
		coding string
		forced bool
	}{
		"":                                  {"identity", false},
		"gzip":                              {"gzip", false},
		"X-GZIP":                            {"gzip", false},
		"gzip, deflate, br, zstd":           {"zstd", false},
		"gzip;q=1.0, zstd;q=0.5":            {"gzip", false},
		"zstd;q=0, gzip":                    {"gzip", false},
		"*":                                 {"zstd", false},
		"*;q=0.1, gzip;q=0":                 {"zstd", false},
		"*;q=0":                             {"identity", true},
		"gzip, *;q=0":                       {"gzip", true},
		"identity;q=0":                      {"identity", true},
		"identity;q=0, gzip;q=0.1":          {"gzip", true},
		"identity, gzip;q=0.5":              {"identity", false},
		"identity;q=0.5, gzip":              {"gzip", false},
		"identity;q=0.5, gzip;q=0.5":        {"gzip", false},
		"br":                                {"identity", false},
		"compress, deflate":                 {"identity", false},
		"gzip;q=1.5":                        {"identity", false},
		"gzip;q=":                           {"identity", false},
		"gzip;q=0.000":                      {"identity", false},
		",, gzip ;q=0.3 ,":                  {"gzip", false},
		"gzip;level=9;q=0.7, zstd ; q=0.69": {"gzip", false},
	} {
		if coding, forced := accept.Coding(header, "zstd", "gzip"); coding != want.coding || forced != want.forced {
			t.Errorf("%q: got %s %t, want %v", header, coding, forced, want)
		}
	}
}

func FuzzCoding_TheLastWeightCounts(f *testing.F) {
	f.Add("gzip;q=0.5, identity;q=0, *;q=0")
	f.Fuzz(func(t *testing.T, header string) {
		if coding, _ := accept.Coding(header+", gzip;q=0", accept.Gzip); coding == accept.Gzip {
			t.Fatalf("%q with gzip;q=0 is sent gzip", header)
		}
		if coding, _ := accept.Coding(header+", gzip;q=1", accept.Gzip); coding != accept.Gzip {
			t.Fatalf("%q with gzip;q=1 is sent plain", header)
		}
	})
}
