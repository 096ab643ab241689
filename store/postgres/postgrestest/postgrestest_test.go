package postgrestest_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"kontor/store/postgres/postgrestest"
	"kontor/store/testenv"
)

// ask runs a statement that returns one value.
func ask(t *testing.T, address, statement string) string {
	t.Helper()
	c, err := pgconn.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.WithoutCancel(t.Context()))
	results, err := c.Exec(t.Context(), statement).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	last := results[len(results)-1]
	if len(last.Rows) == 0 {
		return ""
	}
	return string(last.Rows[0][0])
}

const countTables = `SELECT count(*) FROM pg_tables WHERE schemaname = 'public'`

func TestURL_GivesEachTestADatabaseOfItsOwn(t *testing.T) {
	var first string
	t.Run("first", func(t *testing.T) {
		first = postgrestest.URL(t)
		other := postgrestest.URL(t)
		ask(t, first, "CREATE TABLE a (id INT)")
		if got := ask(t, other, countTables); got != "0" {
			t.Errorf("another database has %s tables", got)
		}
	})
	if c, err := pgconn.Connect(t.Context(), first); err == nil {
		c.Close(t.Context())
		t.Error("the database is still there after its test")
	}
}

func TestCopy_FillsTheTemplateOnce(t *testing.T) {
	filled := 0
	fill := func(address string) error {
		filled++
		ask(t, address, "CREATE TABLE a (id INT); INSERT INTO a VALUES (7)")
		return nil
	}
	for range 2 {
		address := postgrestest.Copy(t, t.Name(), fill)
		if got := ask(t, address, "SELECT id FROM a"); got != "7" {
			t.Errorf("the copy has %q, want 7", got)
		}
		ask(t, address, "DELETE FROM a")
	}
	if filled != 1 {
		t.Errorf("the template was filled %d times", filled)
	}
}

func TestServer_KeepsCommittedRowsOverACrash(t *testing.T) {
	p := postgrestest.Server(t, postgrestest.Options{Durable: true, Settings: map[string]string{"work_mem": "1MB"}})
	address := p.URL("postgres")
	if got := ask(t, address, "SHOW fsync"); got != "on" {
		t.Errorf("fsync is %s", got)
	}
	if got := ask(t, address, "SHOW work_mem"); got != "1MB" {
		t.Errorf("work_mem is %s", got)
	}
	ask(t, address, "CREATE TABLE a (id INT); INSERT INTO a VALUES (7)")
	for name, end := range map[string]func(testing.TB){"stop": p.Stop, "crash": p.Crash} {
		end(t)
		if c, err := pgconn.Connect(t.Context(), address); err == nil {
			c.Close(t.Context())
			t.Fatalf("%s: the server still answers", name)
		}
		p.StartAgain(t)
		if got := ask(t, address, "SELECT id FROM a"); got != "7" {
			t.Errorf("%s: the row is %q", name, got)
		}
	}
	if out, err := p.Psql(t, "postgres", "SELECT id FROM a;"); err != nil || out != "7\n" {
		t.Errorf("psql printed %q, %v", out, err)
	}
	if _, err := p.Psql(t, "postgres", "SELECT nothing;"); err == nil || !strings.Contains(err.Error(), "nothing") {
		t.Errorf("psql with a wrong statement: %v", err)
	}
}

// TestServer_IsRemovedWithAProcessThatIsKilled starts a server in a child process, kills the child and waits for the end of
// the server.
func TestServer_IsRemovedWithAProcessThatIsKilled(t *testing.T) {
	if os.Getenv("POSTGRESTEST_CHILD") != "" {
		p := postgrestest.Server(t, postgrestest.Options{})
		os.Stdout.WriteString(p.Socket() + "\n")
		os.Stdin.Read(make([]byte, 1)) // until it is killed
		return
	}
	testenv.Need(t, testenv.Full)
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), "POSTGRESTEST_CHILD=1")
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	hold, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Close()
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 4096)
	n, err := out.Read(line)
	dir := strings.TrimSpace(string(line[:n]))
	if err != nil || !filepath.IsAbs(dir) {
		t.Fatalf("the child printed %q, %v", line[:n], err)
	}
	data, err := os.Open(filepath.Join(dir, "data", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	defer data.Close()
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	child.Wait()
	testenv.Wait(t, "the end of the server", func() bool {
		_, err := os.Stat(dir)
		return os.IsNotExist(err)
	})
}
