package licences_test

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write THIRD_PARTY_LICENSES")

const thirdParty = "THIRD_PARTY_LICENSES"

// legalFile matches the files of a module whose text must accompany its copies.
var legalFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)`)

// TestThirdParty_HasTheLicencesOfEverythingInTheExecutable compares the file with the modules that the executable links on any
// platform, and with the packages of the console.
func TestThirdParty_HasTheLicencesOfEverythingInTheExecutable(t *testing.T) {
	owners := map[string][]string{} // by text
	add := func(owner, file string) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		key := strings.TrimSpace(strings.ReplaceAll(string(text), "\r\n", "\n"))
		owners[key] = append(owners[key], owner)
	}
	add("Go (https://go.dev)", filepath.Join(command(t, "", "env", "GOROOT")[0], "LICENSE"))
	// The libraries that collect_licenses.sh of bblanchon/pdfium-binaries names and the binary contains, and the runtime of the
	// compiler.
	pdfium, err := filepath.Glob("pdfium/*.txt")
	if err != nil || len(pdfium) < 2 {
		t.Fatalf("PDFium and its libraries have no licences (%v)", err)
	}
	for _, file := range pdfium {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		if name != "PDFium" {
			name += " (in PDFium)"
		}
		add(name, file)
	}
	console, err := filepath.Glob("../web/vendor/licences/*.txt")
	if err != nil || len(console) == 0 {
		t.Fatalf("the packages of the console have no licences (%v)", err)
	}
	for _, file := range console {
		add(strings.TrimSuffix(filepath.Base(file), ".txt")+" (npm)", file)
	}
	for _, module := range linked(t) {
		name, directory, _ := strings.Cut(module, "|")
		entries, err := os.ReadDir(directory)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, entry := range entries {
			if entry.Type().IsRegular() && legalFile.MatchString(entry.Name()) {
				found = true
				add(name+", "+entry.Name(), filepath.Join(directory, entry.Name()))
			}
		}
		if !found {
			t.Errorf("%s has no licence: do not use it", name)
		}
	}
	want := list(owners)
	if *update {
		if err := os.WriteFile(thirdParty, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got, err := os.ReadFile(thirdParty); err != nil || !bytes.Equal(got, want) {
		t.Errorf("licences/%s differs from what the executable contains (%v): run make golden", thirdParty, err)
	}
}

// list returns each text once, after the names of its owners.
func list(owners map[string][]string) []byte {
	var b bytes.Buffer
	b.WriteString("The executable of Kontor contains the software below. Each text stands once, after the names of what it belongs to.\n")
	for _, key := range slices.SortedFunc(maps.Keys(owners), func(a, b string) int { return strings.Compare(owners[a][0], owners[b][0]) }) {
		fmt.Fprintf(&b, "\n%s\n\n%s\n\n%s\n", strings.Repeat("=", 80), strings.Join(owners[key], "\n"), key)
	}
	return b.Bytes()
}

// linked returns the modules in the executables of all platforms as path|directory.
func linked(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, system := range []string{"linux", "darwin", "windows"} {
		all = append(all, command(t, system, "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}|{{.Dir}}{{end}}{{end}}", "kontor")...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// command returns the lines that the go command prints.
func command(t *testing.T, system string, args ...string) []string {
	t.Helper()
	run := exec.CommandContext(t.Context(), "go", args...)
	run.Env = append(os.Environ(), "CGO_ENABLED=0")
	if system != "" {
		run.Env = append(run.Env, "GOOS="+system, "GOARCH=amd64")
	}
	run.Stderr = os.Stderr
	output, err := run.Output()
	if err != nil {
		t.Fatalf("go %v: %v", args, err)
	}
	return strings.Fields(string(output))
}
