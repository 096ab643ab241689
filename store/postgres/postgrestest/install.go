package postgrestest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// errNotInstalled is returned where PostgreSQL's programs are missing.
var errNotInstalled = errors.New("install PostgreSQL (on Debian: postgresql): no initdb in PATH or below /usr/lib/postgresql")

// programs returns the directory of the newest installed PostgreSQL's programs.
var programs = sync.OnceValues(func() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // where Debian has it
	if err != nil {
		return "", err
	}
	if len(found) > 0 {
		return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return major(a) - major(b) })), nil
	}
	path, err := exec.LookPath("initdb")
	if err != nil {
		return "", errNotInstalled
	}
	if path, err = filepath.EvalSymlinks(path); err != nil { // the other programs are beside its target
		return "", err
	}
	return filepath.Dir(path), nil
})

// major returns the version in a path like /usr/lib/postgresql/15/bin/initdb, or 0.
func major(path string) int {
	version, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path)))) // 0 sorts an unusual name first
	return version
}

// asOwner gives dir to the user that runs PostgreSQL, and returns the command that runs a program as that user. The
// command is empty unless the tests run as root, as which PostgreSQL does not start.
func asOwner(dir string) ([]string, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	owner, err := user.Lookup("postgres") // Debian's package creates it
	if err != nil {
		return nil, err
	}
	uid, err := strconv.Atoi(owner.Uid)
	if err != nil {
		return nil, err
	}
	if err := os.Chown(dir, uid, -1); err != nil {
		return nil, err
	}
	return []string{"runuser", "-u", owner.Username, "--"}, nil
}

// run runs one of PostgreSQL's programs in dir until it ends.
func run(as []string, dir, program string, args ...string) error {
	bin, err := programs()
	if err != nil {
		return err
	}
	line := append(append(slices.Clone(as), filepath.Join(bin, program)), args...)
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Dir = dir
	// The output goes to a file: the server inherits it from pg_ctl, and Run would wait for the end of a pipe.
	out, err := os.CreateTemp(dir, program)
	if err != nil {
		return err
	}
	defer os.Remove(out.Name())
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		said, _ := os.ReadFile(out.Name()) // err is reported anyway
		return fmt.Errorf("%s: %w: %s", program, err, strings.TrimSpace(string(said)))
	}
	return nil
}
