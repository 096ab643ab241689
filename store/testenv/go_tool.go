package testenv

import (
	"os/exec"
	"strings"
	"testing"
)

// GoTool returns the path of a tool of the Go module in a folder of the project. The go command builds it once and keeps it in its
// cache.
func GoTool(tb testing.TB, folder, name string) string {
	tb.Helper()
	cmd := exec.Command("go", "-C", Path(folder), "tool", "-n", name)
	var problem strings.Builder
	cmd.Stderr = &problem
	path, err := cmd.Output()
	if err != nil {
		tb.Fatalf("build %s in %s: %v: %s", name, folder, err, problem.String())
	}
	return strings.TrimSpace(string(path))
}
