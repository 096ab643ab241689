package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
)

const (
	readBill = "/v1/invoices/qrcode"
	goodBill = "testdata/qr/files/png-100-b60-00.png"
	goodPDF  = "testdata/qr/files/pair-0.pdf"
)

// upload returns the body of a request to read a bill.
func upload(file []byte) string {
	body, _ := json.Marshal(map[string]string{"base64_file": base64.StdEncoding.EncodeToString(file)}) // cannot fail for strings
	return string(body)
}

func sample(tb testing.TB, name string) []byte {
	tb.Helper()
	file, err := os.ReadFile(name)
	if err != nil {
		tb.Fatal(err)
	}
	return file
}

// advisors creates users in a data directory without a running server, and returns their names.
func advisors(tb testing.TB, dir string, count int) []string {
	tb.Helper()
	var names []string
	for n := range count {
		name := fmt.Sprintf("advisor%d@kontor.example", n)
		cmd := command(tb, secretsEnv, "user", "create", name, "--role=Advisor", "--data.dir", dir)
		cmd.Stdin = strings.NewReader(adminPassword + "\n")
		if out, err := cmd.CombinedOutput(); err != nil {
			tb.Fatalf("%v: %s", err, out)
		}
		names = append(names, name)
	}
	return names
}

var compiling sync.Mutex

// compiledEngine returns a directory with the compiled PDF engine. It compiles the engine once, which takes seconds.
func compiledEngine(tb testing.TB) string {
	tb.Helper()
	compiling.Lock()
	defer compiling.Unlock()
	cmd := command(tb, nil, "qrbill", goodPDF)
	home := filepath.Join(workDir, "home")
	engine := filepath.Join(home, "kontor", "pdf-engine")
	if _, err := os.Stat(engine); err == nil {
		return engine
	}
	cmd.Env = append(cmd.Env, "XDG_CACHE_HOME="+home, "HOME="+home)
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("%v: %s", err, out)
	}
	return engine
}

// newDataDirWithEngine returns a new data directory with the compiled PDF engine.
func newDataDirWithEngine(tb testing.TB) string {
	tb.Helper()
	engine := compiledEngine(tb)
	dir := tb.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		tb.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(dir, "cache"), os.DirFS(engine)); err != nil {
		tb.Fatal(err)
	}
	return dir
}

// workers returns the ids of the child processes of a process.
func workers(pid int) []int {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is right
	var all []int
	for _, list := range lists {
		children, _ := os.ReadFile(list) // the thread may have ended
		for _, field := range strings.Fields(string(children)) {
			var child int
			if _, err := fmt.Sscan(field, &child); err == nil {
				all = append(all, child)
			}
		}
	}
	return all
}

// expectEnded waits until all processes, which have been killed, have ended.
func expectEnded(tb testing.TB, pids []int) {
	tb.Helper()
	for _, pid := range pids {
		for syscall.Kill(pid, 0) == nil {
			state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			if err != nil {
				break
			}
			_, rest, _ := strings.Cut(string(state), ") ")
			if strings.HasPrefix(rest, "Z") { // ended, but its parent has not waited for it yet
				break
			}
			runtime.Gosched()
		}
	}
}

func TestHostileFiles_AreRejected(t *testing.T) {
	p := start(t, newDataDirWithEngine(t))
	admin := p.admin()
	var attacks []attack
	for n := range hostileKinds {
		kind, file := hostileFile(n)
		attacks = append(attacks, attack{name: kind, by: admin, method: "POST", path: readBill, body: upload(file), status: 400,
			code: "invalid_input", contains: []string{`"reason":"`}, excludes: []string{"worker", "sandbox", "goroutine", "/proc"}})
	}
	attacks = append(attacks,
		attack{name: "an empty file", by: admin, method: "POST", path: readBill, body: `{"base64_file":""}`, status: 400, contains: []string{"invalid_base64"}},
		attack{name: "not a string", by: admin, method: "POST", path: readBill, body: `{"base64_file":[[["x"]]]}`, status: 400, contains: []string{"invalid_base64"}},
		attack{name: "an incomplete escape", by: admin, method: "POST", path: readBill, body: `{"base64_file":"\u00"}`, status: 400, code: "common.invalid_input"},
		attack{name: "two files", by: admin, method: "POST", path: readBill, body: `{"base64_file":"YQ==","base64_file":"Yg=="}`, status: 400, code: "common.invalid_input"},
	)
	runAttacks(t, attacks)
	admin.do(t, "POST", readBill, upload(sample(t, goodBill)), 200)
	admin.do(t, "POST", readBill, upload(sample(t, goodPDF)), 200)
	if code := p.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestWorkers_EndWithTheServer(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("run the tests on Linux to see the processes of the server")
	}
	for name, end := range map[string]func(*process){
		"killed":  func(p *process) { p.kill() },
		"stopped": func(p *process) { p.stop() },
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, newDataDirWithEngine(t))
			admin := p.admin()
			admin.do(t, "POST", readBill, upload(sample(t, goodPDF)), 200)
			_, endless := hostileFile(0)
			var group sync.WaitGroup
			group.Go(func() { _, _ = admin.try("POST", readBill, upload(endless)) }) // aborted, or 503
			pids := workers(p.cmd.Process.Pid)
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
	if runtime.GOOS != "linux" {
		t.Skip("run the tests on Linux to see the processes of the server")
	}
	p := start(t, newDataDirWithEngine(t))
	admin := p.admin()
	bill := upload(sample(t, goodPDF))
	admin.do(t, "POST", readBill, bill, 200)
	for range 20 {
		killed := make(chan struct{})
		go func() {
			defer close(killed)
			for _, pid := range workers(p.cmd.Process.Pid) {
				_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
			}
		}()
		got, err := admin.try("POST", readBill, bill)
		<-killed
		if err != nil || got.status != 200 && (got.status != 503 || got.header.Get("Retry-After") == "") {
			t.Fatalf("got %d %s, %v", got.status, got.body, err)
		}
	}
	for range 3 { // the server may not have noticed the end of some idle workers
		if got, err := admin.try("POST", readBill, bill); err == nil && got.status == 200 {
			return
		}
	}
	t.Error("no bill can be read after the workers were killed")
}
