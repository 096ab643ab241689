package nodes_test

import (
	"strings"
	"sync"
	"testing"

	"kontor/modules/commands/systemtest"
	"kontor/store/postgres/postgrestest"
)

// TestNodes_StartTogetherOnAnEmptyDatabase starts four nodes at the same time. One of them sets the database up and prints the
// secrets; all of them accept what it printed.
func TestNodes_StartTogetherOnAnEmptyDatabase(t *testing.T) {
	environ := []string{"KONTOR_SECRET_KEY=" + strings.Repeat("c0de", 16), "KONTOR_DATA_URL=" + postgrestest.URL(t)}
	nodes := make([]*systemtest.Process, 4)
	var starting sync.WaitGroup
	for i := range nodes {
		p := systemtest.Launch(t, environ)
		nodes[i] = p
		starting.Go(p.Listens)
	}
	starting.Wait()
	var shown []string
	for _, p := range nodes {
		if p.URL == "" {
			t.Fatalf("a node ended with %d: %s", p.Code(), p.Stderr)
		}
		if out := p.Stdout.String(); out != "" {
			shown = append(shown, out)
		}
	}
	if len(shown) != 1 {
		t.Fatalf("%d nodes printed secrets: %q", len(shown), shown)
	}
	for _, p := range nodes {
		admin := p.SignIn(systemtest.WordAfter(shown[0], "administrator"), systemtest.WordAfter(shown[0], "password"))
		if n := admin.Total(t, "/v1/users?limit=-1"); n != 1 {
			t.Errorf("there are %d users", n)
		}
		p.Client("X-API-Key", systemtest.WordAfter(shown[0], "API key")).Do(t, "GET", "/v1/public-endpoint", "", 200)
		checkTrail(t, admin)
	}
	again := systemtest.StartWith(t, environ)
	if out := again.Stdout.String(); out != "" {
		t.Errorf("a later start printed %q", out)
	}
}
