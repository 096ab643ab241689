package commands

import (
	"strings"
	"testing"
)

func TestReadPassword_FromStandardInput(t *testing.T) {
	for input, want := range map[string]string{
		"a secret\n": "a secret", "a secret\r\nmore\n": "a secret", " no newline ": " no newline ",
	} {
		if got, err := (Process{Stdin: strings.NewReader(input)}).readPassword(); err != nil || got != want {
			t.Errorf("%q: %q, %v", input, got, err)
		}
	}
	for _, input := range []string{"", "\n"} {
		if _, err := (Process{Stdin: strings.NewReader(input)}).readPassword(); err == nil {
			t.Errorf("%q was accepted", input)
		}
	}
}
