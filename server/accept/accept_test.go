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
