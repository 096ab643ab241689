package nodes_test

import (
	"strings"
	"testing"

	"kontor/modules/commands/systemtest"
	"kontor/store/postgres/postgrestest"
	"kontor/store/testenv"
)

// TestNodes_RefuseAFormerPrimary promotes a standby under two nodes, and lets the former primary return alone. The nodes refuse it and
// say so, also after a restart. An operator accepts it on one node, and the other follows.
func TestNodes_RefuseAFormerPrimary(t *testing.T) {
	first := postgrestest.Server(t, postgrestest.Options{Settings: postgrestest.Replicated})
	second := first.Standby(t)
	address := strings.Replace(first.URL("postgres"), first.Addr(), first.Addr()+","+second.Addr(), 1) + "&target_session_attrs=read-write"
	dir := t.TempDir()
	nodes := []*systemtest.Process{startNode(t, address, "--data.dir", dir), startNode(t, address)}
	admin := nodes[0].Admin()
	const create = `{"first_name":"Anna","last_name":"Muster","email":"anna@example.ch"}`
	first.Stop(t) // the standby has received everything
	second.Promote(t)
	for _, p := range nodes {
		testenv.Wait(t, "the node to be ready", admin.At(p).Ready)
		admin.At(p).Do(t, "POST", "/v1/customers", create, 201)
	}
	second.Stop(t)
	first.StartAgain(t)
	for _, p := range nodes {
		var health struct{ Checks map[string]string }
		testenv.Wait(t, "the former primary to be refused", func() bool {
			got, err := admin.At(p).Try("GET", "/readyz", "")
			if err != nil {
				return false
			}
			health.Checks = nil
			got.Decode(t, &health)
			return got.Status == 503 && health.Checks["primary"] == "failed"
		})
		if health.Checks["durability"] != "failed" && health.Checks["durability"] != "warning" {
			t.Errorf("a server without fsync: %v", health.Checks)
		}
		admin.At(p).Do(t, "POST", "/v1/customers", create, 503)
		admin.At(p).Do(t, "GET", "/v1/customers", "", 503)
		p.Client().Do(t, "GET", "/healthz", "", 200)
		testenv.Wait(t, "the log to say it", func() bool {
			log := p.Stderr.String()
			return strings.Contains(log, "is a former primary") && strings.Contains(log, "--accept-loss")
		})
	}
	nodes[0].Stop()
	refused := systemtest.Launch(t, append(append([]string{}, nodesEnv...), "KONTOR_DATA_URL="+address), "--data.dir", dir)
	if refused.Listens(); refused.URL != "" || refused.Code() == 0 || !strings.Contains(refused.Stderr.String(), "is a former primary") {
		t.Fatalf("a restart used the former primary: %s", refused.Stderr)
	}
	accepting := startNode(t, address, "--data.dir", dir, "--accept-loss")
	accepted := accepting.Admin()
	if n := accepted.Total(t, "/v1/audit?limit=-1&search.action=database.accept_loss"); n != 1 {
		t.Errorf("%d audit entries of the acceptance", n)
	}
	accepted.Do(t, "POST", "/v1/customers", create, 201)
	testenv.Wait(t, "the other node to follow", accepted.At(nodes[1]).Ready)
	if n := accepted.At(nodes[1]).Total(t, "/v1/customers?limit=-1"); n != 1 {
		t.Errorf("%d customers", n)
	}
	nodes[1].Stop()
	if code := accepting.Stop(); code != 0 {
		t.Errorf("exit code %d: %s", code, accepting.Stderr)
	}
}
