package bills_test

import (
	"sync"
	"syscall"
	"testing"

	"kontor/modules/commands/systemtest"
)

func TestWorkers_EndWithTheServer(t *testing.T) {
	for name, end := range map[string]func(*systemtest.Process){
		"killed":  func(p *systemtest.Process) { p.Kill() },
		"stopped": func(p *systemtest.Process) { p.Stop() },
	} {
		t.Run(name, func(t *testing.T) {
			p := systemtest.Start(t, newDataDirWithEngine(t))
			admin := p.Admin()
			admin.Do(t, "POST", readBill, upload(sample(t, goodPDF)), 200)
			_, endless := hostileFile(0)
			var group sync.WaitGroup
			group.Go(func() { _, _ = admin.Try("POST", readBill, upload(endless)) }) // aborted, or 503
			pids := systemtest.Workers(p.Cmd.Process.Pid)
			if len(pids) == 0 {
				t.Error("the server has no worker")
			}
			end(p)
			group.Wait()
			expectEnded(t, pids)
		})
	}
}

func TestWorkers_KilledFromOutsideAreReplaced(t *testing.T) {
	p := systemtest.Start(t, newDataDirWithEngine(t), "--invoices.timeout_seconds=3600") // a busy machine does not fail the good bill
	admin := p.Admin()
	bill := upload(sample(t, goodPDF))
	admin.Do(t, "POST", readBill, bill, 200)
	for range 20 {
		killed := make(chan struct{})
		go func() {
			defer close(killed)
			for _, pid := range systemtest.Workers(p.Cmd.Process.Pid) {
				_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
			}
		}()
		got, err := admin.Try("POST", readBill, bill)
		<-killed
		if err != nil || got.Status != 200 && (got.Status != 503 || got.Header.Get("Retry-After") == "") {
			t.Fatalf("got %d %s, %v", got.Status, got.Body, err)
		}
	}
	for range 3 { // the server may not have noticed the end of some idle workers
		if got, err := admin.Try("POST", readBill, bill); err == nil && got.Status == 200 {
			return
		}
	}
	t.Error("no bill can be read after the workers were killed")
}
