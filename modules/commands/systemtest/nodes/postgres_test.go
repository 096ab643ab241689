package nodes_test

import (
	"testing"
	"time"

	"kontor/modules/commands/systemtest"
	"kontor/store/postgres/postgrestest"
	"kontor/store/testenv"
)

// TestNodes_SurviveThePostgreSQLServer stops and crashes PostgreSQL under the load of two nodes. With fsync on, nothing that was
// acknowledged is lost. The nodes are not ready meanwhile and recover by themselves.
func TestNodes_SurviveThePostgreSQLServer(t *testing.T) {
	server := postgrestest.Server(t, postgrestest.Options{Durable: true})
	address := server.URL("postgres")
	nodes := []*systemtest.Process{startNode(t, address), startNode(t, address)}
	admin := nodes[0].Admin()
	l := newLoad(t, "server")
	for _, p := range nodes {
		l.on(p, admin.At(p), 6)
	}
	ends := []func(testing.TB){server.Crash, server.Stop}
	for round := range nodeRounds(4) {
		progress(t, &l.acknowledged, 60)
		ends[round%len(ends)](t)
		for _, p := range nodes {
			testenv.Wait(t, "the node to be unready", func() bool { return !admin.At(p).Ready() })
			p.Client().Do(t, "GET", "/healthz", "", 200)
		}
		server.StartAgain(t)
		began := time.Now()
		for _, p := range nodes {
			testenv.Wait(t, "the node to be ready", admin.At(p).Ready)
		}
		t.Logf("round %d: the nodes were back after %v", round, time.Since(began).Round(time.Millisecond))
	}
	progress(t, &l.acknowledged, 60)
	l.check(t, nodes[1])
	for _, p := range nodes {
		if code := p.Stop(); code != 0 {
			t.Errorf("exit code %d: %s", code, p.Stderr)
		}
	}
}
