// Package smoke_test starts the built program once. It is the only package of system tests in the default tier: the others prove more.
package smoke_test

import (
	"debug/buildinfo"
	"path/filepath"
	"strings"
	"testing"

	"kontor/modules/commands/systemtest"
)

func TestMain(m *testing.M) { systemtest.Exit(m.Run) }

// TestSmoke_SurvivesAKill starts the program, changes something, kills it (kill -9) and starts it again. Meanwhile a second process
// must not use the directory. The database must be intact, and the change must exist.
func TestSmoke_SurvivesAKill(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	p := systemtest.Start(t, dir)
	p.Client().Do(t, "GET", "/readyz", "", 200)
	admin := p.Admin()
	created := admin.Do(t, "POST", "/v1/customers", `{"first_name":"Anna","last_name":"Muster","email":"anna@example.ch"}`, 201)
	systemtest.ExpectFailure(t, systemtest.Run(t, nil, "serve", "--server.listen=127.0.0.1:0", "--data.dir", dir), "in use by process")
	p.Kill()
	systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "check", "--data.dir", dir))

	p = systemtest.Start(t, dir)
	again := p.Admin().Do(t, "GET", "/v1/customers/"+systemtest.IDOf(t, created.Body), "", 200)
	if again.Body != created.Body {
		t.Errorf("created %s, after the kill %s", created.Body, again.Body)
	}
	expectConsole(t, p)
	if code := p.Stop(); code != 0 {
		t.Errorf("exit code %d: %s", code, p.Stderr)
	}
	if out := systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "check", "--data.dir", dir)); !strings.Contains(out, "is intact") {
		t.Errorf("check printed %q", out)
	}
}

// expectConsole checks that the server sends the page of the console, and the files that it refers to.
func expectConsole(t *testing.T, p *systemtest.Process) {
	t.Helper()
	page := p.Client().Do(t, "GET", "/", "", 200)
	files := 0
	for _, before := range []string{`src="`, `href="`} {
		for rest := page.Body; strings.Contains(rest, before); {
			_, rest, _ = strings.Cut(rest, before)
			name, _, _ := strings.Cut(rest, `"`)
			if !strings.Contains(name, ".") || strings.Contains(name, ":") {
				continue
			}
			files++
			if got := p.Client().Do(t, "GET", "/"+strings.TrimPrefix(name, "/"), "", 200); got.Body == "" {
				t.Errorf("%s is empty", name)
			}
		}
	}
	if files < 2 {
		t.Errorf("the page of the console refers to %d files: %s", files, page.Body)
	}
}

// TestSmoke_PrintsTheLicencesOfAllItLinks compares "kontor licences" with the modules that the linker recorded in the program.
func TestSmoke_PrintsTheLicencesOfAllItLinks(t *testing.T) {
	info, err := buildinfo.ReadFile(systemtest.Command(t, nil).Path)
	if err != nil {
		t.Fatal(err)
	}
	if len(info.Deps) < 20 {
		t.Fatalf("the program records only %d modules", len(info.Deps))
	}
	printed := systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "licences"))
	for _, module := range info.Deps {
		if !strings.Contains(printed, "\n"+module.Path+", ") {
			t.Errorf("%s is linked, and its licence is missing", module.Path)
		}
	}
	for _, owner := range []string{"Go (https://go.dev)", "PDFium", "ICU (in PDFium)", "preact (npm)", "swagger-ui (npm)"} {
		if !strings.Contains(printed, "\n"+owner+"\n") {
			t.Errorf("the licence of %s is missing", owner)
		}
	}
}
