package main

import (
	"strings"
	"sync"
	"testing"

	"kontor/store/postgres/postgrestest"
)

// TestNodes_StartTogetherOnAnEmptyDatabase starts four nodes at the same time. One of them sets the database up and prints the
// secrets; all of them accept what it printed.
func TestNodes_StartTogetherOnAnEmptyDatabase(t *testing.T) {
	environ := []string{"KONTOR_SECRET_KEY=" + strings.Repeat("c0de", 16), "KONTOR_DATA_URL=" + postgrestest.URL(t)}
	nodes := make([]*process, 4)
	var starting sync.WaitGroup
	for i := range nodes {
		p := launch(t, environ)
		nodes[i] = p
		starting.Go(p.listens)
	}
	starting.Wait()
	var shown []string
	for _, p := range nodes {
		if p.url == "" {
			t.Fatalf("a node ended with %d: %s", p.code(), p.stderr)
		}
		if out := p.stdout.String(); out != "" {
			shown = append(shown, out)
		}
	}
	if len(shown) != 1 {
		t.Fatalf("%d nodes printed secrets: %q", len(shown), shown)
	}
	for _, p := range nodes {
		admin := p.signIn(wordAfter(shown[0], "administrator"), wordAfter(shown[0], "password"))
		if n := admin.total(t, "/v1/users?limit=-1"); n != 1 {
			t.Errorf("there are %d users", n)
		}
		p.client("X-API-Key", wordAfter(shown[0], "API key")).do(t, "GET", "/v1/public-endpoint", "", 200)
		checkTrail(t, admin)
	}
	again := startWith(t, environ)
	if out := again.stdout.String(); out != "" {
		t.Errorf("a later start printed %q", out)
	}
}
