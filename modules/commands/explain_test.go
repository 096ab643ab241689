package commands

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"syscall"
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
		"name:":                             fields.Err(),
		"x exists already; name a new file": &fs.PathError{Op: "open", Path: "x", Err: syscall.EEXIST},
		"settings file: x does not exist, or its directory does not": fmt.Errorf("settings file: %w", &fs.PathError{Op: "open", Path: "x", Err: syscall.ENOENT}),
		"restore x: the file is incomplete: it ends too early":       fmt.Errorf("restore x: %w", io.ErrUnexpectedEOF),
		"no JSON object: the input is empty":                         fmt.Errorf("no JSON object: %w", io.EOF),
	} {
		if got := explain(err); !strings.Contains(got, want) || strings.Contains(got, "\n") {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
