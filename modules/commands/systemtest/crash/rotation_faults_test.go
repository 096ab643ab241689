//go:build linux && amd64

package crash_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"kontor/modules/commands/systemtest"
	"kontor/store/testenv"
)

// sealedColumn is a line of progress. How many columns a rotation seals before it fails depends on what else the server writes.
var sealedColumn = regexp.MustCompile(`(?m)^[a-z_]+\.[a-z_]+: \d+ values sealed\n`)

// A rotation on a full disk fails, or it is completed later: the same command succeeds when there is space again. Before that,
// the database opens with the key that is in the directory.
func TestFaults_AFullDiskDuringARotation(t *testing.T) {
	dir := newRotatable(t)
	for _, c := range []struct {
		file, fault, want string
		orSucceeds        bool // strace counts the calls of each thread, so that the rotation may end before
	}{
		{"secret.key.next", "openat:error=ENOSPC", "secret.key.next: no space left on device", false},
		{"secret.key.next", "write:error=ENOSPC", "secret.key.next: no space left on device", false},
		{"secret.key.next", "fsync:error=EIO", "secret.key.next: input/output error", false},
		{"secret.key", "renameat:error=EROFS", "repeat the command: rename", false},
		{"kontor.db-wal", "pwrite64:error=ENOSPC:when=1+", "no space to write", false},
		{"kontor.db-wal", "pwrite64:error=ENOSPC:when=6+", "no space to write", true},
		{"kontor.db-wal", "pwrite64:error=ENOSPC:when=14+", "no space to write", true},
		{"kontor.db-wal", "pwrite64:error=ENOSPC:when=22+", "no space to write", true},
	} {
		t.Run(fmt.Sprint(c.file, " ", c.fault), func(t *testing.T) {
			t.Parallel()
			full := systemtest.CopyDataDir(t, dir)
			p := systemtest.Start(t, full)
			admin := p.Admin()
			p.WaitForCheckpoint()
			release := systemtest.Inject(t, p, filepath.Join(full, c.file), c.fault)
			o := systemtest.Run(t, nil, "key", "rotate", "--data.dir", full)
			if o.Code != 0 || !c.orSucceeds {
				o.Stdout = sealedColumn.ReplaceAllString(o.Stdout, "")
				systemtest.ExpectFailure(t, o, c.want)
			}
			admin.Do(t, "GET", "/v1/users/me", "", 200)
			release()
			systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "check", "--data.dir", full))
			testenv.Wait(t, "the rotation to succeed", func() bool {
				o = systemtest.Run(t, nil, "key", "rotate", "--data.dir", full)
				return o.Code == 0
			})
			admin.Do(t, "GET", "/v1/users/me", "", 200)
			if code := p.Stop(); code != 0 {
				t.Errorf("exit code %d: %s", code, p.Stderr)
			}
			if _, err := os.Stat(filepath.Join(full, "secret.key.next")); err == nil {
				t.Error("secret.key.next remains")
			}
			expectRotatable(t, full)
		})
	}
}
