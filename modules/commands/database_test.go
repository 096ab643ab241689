package commands_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kontor/store/testenv"
)

// absent returns the URL of a database server that does not exist, with a password.
func absent(t *testing.T) string {
	t.Helper()
	return "postgres://kontor:s3cret@" + testenv.FreeAddress(t) + "/kontor"
}

func TestDatabase_NeedsTheMasterKey(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	environ := []string{"KONTOR_DATA_URL=" + absent(t), "KONTOR_DATA_DIR=" + dir}
	for _, args := range [][]string{{"serve", "--server.listen=127.0.0.1:0"}, {"apikey", "list"}, {"user", "role", "root"}, {"check"}, {"key", "status"}, {"privacy", "ledger", "-"}} {
		o := run(environ, "", args...)
		if o.code != 1 || !strings.Contains(o.stderr, "KONTOR_SECRET_KEY must be set with data.url") || !strings.Contains(o.stderr, "openssl rand -hex 32") {
			t.Errorf("%v: exit %d, %q", args, o.code, o.stderr)
		}
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the data directory was created")
	}
}

func TestDatabase_ThatIsAbsentIsNamedWithoutThePassword(t *testing.T) {
	environ := []string{"KONTOR_DATA_URL=" + absent(t) + "?connect_timeout=2", "KONTOR_SECRET_KEY=" + strings.Repeat("ab", 32)}
	for _, args := range [][]string{{"serve", "--server.listen=127.0.0.1:0"}, {"apikey", "list"}, {"check"}, {"key", "status"}, {"audit", "export"}, {"settings"}} {
		o := run(environ, "", args...)
		if strings.Contains(o.stdout+o.stderr, "s3cret") {
			t.Errorf("%v shows the password: %s%s", args, o.stdout, o.stderr)
		}
		if args[0] != "settings" && (o.code != 1 || !strings.Contains(o.stderr, "@127.0.0.1:") && !strings.Contains(o.stderr, `the database "kontor" at 127.0.0.1:`)) {
			t.Errorf("%v: exit %d, %q, want the name of the database", args, o.code, o.stderr)
		}
	}
	for _, wrong := range []string{"?sslrootcert=/nowhere", "?sslmode=verify-full&sslrootcert=/nowhere"} {
		o := run([]string{environ[0] + wrong, "KONTOR_DATA_URL=" + absent(t) + wrong, environ[1]}, "", "serve", "--server.listen=127.0.0.1:0")
		if o.code != 1 || !strings.Contains(o.stderr, "/nowhere") || strings.Contains(o.stderr, "s3cret") {
			t.Errorf("%s: exit %d, %q", wrong, o.code, o.stderr)
		}
	}
}

func TestDatabase_CommandsOfADirectoryAreRejected(t *testing.T) {
	environ := []string{"KONTOR_DATA_URL=" + absent(t), "KONTOR_SECRET_KEY=" + strings.Repeat("ab", 32)}
	file := filepath.Join(t.TempDir(), "file")
	for want, args := range map[string][]string{
		"pg_dump":                     {"backup", file},
		"pg_dump or WAL archiving":    {"restore", file},
		"is in KONTOR_SECRET_KEY":     {"key", "export", file},
		"is in KONTOR_SECRET_KEY; ":   {"key", "import", file},
		"a data directory of its own": {"serve", "--sandbox", "--server.listen=127.0.0.1:0"},
		"there is no demo":            {"serve", "--demo", "--server.listen=127.0.0.1:0"},
	} {
		expectFailure(t, run(environ, "", args...), want)
	}
}

func TestCopy_RejectsWrongPlaces(t *testing.T) {
	dir, url := newDataDir(t), absent(t)
	for want, args := range map[string][]string{
		"--from":                                {"--to", dir},
		"--to":                                  {"--from", dir},
		"from a data directory to a PostgreSQL": {"--from", dir, "--to", filepath.Join(t.TempDir(), "x")},
		"--from must be a URL such as postgres://": {"--from", "mysql://s3cret@db.example/kontor", "--to", dir},
		"KONTOR_SECRET_KEY must be set":            {"--from", url, "--to", filepath.Join(t.TempDir(), "x")},
		"cannot be reached":                        {"--from", dir, "--to", url},
		"cannot be read":                           {"--from", filepath.Join(t.TempDir(), "absent"), "--to", url},
	} {
		o := run(nil, "", append([]string{"copy"}, args...)...)
		expectFailure(t, o, want)
		if strings.Contains(o.stderr, "s3cret") {
			t.Errorf("%v shows the password: %s", args, o.stderr)
		}
	}
}
