package nodes_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"kontor/modules/commands/systemtest"
	"kontor/store/postgres/postgrestest"
	"kontor/store/testenv"
)

// migrated returns migrations of versions that do not exist yet, as sources for buildWith.
func migrated(versions int) map[string]string {
	files := map[string]string{}
	for n := range versions {
		path := testenv.Path(fmt.Sprintf("store/migrations/%d_test.sql", 9001+n))
		files[path] = fmt.Sprintf("-- +goose Up\nCREATE TABLE added_%d (id TEXT PRIMARY KEY);\nALTER TABLE customers ADD COLUMN added_%d TEXT NOT NULL DEFAULT '';\n\n"+
			"-- +goose Down\nALTER TABLE customers DROP COLUMN added_%d;\nDROP TABLE added_%d;\n", n, n, n, n)
	}
	return files
}

// TestNodes_AreUpgradedOneByOne starts nodes of the next version beside those of this one, under load, and then one of the version
// after the next. A node that is one version back continues and may even start again. One that is two versions back does
// neither.
func TestNodes_AreUpgradedOneByOne(t *testing.T) {
	next, last := buildWith(t, migrated(1)), buildWith(t, migrated(2))
	address := postgrestest.URL(t)
	environ := append(slices.Clone(nodesEnv), "KONTOR_DATA_URL="+address)
	old, leaving := startNode(t, address), startNode(t, address)
	admin := old.Admin()
	l := newLoad(t, "upgrade")
	onOld, onLeaving := l.on(old, admin, 3), l.on(leaving, admin.At(leaving), 3)
	progress(t, onLeaving, 20)

	upgraded := systemtest.StartProgram(t, next, environ, "--rate_limits.enabled=false")
	onUpgraded := l.on(upgraded, admin.At(upgraded), 3)
	for _, on := range []*atomic.Int64{onOld, onLeaving, onUpgraded} {
		progress(t, on, 20)
	}
	if code := leaving.Stop(); code != 0 {
		t.Errorf("exit code %d: %s", code, leaving.Stderr)
	}
	back := startNode(t, address) // the upgrade of this node is taken back
	progress(t, l.on(back, admin.At(back), 3), 20)
	for n, pair := range [][2]*systemtest.Process{{upgraded, old}, {old, upgraded}} {
		u := pair[0].Account(pair[0].Admin(), fmt.Sprintf("upgrade%d@example.ch", n), "Advisor")
		holdsAtOnce(t, pair[1], func(at *systemtest.Client) (systemtest.Answer, error) {
			return u.Using(at).Try("GET", "/v1/users/me", "")
		},
			func() { u.Do(t, "POST", "/v1/logout", "", 200) }, 401)
	}

	newest := systemtest.StartProgram(t, last, environ, "--rate_limits.enabled=false")
	onNewest := l.on(newest, admin.At(newest), 3)
	for _, p := range []*systemtest.Process{old, back} {
		testenv.Wait(t, "the old node to be unready", func() bool { return !admin.At(p).Ready() })
		if got, err := admin.At(p).Try("POST", "/v1/customers", `{"first_name":"Anna","last_name":"Muster","email":"late@example.ch"}`); err == nil && got.Status != 503 {
			t.Errorf("a node that is two versions back answered a write with %d %s", got.Status, got.Body)
		}
	}
	systemtest.ExpectFailure(t, systemtest.Run(t, environ, "serve", "--server.listen=127.0.0.1:0"), "newer version")
	progress(t, onUpgraded, 20)
	progress(t, onNewest, 20)
	l.check(t, newest)
}
