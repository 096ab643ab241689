package nodes_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
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
