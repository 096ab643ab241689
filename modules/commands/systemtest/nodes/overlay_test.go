package nodes_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kontor/modules/commands/systemtest"
	"kontor/store/testenv"
)

// buildWith builds the program with other contents for some source files, which are named by their paths, and returns its path.
func buildWith(t *testing.T, replaced map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for path, content := range replaced {
		file := filepath.Join(dir, filepath.Base(path))
		systemtest.WriteFile(t, file, []byte(content))
		overlay.Replace[path] = file
	}
	list, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	systemtest.WriteFile(t, filepath.Join(dir, "overlay.json"), list)
	program := filepath.Join(dir, "kontor")
	build := exec.Command("go", "build", "-trimpath", "-overlay", filepath.Join(dir, "overlay.json"), "-o", program, ".")
	build.Dir = testenv.Root()
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return program
}

// shiftedClock returns the source of the package time, in which Now is ahead by the seconds in the environment variable
// CLOCK_SHIFT. The whole program then has a wrong clock, as on a machine whose clock is wrong.
func shiftedClock(t *testing.T) map[string]string {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(source)
	for old, changed := range map[string]string{
		"\tsec += unixToInternal - minWall\n": "\tsec += unixToInternal - minWall + clockShift\n",
		"\nimport (\n":                        "\nimport (\n\t\"syscall\"\n",
	} {
		if strings.Count(text, old) != 1 {
			t.Fatalf("the package time does not have %q once: adapt this test to the new version of Go", old)
		}
		text = strings.Replace(text, old, changed, 1)
	}
	return map[string]string{path: text + `
var clockShift = func() (seconds int64) {
	text, _ := syscall.Getenv("CLOCK_SHIFT")
	sign := int64(1)
	for _, c := range text {
		if c == '-' {
			sign = -1
		} else {
			seconds = 10*seconds + int64(c-'0')
		}
	}
	return sign * seconds
}()
`}
}
