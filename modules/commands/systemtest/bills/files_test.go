package bills_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"kontor/modules/commands/systemtest"
	"kontor/store/testenv"
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
	file, err := os.ReadFile(testenv.Path(name))
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
		cmd := systemtest.Command(tb, systemtest.SecretsEnv, "user", "create", name, "--role=Advisor", "--data.dir", dir)
		cmd.Stdin = strings.NewReader(systemtest.AdminPassword + "\n")
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
	cmd := systemtest.Command(tb, nil, "qrbill", testenv.Path(goodPDF))
	work, err := systemtest.WorkDir()
	if err != nil {
		tb.Fatal(err)
	}
	home := filepath.Join(work, "home")
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

// expectEnded waits until all processes, which have been killed, have ended.
func expectEnded(tb testing.TB, pids []int) {
	tb.Helper()
	for _, pid := range pids {
		testenv.Wait(tb, fmt.Sprintf("worker %d to end", pid), func() bool {
			state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			if err != nil {
				return true
			}
			_, rest, _ := strings.Cut(string(state), ") ")
			return strings.HasPrefix(rest, "Z") // ended, but its parent has not waited for it yet
		})
	}
}

func TestHostileFiles_AreRejected(t *testing.T) {
	p := systemtest.Start(t, newDataDirWithEngine(t))
	admin := p.Admin()
	var attacks []systemtest.Attack
	for n := range hostileKinds {
		kind, file := hostileFile(n)
		attacks = append(attacks, systemtest.Attack{Name: kind, By: admin, Method: "POST", Path: readBill, Body: upload(file), Status: 400,
			Code: "invalid_input", Contains: []string{`"reason":"`}, Excludes: []string{"worker", "sandbox", "goroutine", "/proc"}})
	}
	attacks = append(attacks,
		systemtest.Attack{Name: "an empty file", By: admin, Method: "POST", Path: readBill, Body: `{"base64_file":""}`, Status: 400, Contains: []string{"invalid_base64"}},
		systemtest.Attack{Name: "not a string", By: admin, Method: "POST", Path: readBill, Body: `{"base64_file":[[["x"]]]}`, Status: 400, Contains: []string{"invalid_base64"}},
		systemtest.Attack{Name: "an incomplete escape", By: admin, Method: "POST", Path: readBill, Body: `{"base64_file":"\u00"}`, Status: 400, Code: "invalid_input"},
		systemtest.Attack{Name: "two files", By: admin, Method: "POST", Path: readBill, Body: `{"base64_file":"YQ==","base64_file":"Yg=="}`, Status: 400, Code: "invalid_input"},
	)
	systemtest.RunAttacks(t, attacks)
	admin.Do(t, "POST", readBill, upload(sample(t, goodBill)), 200)
	admin.Do(t, "POST", readBill, upload(sample(t, goodPDF)), 200)
	if code := p.Stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
