package bills_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kontor/modules/commands/systemtest"
	"kontor/store/testenv"
)

// TestHostileFiles_DoNotDisturbOthers sends hostile files as six users while another user reads. No response may be an
// internal error, other users must be served, and no worker may remain at the end.
func TestHostileFiles_DoNotDisturbOthers(t *testing.T) {
	const clients = 6
	count := testenv.Rounds(0, 12, 1000)
	dir := newDataDirWithEngine(t)
	systemtest.Start(t, dir).Stop() // the first start creates the administrator
	names := advisors(t, dir, clients)
	p := systemtest.Start(t, dir)
	admin := p.Admin()
	admin.Do(t, "POST", readBill, upload(sample(t, goodPDF)), 200)

	var next atomic.Int64
	var mutex sync.Mutex
	answers := map[string]int{}
	var group sync.WaitGroup
	for _, name := range names {
		attacker := p.SignIn(name, systemtest.AdminPassword)
		group.Go(func() {
			for n := int(next.Add(1) - 1); n < count; n = int(next.Add(1) - 1) {
				kind, file := hostileFile(n)
				got, err := attacker.Try("POST", readBill, upload(file))
				switch {
				case err != nil:
					t.Errorf("%s (%d): %v", kind, n, err)
				case got.Status == 400 && got.Code() == "invalid_input":
				case got.Status == 503 && got.Header.Get("Retry-After") != "":
				default:
					t.Errorf("%s (%d): got %d %.200s", kind, n, got.Status, got.Body)
				}
				mutex.Lock()
				answers[fmt.Sprint(got.Status)]++
				mutex.Unlock()
			}
		})
	}
	done := make(chan struct{})
	go func() { group.Wait(); close(done) }()
	tick := time.NewTicker(20 * time.Millisecond) // Without a pause the reader takes a core from the attackers.
	defer tick.Stop()
	for served := false; !served; <-tick.C {
		if got, err := admin.Try("GET", "/v1/users/me", ""); err != nil || got.Status != 200 {
			t.Errorf("another user: got %d %s, %v", got.Status, got.Body, err)
			break
		}
		select {
		case <-done:
			served = true
		default:
		}
	}
	<-done
	t.Logf("%d files: %v", count, answers)

	admin.Do(t, "POST", readBill, upload(sample(t, goodBill)), 200)
	admin.Do(t, "POST", readBill, upload(sample(t, goodPDF)), 200)
	pids := systemtest.Workers(p.Cmd.Process.Pid)
	if code := p.Stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	expectEnded(t, pids)
}
