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

// TestNodes_NoticeARestoreUnderThem restores an earlier state into the database that two nodes serve. Both refuse it, whether they write or
// not, until an operator accepts the loss.
func TestNodes_NoticeARestoreUnderThem(t *testing.T) {
	address, dump, dir := postgrestest.URL(t), filepath.Join(t.TempDir(), "kontor.dump"), t.TempDir()
	nodes := []*systemtest.Process{startNode(t, address, "--data.dir", dir), startNode(t, address)}
	admin := nodes[0].Admin()
	for n := range 10 {
		admin.At(nodes[n%2]).Do(t, "POST", "/v1/customers", clockCustomer(n), 201)
		if n == 5 {
			if out, err := exec.Command(postgresProgram(t, "pg_dump"), "--format=custom", "--no-unlogged-table-data", "--file="+dump, address).CombinedOutput(); err != nil {
				t.Fatalf("%v %s", err, out)
			}
		}
	}
	restore := exec.Command(postgresProgram(t, "pg_restore"), "--exit-on-error", "--single-transaction", "--clean", "--no-owner", "--dbname="+address, dump)
	if out, err := restore.CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	for _, p := range nodes {
		testenv.Wait(t, "the node to refuse the database", func() bool { return !admin.At(p).Ready() && strings.Contains(p.Stderr.String(), "commits are missing") })
		admin.At(p).Do(t, "POST", "/v1/customers", clockCustomer(11), 503)
		admin.At(p).Do(t, "GET", "/v1/customers", "", 503)
	}
	nodes[0].Stop()
	accepting := startNode(t, address, "--data.dir", dir, "--accept-loss")
	accepting.Admin().Do(t, "POST", "/v1/customers", clockCustomer(12), 201)
	testenv.Wait(t, "the other node to follow", accepting.Admin().At(nodes[1]).Ready)
	checkTrail(t, accepting.Admin())
}
