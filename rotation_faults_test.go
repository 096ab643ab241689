//go:build linux && amd64

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A rotation on a full disk fails, or it is completed later: the same command succeeds when there is space again. Before that,
// the database opens with the key that is in the directory.
func TestFaults_AFullDiskDuringARotation(t *testing.T) {
	dir := newRotatable(t)
	for _, c := range []struct{ file, fault string }{
		{"secret.key.next", "openat:error=ENOSPC"},
		{"secret.key.next", "write:error=ENOSPC"},
		{"secret.key.next", "fsync:error=EIO"},
		{"secret.key", "renameat:error=EROFS"},
		{"kontor.db-wal", "pwrite64:error=ENOSPC:when=1+"},
		{"kontor.db-wal", "pwrite64:error=ENOSPC:when=6+"},
		{"kontor.db-wal", "pwrite64:error=ENOSPC:when=14+"},
		{"kontor.db-wal", "pwrite64:error=ENOSPC:when=22+"},
	} {
		t.Run(fmt.Sprint(c.file, " ", c.fault), func(t *testing.T) {
			t.Parallel()
			full := copyDir(t, dir)
			p := start(t, full)
			admin := p.admin()
			p.waitForCheckpoint()
			release := inject(t, p, filepath.Join(full, c.file), c.fault)
			o := run(t, nil, "key", "rotate", "--data.dir", full)
			if o.code == 0 && o.stderr != "" || o.code != 0 && !strings.HasPrefix(o.stderr, "kontor: ") {
				t.Errorf("exit code %d, stderr %q", o.code, o.stderr)
			}
			t.Logf("exit code %d, %s", o.code, o.stderr)
			admin.do(t, "GET", "/v1/users/me", "", 200)
			release()
			expectSuccess(t, run(t, nil, "check", "--data.dir", full))
			waitUntil(t, func() bool {
				o = run(t, nil, "key", "rotate", "--data.dir", full)
				return o.code == 0
			})
			admin.do(t, "GET", "/v1/users/me", "", 200)
			if code := p.stop(); code != 0 {
				t.Errorf("exit code %d: %s", code, p.stderr)
			}
			if _, err := os.Stat(filepath.Join(full, "secret.key.next")); err == nil {
				t.Error("secret.key.next remains")
			}
			expectRotatable(t, full)
		})
	}
}
