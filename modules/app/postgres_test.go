package app_test

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// postgres is a PostgreSQL server that runs until the end of a test. It listens on a socket in its own directory.
type postgres struct {
	bin, dir string
	as       []string // command that runs a program as another user; PostgreSQL does not run as root
}

// startPostgres creates an empty cluster and starts it. It skips the test where PostgreSQL is not installed.
func startPostgres(t *testing.T) *postgres {
	t.Helper()
	dir, err := os.MkdirTemp("", "kontor-pg") //nolint:usetesting // other users cannot enter t.TempDir, and its path may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	p := &postgres{bin: postgresBin(t), dir: dir}
	if os.Geteuid() == 0 { // PostgreSQL does not run as root
		p.useServiceUser(t)
	}
	data := filepath.Join(dir, "data")
	p.run(t, "initdb", "-D", data, "-U", "kontor", "--auth=trust", "--no-sync", "--no-locale", "--encoding=UTF8")
	p.run(t, "pg_ctl", "-D", data, "-l", filepath.Join(dir, "log"), "-w", "start",
		"-o", "-F -c listen_addresses='' -c unix_socket_directories='"+dir+"'")
	t.Cleanup(func() { p.run(t, "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop") })
	return p
}

// postgresBin returns the directory of the newest installed PostgreSQL.
func postgresBin(t *testing.T) string {
	t.Helper()
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err != nil { // the other programs are beside its target
			t.Fatal(err)
		}
		return filepath.Dir(path)
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // where Debian has it
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		t.Skip("install PostgreSQL (on Debian: postgresql) to test that the SQL is portable: no initdb in PATH or below /usr/lib/postgresql")
	}
	return filepath.Dir(slices.Max(found))
}

// useServiceUser runs all programs as the user that Debian's package creates, who becomes the owner of the directory.
func (p *postgres) useServiceUser(t *testing.T) {
	t.Helper()
	owner, err := user.Lookup("postgres")
	if err != nil {
		t.Fatal(err)
	}
	uid, err := strconv.Atoi(owner.Uid)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(p.dir, uid, -1); err != nil {
		t.Fatal(err)
	}
	p.as = []string{"runuser", "-u", owner.Username, "--"}
}

func (p *postgres) run(t *testing.T, program string, args ...string) {
	t.Helper()
	line := append(append(slices.Clone(p.as), filepath.Join(p.bin, program)), args...)
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Dir = p.dir
	// The output goes to a file: the server inherits it from pg_ctl, and Run would wait for the end of a pipe.
	out, err := os.CreateTemp(p.dir, program)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		log, _ := os.ReadFile(out.Name()) // err is reported anyway
		t.Fatalf("%s: %v\n%s", program, err, log)
	}
}

// psql runs a script until its first error and returns its output: one row per line, without headers.
func (p *postgres) psql(t *testing.T, script string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command(filepath.Join(p.bin, "psql"), append([]string{"-h", p.dir, "-U", "kontor", "-d", "postgres",
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

// compile compiles statements and returns the errors of those that PostgreSQL rejects.
func (p *postgres) compile(t *testing.T, statements []string) map[string]string {
	t.Helper()
	var script strings.Builder
	script.WriteString("\\set ON_ERROR_STOP off\n")
	for i, text := range statements {
		fmt.Fprintf(&script, "PREPARE s%d AS %s\n;\n\\if :ERROR\n\\echo %d :LAST_ERROR_MESSAGE\n\\endif\n", i, text, i)
	}
	out, err := p.psql(t, script.String()+"SELECT 'compiled ' || count(*) FROM pg_prepared_statements;\n")
	if err != nil {
		t.Fatal(err)
	}
	rejected := map[string]string{}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	for _, line := range lines[:len(lines)-1] {
		number, why, _ := strings.Cut(line, " ")
		i, err := strconv.Atoi(number)
		if err != nil || i >= len(statements) {
			t.Fatalf("psql printed %q", line)
		}
		rejected[statements[i]] = why
	}
	// A statement that is neither rejected nor compiled reveals an error in the script.
	if last, want := lines[len(lines)-1], fmt.Sprint("compiled ", len(statements)-len(rejected)); last != want {
		t.Fatalf("the last line of psql is %q, want %q", last, want)
	}
	return rejected
}
