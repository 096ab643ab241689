package crash_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kontor/modules/commands/systemtest"
	"kontor/store/testenv"
)

// kills are the ways to kill a server under load.
var kills = []func(t *testing.T, p *systemtest.Process){
	func(_ *testing.T, p *systemtest.Process) { p.Kill() },
	func(_ *testing.T, p *systemtest.Process) { // during the shutdown
		_ = p.Cmd.Process.Signal(os.Interrupt)
		p.Kill()
	},
	func(t *testing.T, p *systemtest.Process) { // and again during the next start
		p.Kill()
		again := systemtest.Command(t, systemtest.SecretsEnv, "serve", "--server.listen=127.0.0.1:0", "--data.dir", p.Dir())
		if err := testenv.Start(again); err != nil {
			t.Error(err)
			return
		}
		began := time.Now()
		for opened := false; !opened && time.Since(began) < testenv.Limit(); { // until the database is open
			files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", again.Process.Pid))
			opened = err != nil
			for _, f := range files {
				name, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", again.Process.Pid, f.Name()))
				opened = opened || strings.HasSuffix(name, "kontor.db")
			}
		}
		_ = again.Process.Kill()
		_ = again.Wait() // it was killed
	},
}

// TestKill_LosesNoAcknowledgedWrite kills the server under load several times. Every acknowledged customer must exist, with
// its audit entry and its stored answer. The write-ahead log must not grow from start to start.
func TestKill_LosesNoAcknowledgedWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	var all []systemtest.Write
	rounds := testenv.Rounds(0, 3, 200)
	enough := max(600/rounds, 100)
	for round := range rounds {
		p := systemtest.Start(t, dir)
		kill := func() { kills[round%len(kills)](t, p) }
		all = append(all, systemtest.WriteUntilDead(t, p, p.Admin(), round, enough, kill)...)
		p.Kill() // in case the server has not been killed
		if round < len(kills) || round%20 == 0 {
			systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "check", "--data.dir", dir))
		}
		if log, err := os.Stat(filepath.Join(dir, "kontor.db-wal")); err == nil && log.Size() > 80<<20 {
			t.Errorf("after %d kills the log has %d bytes", round+1, log.Size())
		}
	}
	p := systemtest.Start(t, dir)
	admin := p.Admin()
	if customers, created := admin.Total(t, "/v1/customers?limit=-1"), admin.Total(t, "/v1/audit?limit=-1&search.action=customers.create"); customers != created {
		t.Errorf("%d customers, but %d audit entries of their creation", customers, created)
	}
	acknowledged := 0
	for _, w := range all {
		if w.Acknowledged != "" {
			acknowledged++
		}
		systemtest.CheckWrite(t, admin, w)
	}
	if acknowledged < 600 {
		t.Fatalf("only %d writes were acknowledged", acknowledged)
	}
	// checkWrite has sent each request again, which creates the customers that were lost. Each one must exist once.
	if got := admin.Total(t, "/v1/customers?limit=-1"); got != len(all) {
		t.Errorf("%d customers for %d requests", got, len(all))
	}
	if got := admin.Total(t, "/v1/audit?limit=-1&search.action=customers.create"); got != len(all) {
		t.Errorf("%d audit entries for %d requests", got, len(all))
	}
	if code := p.Stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if out := systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "check", "--data.dir", dir)); !strings.Contains(out, "is intact") {
		t.Errorf("check printed %q", out)
	}
}
