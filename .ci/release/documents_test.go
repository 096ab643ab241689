package main

import (
	"path"
	"strings"
	"testing"
)

// documentsOf returns the documents of an archive by path.
func documentsOf(t *testing.T, system string) map[string]string {
	t.Helper()
	files, err := release{source: "../..", system: system}.documents()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, f := range files {
		found[f.name] = string(f.content)
	}
	return found
}

func TestDocuments_LinkOnlyToFilesOfTheArchive(t *testing.T) {
	documents := documentsOf(t, "linux")
	links := 0
	for name, text := range documents {
		if path.Ext(name) != ".md" {
			continue
		}
		for _, part := range link.FindAllStringSubmatch(text, -1) {
			target, _, _ := strings.Cut(part[3], "#")
			if target == "" || strings.Contains(target, "://") {
				continue
			}
			links++
			target = path.Join(path.Dir(name), target)
			if _, isFile := documents[target]; !isFile && target != "docs/adr" && target != "docs/samples" && !strings.HasPrefix(target, "docs/samples/") {
				t.Errorf("%s links to %s, which the archive lacks", name, target)
			}
		}
	}
	if links < 50 {
		t.Errorf("the documents have %d links, want those of the source", links)
	}
}

func TestDocuments_BeginWithTheProgram(t *testing.T) {
	for system, program := range map[string]string{"linux": "./kontor", "darwin": "./kontor", "windows": `.\kontor.exe`} {
		readme := documentsOf(t, system)["README.md"]
		_, first, _ := strings.Cut(readme, "```\n")
		if command, _, _ := strings.Cut(first, "\n"); command != program {
			t.Errorf("%s: the first command is %q, want %q", system, command, program)
		}
		for _, wrong := range []string{"go run", "go test", "make build", "<!-- source", "<!-- archive", "end of archive"} {
			if strings.Contains(readme, wrong) {
				t.Errorf("%s: the README contains %q", system, wrong)
			}
		}
		if !strings.Contains(readme, "`"+program+" serve --demo") {
			t.Errorf("%s: the README does not start the demo with %s", system, program)
		}
	}
	if unit := documentsOf(t, "linux")["docs/kontor.service"]; !strings.Contains(unit, "ExecStart=") {
		t.Error("the archive lacks docs/kontor.service, which docs/operations.md installs")
	}
}

func TestWithoutSource(t *testing.T) {
	has := map[string]bool{"docs": true, "docs/a.md": true}
	text := "[a](a.md#x) [b](../main.go) [c](https://x.example) [d](#e) ![p](p.png)"
	if got, want := withoutSource(text, "docs", has), "[a](a.md#x) b [c](https://x.example) [d](#e) p"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
