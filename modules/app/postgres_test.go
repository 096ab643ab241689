package app_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"kontor/store/postgres/postgrestest"
)

// postgres is a PostgreSQL server on which statements are compiled.
type postgres struct{ *postgrestest.Instance }

func startPostgres(t *testing.T) postgres {
	t.Helper()
	return postgres{postgrestest.Server(t, postgrestest.Options{})}
}

// psql runs a script, see [postgrestest.Instance.Psql].
func (p postgres) psql(t *testing.T, script string, args ...string) (string, error) {
	t.Helper()
	return p.Psql(t, "postgres", script, args...)
}

// compile compiles statements and returns the errors of those that PostgreSQL rejects.
func (p postgres) compile(t *testing.T, statements []string) map[string]string {
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
