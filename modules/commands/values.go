package commands

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// text is the value of a flag or an argument that holds a text. It implements pflag.Value.
type text struct {
	target  *string
	choices string // the only values, separated by commas; empty: any
	isPath  bool
}

// String implements pflag.Value.
func (t *text) String() string {
	if t.target == nil {
		return ""
	}
	return *t.target
}

// Type implements pflag.Value.
func (t *text) Type() string { return "string" }

// Set implements pflag.Value.
func (t *text) Set(given string) (err error) {
	if choices := strings.Split(t.choices, ","); t.choices != "" && !slices.Contains(choices, given) {
		return fmt.Errorf("must be one of %s, not %q", strings.Join(choices, ", "), given)
	}
	if t.isPath {
		given, err = absolutePath(given)
	}
	*t.target = given
	return err
}

// absolutePath returns the absolute form of a file name, in which ~/ stands for the home directory of the user.
func absolutePath(name string) (string, error) {
	if name == "" {
		return "", errors.New("must name a file")
	}
	if name == standardStream {
		return name, nil
	}
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		name = filepath.Join(home, rest)
	}
	return filepath.Abs(name)
}

// texts is the value of a setting's flag. It keeps the texts as they are: package settings parses them. It implements
// pflag.Value.
type texts struct {
	given []string
}

// String implements pflag.Value.
func (t *texts) String() string { return strings.Join(t.given, ",") }

// Type implements pflag.Value.
func (t *texts) Type() string { return "string" }

// Set implements pflag.Value.
func (t *texts) Set(given string) error {
	t.given = append(t.given, given)
	return nil
}
