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

// postgres is a PostgreSQL that runs while a test does. It listens on a socket in a directory of its own.
type postgres struct {
	bin, dir string
	as       []string // what runs a command as somebody whom the server does not refuse
}

// startPostgres makes an empty cluster and starts it, or skips the test where PostgreSQL is not installed.
func startPostgres(t *testing.T) *postgres {
	t.Helper()
	dir, err := os.MkdirTemp("", "kontor-pg") //nolint:usetesting // below t.TempDir no other user gets in, and its path may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	p := &postgres{bin: postgresBin(t), dir: dir}
	if os.Geteuid() == 0 { // as root it refuses to run
		p.giveAway(t)
	}
	data := filepath.Join(dir, "data")
	p.run(t, "initdb", "-D", data, "-U", "kontor", "--auth=trust", "--no-sync", "--no-locale", "--encoding=UTF8")
	p.run(t, "pg_ctl", "-D", data, "-l", filepath.Join(dir, "log"), "-w", "start",
		"-o", "-F -c listen_addresses='' -c unix_socket_directories='"+dir+"'")
	t.Cleanup(func() { p.run(t, "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop") })
	return p
}

// postgresBin is the directory of the newest PostgreSQL of the machine.
func postgresBin(t *testing.T) string {
	t.Helper()
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err != nil { // the other programs are beside the one it stands for
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

// giveAway makes the directory, and what is run, the user's whom Debian's package has made for the server.
func (p *postgres) giveAway(t *testing.T) {
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
	// To a file: the server inherits the output of pg_ctl, and a pipe would be waited for until it ends.
	out, err := os.CreateTemp(p.dir, program)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		said, _ := os.ReadFile(out.Name()) // the error is told anyway
		t.Fatalf("%s: %v\n%s", program, err, said)
	}
}

// psql runs a script up to its first error and gives what it prints: bare rows, one a line.
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

// refusals compiles statements and gives the error of each that is refused.
func (p *postgres) refusals(t *testing.T, statements []string) map[string]string {
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
	refused := map[string]string{}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	for _, line := range lines[:len(lines)-1] {
		number, why, _ := strings.Cut(line, " ")
		i, err := strconv.Atoi(number)
		if err != nil || i >= len(statements) {
			t.Fatalf("psql printed %q", line)
		}
		refused[statements[i]] = why
	}
	// Whatever is neither refused nor there was swallowed by a mistake of the script.
	if last, want := lines[len(lines)-1], fmt.Sprint("compiled ", len(statements)-len(refused)); last != want {
		t.Fatalf("psql ended with %q, want %q", last, want)
	}
	return refused
}
