package treetest_test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kontor/server/sdk"
	"kontor/store/testenv"
)

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
	t.Chdir(testenv.Root())
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

// TestDocs_NameFilesThatExist checks that the source files and directories in the documents exist. A file may be named by
// the end of its path.
func TestDocs_NameFilesThatExist(t *testing.T) {
	t.Chdir(testenv.Root())
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

var testName = regexp.MustCompile(`(?:^|[^.\w])(Test[A-Z]\w+)`)

// TestDocs_NameTestsThatExist checks that the tests in documents and scripts exist. The beginning of a name is enough.
func TestDocs_NameTestsThatExist(t *testing.T) {
	t.Chdir(testenv.Root())
	known := slices.Collect(maps.Keys(testNames(t)))
	for _, document := range append(documents(t), "Makefile", ".ci/steps/tests.sh") {
		data, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range testName.FindAllStringSubmatch(string(data), -1) {
			name := found[1]
			if !slices.ContainsFunc(known, func(test string) bool { return strings.HasPrefix(test, name) }) {
				t.Errorf("%s names %s, which does not exist", document, name)
			}
		}
	}
}

// TestOperations_QuotesMessagesOfTheProgram checks that the source contains the messages of the table about rejected starts. An
// ellipsis and a lone capital letter stand for values.
func TestOperations_QuotesMessagesOfTheProgram(t *testing.T) {
	t.Chdir(testenv.Root())
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

// TestDocs_ShowTheExamplesOfTheClients checks that the examples in docs/clients.md are the programs that tests run.
func TestDocs_ShowTheExamplesOfTheClients(t *testing.T) {
	t.Chdir(testenv.Root())
	document, err := os.ReadFile("docs/clients.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"server/client/example/main.go", "web/client/example.ts"} {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		_, program, found := strings.Cut(string(source), "package main\n")
		if !found {
			program = string(source)
		}
		program = strings.Replace(program, "kontor/server/client", sdk.Module, 1) // programs outside of the repository import the served module
		if !strings.Contains(string(document), strings.TrimSpace(program)) {
			t.Errorf("docs/clients.md does not show %s as it is", name)
		}
	}
}
