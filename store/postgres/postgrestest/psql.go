package postgrestest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Program returns the path of one of PostgreSQL's programs, such as psql.
func Program(t testing.TB, name string) string {
	t.Helper()
	bin, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(bin, name)
}

// Psql runs a script in a database with PostgreSQL's own client until its first error, and returns the output: one row per
// line, without headers.
func (p *Instance) Psql(t testing.TB, database, script string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command(Program(t, "psql"), append([]string{p.URL(database),
		"-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-f", "-"}, args...)...)
	cmd.Stdin = strings.NewReader(script)
	cmd.Env = append(os.Environ(), "PGCLIENTENCODING=UTF8", "PGOPTIONS=--client-min-messages=warning")
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, problems.String())
	}
	return string(out), nil
}
