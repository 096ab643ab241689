package main

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kontor/server/settings"
)

var update = flag.Bool("update", false, "write the generated parts of the README anew")

// example is a block of commands in a document with the response that the document shows.
type example struct {
	line           int
	commands, want string
}

// examples returns the blocks of shell commands. The block of JSON after a block is its expected response.
func examples(readme string) []example {
	var found []example
	var block strings.Builder
	fence, begun := "", 0
	for i, line := range strings.Split(readme, "\n") {
		switch {
		case fence == "" && strings.HasPrefix(line, "```"):
			fence, begun = line, i+2
			block.Reset()
		case line == "```":
			if fence == "```sh" {
				found = append(found, example{line: begun, commands: block.String()})
			} else if fence == "```json" {
				found[len(found)-1].want = block.String()
			}
			fence = ""
		case fence != "":
			block.WriteString(line + "\n")
		}
	}
	return found
}

const divider = "=== next example ==="

// TestDocs_TheirCommandsDoWhatTheySay runs the commands of the README and of the guides. Each document runs in one shell,
// against a new Kontor.
func TestDocs_TheirCommandsDoWhatTheySay(t *testing.T) {
	for _, document := range []string{"README.md", "docs/api.md", "docs/access.md"} {
		t.Run(document, func(t *testing.T) { runExamples(t, document) })
	}
}

func runExamples(t *testing.T, document string) {
	t.Helper()
	for _, tool := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("install %s to run this test", tool)
		}
	}
	data, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	all := examples(string(data))
	var script strings.Builder
	for _, e := range all {
		script.WriteString(e.commands + "echo; echo '" + divider + "'\n")
	}
	p := startWith(t, nil, "--data.dir", filepath.Join(t.TempDir(), "data"))
	shown := p.stdout.String()
	shell := exec.Command("bash", "-u")
	shell.Env = append(os.Environ(), "TMPDIR="+t.TempDir(), "KONTOR="+p.url, "PASSWORD="+wordAfter(shown, "password"), "API_KEY="+wordAfter(shown, "API key"))
	shell.Stdin = strings.NewReader(script.String())
	var failures bytes.Buffer
	shell.Stderr = &failures
	out, err := shell.Output()
	if err != nil || failures.Len() > 0 {
		t.Fatalf("%v: %s", err, failures.String())
	}
	answers := strings.Split(string(out), divider)
	if len(answers) != len(all)+1 {
		t.Fatalf("%d answers to %d examples", len(answers)-1, len(all))
	}
	for i, e := range all {
		if got := answers[i]; !shows(e.want, got) {
			t.Errorf("%s:%d answered %s\nthe document shows %s", document, e.line, got, e.want)
		}
	}
}

var space = regexp.MustCompile(`\s+`)

// shows compares a response with its form in a document. White space is ignored, and … matches any text.
func shows(shown, got string) bool {
	parts := strings.Split(space.ReplaceAllString(shown, ""), "…")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return regexp.MustCompile(`^(?s:` + strings.Join(parts, ".*?") + `)$`).MatchString(space.ReplaceAllString(got, ""))
}

// TestReadme_NamesTheTwoCommands checks the commands that a new reader types first.
func TestReadme_NamesTheTwoCommands(t *testing.T) {
	data, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(data), "```\ngo run .\ngo test ./...\n```") {
		t.Error("the README does not begin with the command that runs Kontor and the one that tests it")
	}
}

// settingsTable returns the table of settings for the README.
func settingsTable() string {
	var b strings.Builder
	b.WriteString("| Setting | Default | Meaning |\n|---|---|---|\n")
	for _, s := range settings.All() {
		value := "–"
		if s.Default != "" {
			value = "`" + s.Default + "`"
		}
		name := "`" + s.Name + "`"
		if s.EnvironmentOnly {
			name += " (environment only)"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", name, value, s.Meaning)
	}
	return b.String()
}

var settingsPart = regexp.MustCompile(`(?s)(<!-- settings: [^>]*-->\n).*(<!-- end of settings -->)`)

func TestReadme_ListsTheSettings(t *testing.T) {
	data, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	want := settingsPart.ReplaceAllString(string(data), "${1}\n"+strings.ReplaceAll(settingsTable(), "$", "$$")+"\n${2}")
	if *update {
		if err := os.WriteFile("README.md", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(data) != want {
		t.Error("the table of settings in the README is not that of the program; run this test with -update")
	}
}

// documents lists all Markdown documents that people read first.
func documents(t *testing.T) []string {
	t.Helper()
	list := []string{"README.md", "CHANGELOG.md", "CONTRIBUTING.md"}
	for _, pattern := range []string{"docs/*.md", "docs/adr/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, found...)
	}
	return list
}

var link = regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)

// TestDocs_LinkToFilesThatExist follows the links between the documents.
func TestDocs_LinkToFilesThatExist(t *testing.T) {
	for _, document := range documents(t) {
		data, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range link.FindAllStringSubmatch(string(data), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(document), found[1])); err != nil {
				t.Errorf("%s links to %s, which does not exist", document, found[1])
			}
		}
	}
}

var (
	quotedCode = regexp.MustCompile("`([^`\n]+)`")
	sourceFile = regexp.MustCompile(`^[a-z][\w./-]*\.(go|js|mjs|sql|golden|sha256|service)$`)
	directory  = regexp.MustCompile(`^(modules|server|store|web|docs|testdata|locales)(/[a-z_0-9]+)+$`)
)

// TestDocs_NameFilesThatExist looks for the source files and directories that the documents name. A file may be named by
// the end of its path.
func TestDocs_NameFilesThatExist(t *testing.T) {
	var all []string
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && entry.Name() == ".git" {
			return fs.SkipDir
		}
		all = append(all, "/"+filepath.ToSlash(name))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range documents(t) {
		data, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		for _, code := range quotedCode.FindAllStringSubmatch(string(data), -1) {
			name := code[1]
			if strings.Contains(name, "NNNN") || !sourceFile.MatchString(name) && !directory.MatchString(name) {
				continue
			}
			if !slices.ContainsFunc(all, func(file string) bool { return strings.HasSuffix(file, "/"+name) }) {
				t.Errorf("%s names %s, which does not exist", document, name)
			}
		}
	}
}

var testName = regexp.MustCompile(`\bTest[A-Z]\w+`)

// TestDocs_NameTestsThatExist looks for the tests that documents and scripts name. The beginning of a name is enough.
func TestDocs_NameTestsThatExist(t *testing.T) {
	known := slices.Collect(maps.Keys(testNames(t)))
	for _, document := range append(documents(t), "Makefile", ".ci/run") {
		data, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range testName.FindAllString(string(data), -1) {
			if !slices.ContainsFunc(known, func(test string) bool { return strings.HasPrefix(test, name) }) {
				t.Errorf("%s names %s, which does not exist", document, name)
			}
		}
	}
}

// TestOperations_QuotesMessagesOfTheProgram looks for the messages of the table about refused starts in the source. An
// ellipsis and a lone capital letter stand for values.
func TestOperations_QuotesMessagesOfTheProgram(t *testing.T) {
	document, err := os.ReadFile("docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(document), "**A start is refused.**")
	table, _, end := strings.Cut(table, "\n**")
	if !found || !end {
		t.Fatal("docs/operations.md has no table of messages behind \"A start is refused\"")
	}
	source := programSource(t)
	quoted := 0
	for _, row := range strings.Split(table, "\n") {
		message := regexp.MustCompile("^\\| `([^`]+)`").FindStringSubmatch(row)
		if message == nil {
			continue
		}
		quoted++
		for _, part := range regexp.MustCompile(`…|\bN\b`).Split(message[1], -1) {
			if part = strings.TrimSpace(part); !strings.Contains(source, part) {
				t.Errorf("no Go file contains %q, which docs/operations.md quotes", part)
			}
		}
	}
	if quoted < 10 {
		t.Errorf("only %d messages were found in the table", quoted)
	}
}

// programSource returns the text of all Go files that are no tests.
func programSource(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := os.ReadFile(name)
		b.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}
