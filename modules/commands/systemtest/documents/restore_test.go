package documents_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"kontor/modules/commands/systemtest"
	"kontor/store/testenv"
)

// TestDocs_RestoreStepByStep loses a bank and follows the steps of docs/operations.md, in directories of its own.
func TestDocs_RestoreStepByStep(t *testing.T) {
	data, err := os.ReadFile(testenv.Path("docs/operations.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(data), "\n### Restore, step by step\n")
	text, _, ok := strings.Cut(text, "\n**To try a restore**")
	if !ok {
		t.Fatal("docs/operations.md has no section on a restore")
	}
	root := t.TempDir()
	text = regexp.MustCompile(`(?m)^   `).ReplaceAllString(text, "") // of the list
	text = regexp.MustCompile(`/(mnt|media|var/lib)/`).ReplaceAllString(text, root+"/$1/")
	dir, vault, key := filepath.Join(root, "var/lib/kontor"), filepath.Join(root, "mnt/vault/kontor"), filepath.Join(root, "media/safe/kontor.key")
	for _, name := range []string{filepath.Dir(dir), filepath.Dir(key), filepath.Join(root, "bin")} {
		if err := os.MkdirAll(name, 0o700); err != nil {
			t.Fatal(err)
		}
	}

	lost := systemtest.Start(t, dir, "--backup.url="+vault)
	lost.Admin().Do(t, "POST", "/v1/customers", `{"first_name":"Anna","last_name":"Muster","email":"anna@example.ch"}`, 201)
	systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "key", "export", key, "--data.dir", dir))
	if code := lost.Stop(); code != 0 {
		t.Fatalf("exit code %d: %s", code, lost.Stderr)
	}

	steps := examples(text)
	if len(steps) != 5 {
		t.Fatalf("%d steps with commands, want 5", len(steps))
	}
	w := walk{root: root}
	for _, step := range steps[:4] {
		w.step(t, step)
	}
	_, settings, _ := strings.Cut(text, "```yaml\n")
	settings, _, _ = strings.Cut(settings, "```")
	file := filepath.Join(root, "kontor.yaml")
	systemtest.WriteFile(t, file, []byte(w.named(settings)))
	p := systemtest.StartWith(t, append(systemtest.SecretsEnv, "KONTOR_CONFIG="+file), "--data.dir="+dir, "--rate_limits.enabled=false")
	admin := p.Admin()
	if got := admin.Total(t, "/v1/customers?limit=1"); got != 1 {
		t.Errorf("%d customers, want the one of the lost bank", got)
	}
	admin.Do(t, "POST", "/v1/customers", `{"first_name":"Beat","last_name":"Muster","email":"beat@example.ch"}`, 201)
	scraper := p.Scraper() // one connection: the listener of the metrics accepts few
	testenv.Wait(t, "the backup to continue", func() bool {
		return !strings.Contains(scraper.Do(t, "GET", "/metrics", "", 200).Body, "\nkontor_backup_objects_total 0\n")
	})
	client := p.Client()
	testenv.Wait(t, "the backup to be complete", func() bool {
		return strings.Contains(client.Do(t, "GET", "/readyz", "", 200).Body, `"backup":"ok"`)
	})
	if code := p.Stop(); code != 0 {
		t.Fatalf("exit code %d: %s", code, p.Stderr)
	}
	w.step(t, steps[4])
}

// walk follows the steps of a document.
type walk struct {
	root        string
	incarnation string // of the restored database
}

// exampleIncarnation is the incarnation that the document names.
const exampleIncarnation = "x2kq7n4mbd3ovw5a"

func (w *walk) named(text string) string {
	if w.incarnation == "" {
		return text
	}
	return strings.ReplaceAll(text, exampleIncarnation, w.incarnation)
}

// step runs the commands of a step, and compares what they print.
func (w *walk) step(t *testing.T, e example) {
	t.Helper()
	program, err := systemtest.Binary()
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(w.root, "bin", "kontor")
	if err := os.Symlink(program, link); err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
	cmd := exec.Command(testenv.Tool(t, "bash"), "-eu", "-c", w.named(e.commands))
	cmd.Dir = w.root
	cmd.Env = append(systemtest.Command(t, nil).Env, "TMPDIR="+t.TempDir(), "PATH="+filepath.Dir(link)+":"+os.Getenv("PATH"))
	var failures strings.Builder
	cmd.Stderr = &failures
	out, err := cmd.Output()
	if err != nil || strings.Count(failures.String(), "\n") != strings.Count(failures.String(), "kontor: note: ") {
		t.Fatalf("%s\n%v: %s", e.commands, err, failures.String())
	}
	if _, after, ok := strings.Cut(string(out), "It is the incarnation "); ok {
		w.incarnation, _, _ = strings.Cut(after, ".")
	}
	if want := w.named(e.want); !shows(want, string(out)) {
		t.Errorf("%s\nprinted %s\nthe document shows %s\nThey differ at %q", e.commands, out, want, firstDifference(want, string(out)))
	}
}
