package nodes_test

import (
	"slices"
	"strings"
	"testing"

	"kontor/modules/commands/systemtest"
	"kontor/store/postgres/postgrestest"
	"kontor/store/testenv"
)

// nodesHealth is what /readyz says of a node.
type nodesHealth struct {
	Checks map[string]string
	Nodes  []struct {
		Name, Started string
		Self          bool
		OtherSettings []string `json:"other_settings"`
	}
}

func healthOf(t *testing.T, p *systemtest.Process) (h nodesHealth) {
	t.Helper()
	p.Client().Do(t, "GET", "/readyz", "", 200).Decode(t, &h)
	return h
}

// TestNodes_SayWhichSettingsDiffer starts nodes that disagree about rules and about a secret, and one that agrees but has another address.
func TestNodes_SayWhichSettingsDiffer(t *testing.T) {
	address := postgrestest.URL(t)
	same := []string{"--kyc.four_eyes=always", "--cors.allowed_origins=https://a.example,https://b.example"}
	first := startNode(t, address, append(same, "--cluster.node=first", "--log.level=debug")...)
	second := startNode(t, address, append(same, "--cluster.node=second", "--data.connections=4")...)
	for _, p := range []*systemtest.Process{first, second} {
		testenv.Wait(t, "the nodes to see each other", func() bool { return len(healthOf(t, p).Nodes) == 2 })
		if h := healthOf(t, p); h.Checks["settings"] != "ok" {
			t.Errorf("nodes that agree: %+v", h)
		}
	}
	odd := startNode(t, address, "--cluster.node=odd", "--kyc.four_eyes=off", "--cors.allowed_origins=https://a.example",
		"--server.base_url=https://secret-place.example", "--notifications.email.smtp_url=smtp://user:hunter2@mail.example:587", "--notifications.email.from=a@b.example")
	want := []string{"server.base_url", "cors.allowed_origins", "notifications.email.smtp_url", "notifications.email.from", "kyc.four_eyes"}
	testenv.Wait(t, "the difference to be shown", func() bool { return healthOf(t, first).Checks["settings"] == "warning" })
	for _, n := range healthOf(t, first).Nodes {
		if n.Name == "odd" && !sameNames(n.OtherSettings, want) || n.Name != "odd" && n.OtherSettings != nil {
			t.Errorf("%s differs in %v", n.Name, n.OtherSettings)
		}
	}
	for _, p := range []*systemtest.Process{first, odd} {
		testenv.Wait(t, "the log to name them", func() bool {
			log := p.Stderr.String()
			return strings.Contains(log, "kyc.four_eyes") && strings.Contains(log, "server.base_url")
		})
		if log := p.Stderr.String(); strings.Contains(log, "hunter2") {
			t.Error("the log has a secret")
		}
	}
	if shown := postgrestest.Rows(t, address, `SELECT settings FROM kontor_nodes`); strings.Contains(strings.Join(shown, ""), "secret-place") {
		t.Errorf("the rows of the nodes have values: %v", shown)
	}
	if code := odd.Stop(); code != 0 {
		t.Errorf("exit code %d: %s", code, odd.Stderr)
	}
	testenv.Wait(t, "the warning to end", func() bool { return healthOf(t, first).Checks["settings"] == "ok" })
	testenv.Wait(t, "the log to say so", func() bool { return strings.Contains(first.Stderr.String(), "agree again") })
}

func sameNames(got, want []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want)))
}
