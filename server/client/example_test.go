package client_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kontor/server/sdk"
	"kontor/server/servertest"
)

// A program of another module installs the client from the server that it calls. It needs nothing but the standard library:
// there is no other proxy and no module cache.
func TestExample_RunsAsAProgramOfAnotherModule(t *testing.T) {
	s := servertest.Start(t)
	directory := t.TempDir()
	source := strings.Replace(string(must(os.ReadFile("example/main.go"))(t)), "kontor/server/client", sdk.Module, 1)
	for name, content := range map[string]string{"main.go": source, "go.mod": "module bank.example/program\n\ngo 1.26\n"} {
		if err := os.WriteFile(filepath.Join(directory, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	environ := append(os.Environ(), "GOFLAGS=-modcacherw", "GOWORK=off", "GOPROXY=http://"+s.Address+"/sdk/go", "GONOSUMDB=kontor.local", "GOTOOLCHAIN=local",
		"GOMODCACHE="+t.TempDir(), "KONTOR_URL=http://"+s.Address, "KONTOR_USER="+servertest.AdminEmail, "KONTOR_PASSWORD="+servertest.AdminPassword)
	command := func(args ...string) string {
		run := exec.CommandContext(t.Context(), "go", args...)
		run.Dir, run.Env = directory, environ
		output, err := run.CombinedOutput()
		if err != nil {
			t.Fatalf("go %v: %v: %s", args, err, output)
		}
		return string(output)
	}
	command("get", sdk.Module+"@latest")
	if output := command("run", "."); !strings.HasSuffix(output, " Anna Keller, Söhne +41446681800\n") {
		t.Errorf("got %s", output)
	}
}

// The client imports the standard library only.
func TestClient_ImportsTheStandardLibraryOnly(t *testing.T) {
	listed := must(exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".").Output())(t)
	if got := strings.Fields(string(listed)); len(got) != 1 || got[0] != "kontor/server/client" {
		t.Errorf("it depends on %v", got)
	}
}
