package client_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kontor/server/servertest"
)

// A program of another module can import the client. It needs nothing but the standard library: there is no network and no
// module cache.
func TestExample_RunsAsAProgramOfAnotherModule(t *testing.T) {
	s := servertest.Start(t)
	directory := t.TempDir()
	root := must(filepath.Abs("../.."))(t)
	source := must(os.ReadFile("example/main.go"))(t)
	for name, content := range map[string]string{
		"main.go": string(source),
		"go.mod":  "module bank.example/program\n\ngo 1.26\n\nrequire kontor v0.0.0\n\nreplace kontor => " + root + "\n",
	} {
		if err := os.WriteFile(filepath.Join(directory, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := exec.CommandContext(t.Context(), "go", "run", ".")
	run.Dir = directory
	run.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off", "GOPROXY=off", "GOMODCACHE="+t.TempDir(),
		"KONTOR_URL=http://"+s.Address, "KONTOR_USER="+servertest.AdminEmail, "KONTOR_PASSWORD="+servertest.AdminPassword)
	output, err := run.CombinedOutput()
	if err != nil || !strings.HasSuffix(string(output), " Anna Keller, Söhne +41446681800\n") {
		t.Errorf("got %v: %s", err, output)
	}
}

// The client imports the standard library only.
func TestClient_ImportsTheStandardLibraryOnly(t *testing.T) {
	listed := must(exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".").Output())(t)
	if got := strings.Fields(string(listed)); len(got) != 1 || got[0] != "kontor/server/client" {
		t.Errorf("it depends on %v", got)
	}
}
