package commands

import (
	"errors"
	"strings"
	"testing"

	"kontor/server/apierr"
)

func TestExplain(t *testing.T) {
	fields := &apierr.Fields{}
	fields.Add("name", "invalid.required")
	for want, err := range map[string]error{
		"open x: no such file":                                errors.New("open x:\n  no such file"),
		"There is nothing at this address.":                   apierr.NotFound,
		"There is nothing at this address. (while reading x)": apierr.NotFound.Wrap(errors.New("while reading x")),
		"name:": fields.Err(),
	} {
		if got := explain(err); !strings.Contains(got, want) || strings.Contains(got, "\n") {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
