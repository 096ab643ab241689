package browser_test

import (
	"strings"
	"testing"

	"kontor/store/postgres/postgrestest"
)

// TestHealth_ShowsTheNodes opens the health screen of one of two nodes on one database.
func TestHealth_ShowsTheNodes(t *testing.T) {
	t.Setenv("KONTOR_SECRET_KEY", strings.Repeat("c0de", 16))
	url := postgrestest.URL(t)
	s := newServer(t, "--data.url", url, "--cluster.node=first-node")
	second := newServer(t, "--data.url", url, "--cluster.node=second-node")
	v := signedIn(t, s, desk, firstAdmin)
	for _, language := range []string{"en", "de", "fr", "it"} {
		v.setLanguage(language)
		v.open("/admin/health")
		v.see("first-node")
		v.see("second-node")
		v.see(v.text("health_check.cluster"))
	}
	second.stop()
	v.until(`!document.body.innerText.includes('second-node')`)
}
