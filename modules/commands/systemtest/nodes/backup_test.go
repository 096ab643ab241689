package nodes_test

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kontor/modules/commands/systemtest"
	"kontor/store/postgres/postgrestest"
	"kontor/store/testenv"
)

// postgresProgram returns the path of a program of PostgreSQL's client.
func postgresProgram(t *testing.T, name string) string {
	t.Helper()
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if err == nil && len(found) > 0 {
		return slices.Max(found)
	}
	return testenv.Tool(t, name) // Debian's package postgresql
}

// TestNodes_AreBackedUpWithPgDump restores a dump that was made under load into another database, with the commands of
// docs/cluster.md.
func TestNodes_AreBackedUpWithPgDump(t *testing.T) {
	address, elsewhere, dump := postgrestest.URL(t), postgrestest.URL(t), filepath.Join(t.TempDir(), "kontor.dump")
	node := startNode(t, address)
	admin := node.Admin()
	l := newLoad(t, "dump")
	acknowledged := l.on(node, admin, 3)
	progress(t, acknowledged, 50)
	least := acknowledged.Load()
	for _, c := range []*exec.Cmd{
		exec.Command(postgresProgram(t, "pg_dump"), "--format=custom", "--no-unlogged-table-data", "--file="+dump, address),
		exec.Command(postgresProgram(t, "pg_restore"), "--exit-on-error", "--single-transaction", "--no-owner", "--dbname="+elsewhere, dump),
	} {
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v %s", c.Args, err, out)
		}
	}
	l.stop()
	restored := append(slices.Clone(nodesEnv), "KONTOR_DATA_URL="+elsewhere)
	if out := systemtest.ExpectSuccess(t, systemtest.Run(t, restored, "check")); !strings.Contains(out, "records match the audit trail") {
		t.Errorf("check printed %q", out)
	}
	systemtest.ExpectFailure(t, systemtest.Run(t, append(restored, "KONTOR_SECRET_KEY="+strings.Repeat("ab", 32)), "check"), "another secret key")
	other := startNode(t, elsewhere)
	if n := int64(other.Admin().Total(t, "/v1/customers?limit=-1")); n < least {
		t.Errorf("%d customers were restored, %d were acknowledged before the dump", n, least)
	}
}
