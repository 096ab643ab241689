//go:build linux && (amd64 || arm64)

package lifecycle_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"kontor/modules/commands/systemtest"
	"kontor/store/testenv"
)

// hashProcesses returns the ids of the processes that hash passwords for a server.
func hashProcesses(t *testing.T, server int) (pids []int) {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		arguments, _ := os.ReadFile(name) // empty for a process that has ended
		if !strings.HasPrefix(string(arguments), "kontor\x00worker\x00password\x00") {
			continue
		}
		stat, _ := os.ReadFile(filepath.Join(filepath.Dir(name), "stat"))
		_, rest, _ := strings.Cut(string(stat), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == strconv.Itoa(server) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
			pids = append(pids, pid)
		}
	}
	return pids
}

// A killed process that hashes passwords never turns a right password into a wrong one, and the server continues.
func TestHashProcess_KilledDuringSignIns(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	p := systemtest.Start(t, dir)
	if code := p.Stop(); code != 0 { // the first start has hashed the administrator's password
		t.Fatalf("exit code %d: %s", code, p.Stderr)
	}
	p = systemtest.Start(t, dir, "--auth.cooling_off.free_attempts=1000")
	server := p.Cmd.Process.Pid
	if pids := hashProcesses(t, server); len(pids) > 0 {
		t.Errorf("the processes %v run before the first password", pids)
	}
	body := fmt.Sprintf(`{"user_id":%q,"password":%q}`, systemtest.AdminEmail, systemtest.AdminPassword)
	signIn := func(allowed ...int) {
		got, err := p.Client().Try("POST", "/authenticate", body)
		if err != nil {
			t.Error(err)
			return
		}
		for _, status := range allowed {
			if got.Status == status {
				return
			}
		}
		t.Errorf("got %d %s", got.Status, got.Body)
	}
	signIn(200)
	for range 5 {
		pids := hashProcesses(t, server)
		for _, pid := range pids { // a sign-in that uses it cannot end before it is killed
			_ = syscall.Kill(pid, syscall.SIGSTOP)
		}
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() { signIn(200, 503) })
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		group.Wait()
		signIn(200)
	}
	if log := p.Stderr.String(); strings.Contains(log, systemtest.AdminPassword) {
		t.Error("the log shows the password")
	}
	last := hashProcesses(t, server)
	if code := p.Stop(); code != 0 {
		t.Errorf("exit code %d: %s", code, p.Stderr)
	}
	for _, pid := range last {
		testenv.Wait(t, "the end of the process", func() bool {
			arguments, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			return !strings.Contains(string(arguments), "password")
		})
	}
}
