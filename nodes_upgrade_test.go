package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"kontor/store/postgres/postgrestest"
)

// migrated returns migrations of versions that do not exist yet, as sources for buildWith.
func migrated(t *testing.T, versions int) map[string]string {
	t.Helper()
	files := map[string]string{}
	for n := range versions {
		path, err := filepath.Abs(fmt.Sprintf("store/migrations/%d_test.sql", 9001+n))
		if err != nil {
			t.Fatal(err)
		}
		files[path] = fmt.Sprintf("-- +goose Up\nCREATE TABLE added_%d (id TEXT PRIMARY KEY);\nALTER TABLE customers ADD COLUMN added_%d TEXT NOT NULL DEFAULT '';\n\n"+
			"-- +goose Down\nALTER TABLE customers DROP COLUMN added_%d;\nDROP TABLE added_%d;\n", n, n, n, n)
	}
	return files
}

// TestNodes_AreUpgradedOneByOne starts nodes of the next version beside those of this one, under load, and then one of the version
// after the next. A node that is one version back continues and may even start again. One that is two versions back does
// neither.
func TestNodes_AreUpgradedOneByOne(t *testing.T) {
	next, last := buildWith(t, migrated(t, 1)), buildWith(t, migrated(t, 2))
	address := postgrestest.URL(t)
	environ := append(slices.Clone(nodesEnv), "KONTOR_DATA_URL="+address)
	old, leaving := startNode(t, address), startNode(t, address)
	admin := old.admin()
	l := newLoad(t, "upgrade")
	onOld, onLeaving := l.on(old, admin, 3), l.on(leaving, admin.at(leaving), 3)
	progress(t, onLeaving, 20)

	upgraded := startProgram(t, next, environ, "--rate_limits.enabled=false")
	onUpgraded := l.on(upgraded, admin.at(upgraded), 3)
	for _, on := range []*atomic.Int64{onOld, onLeaving, onUpgraded} {
		progress(t, on, 20)
	}
	if code := leaving.stop(); code != 0 {
		t.Errorf("exit code %d: %s", code, leaving.stderr)
	}
	back := startNode(t, address) // the upgrade of this node is taken back
	progress(t, l.on(back, admin.at(back), 3), 20)
	for n, pair := range [][2]*process{{upgraded, old}, {old, upgraded}} {
		u := pair[0].account(pair[0].admin(), fmt.Sprintf("upgrade%d@example.ch", n), "Advisor")
		holdsAtOnce(t, pair[1], func(at *client) (answer, error) { return u.using(at).try("GET", "/v1/users/me", "") },
			func() { u.do(t, "POST", "/v1/logout", "", 200) }, 401)
	}

	newest := startProgram(t, last, environ, "--rate_limits.enabled=false")
	onNewest := l.on(newest, admin.at(newest), 3)
	for _, p := range []*process{old, back} {
		waitUntil(t, func() bool { return !admin.at(p).ready() })
		if got, err := admin.at(p).try("POST", "/v1/customers", `{"first_name":"Anna","last_name":"Muster","email":"late@example.ch"}`); err == nil && got.status != 503 {
			t.Errorf("a node that is two versions back answered a write with %d %s", got.status, got.body)
		}
	}
	expectFailure(t, run(t, environ, "serve", "--server.listen=127.0.0.1:0"), "newer version")
	progress(t, onUpgraded, 20)
	progress(t, onNewest, 20)
	l.check(t, newest)
}
