package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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
			} else if fence == "```json" || fence == "```text" {
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

// TestDocs_CommandsPrintTheShownOutput runs the commands of the README and of the guides in interactive shells, one after
// the other and repeatedly on one server. An interactive zsh does not accept comments, and users paste the commands into one.
func TestDocs_CommandsPrintTheShownOutput(t *testing.T) {
	shells := map[string][]string{"bash": {"bash", "--norc", "-u"}, "zsh": {"zsh", "-f", "-i", "-u", "+m", "+o", "promptsp", "+o", "promptcr"}}
	for _, tool := range []string{"bash", "zsh", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("install %s to run this test", tool)
		}
	}
	p := startWith(t, nil, "--data.dir", filepath.Join(t.TempDir(), "data"), "--rate_limits.public_per_minute=1000")
	for _, shell := range []string{"bash", "zsh", "zsh"} {
		for _, document := range []string{"README.md", "docs/api.md", "docs/access.md"} {
			t.Run(shell+"/"+document, func(t *testing.T) { runExamples(t, p, shells[shell], document) })
		}
	}
}

func runExamples(t *testing.T, p *process, shell []string, document string) {
	t.Helper()
	data, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	all := examples(string(data))
	var script strings.Builder
	for _, e := range all {
		script.WriteString(e.commands + "echo; echo '" + divider + "'\n")
	}
	shown := p.stdout.String()
	cmd := exec.Command(shell[0], shell[1:]...)
	cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir(), "KONTOR="+p.url, "PASSWORD="+wordAfter(shown, "password"), "API_KEY="+wordAfter(shown, "API key"),
		"PS1=", "PS2=", "HISTFILE=")
	cmd.Stdin = strings.NewReader(script.String())
	var failures bytes.Buffer
	cmd.Stderr = &failures
	out, err := cmd.Output()
	if err != nil || strings.TrimSpace(failures.String()) != "" {
		t.Fatalf("%v: %s", err, failures.String())
	}
	answers := strings.Split(string(out), divider)
	if len(answers) != len(all)+1 {
		t.Fatalf("%d answers to %d examples", len(answers)-1, len(all))
	}
	for i, e := range all {
		if got := answers[i]; !shows(e.want, got) {
			t.Errorf("%s:%d answered %s\nthe document shows %s\nThey differ at %q. If the response is right, update the document; … matches any text.",
				document, e.line, got, e.want, firstDifference(e.want, got))
		}
	}
}

var space = regexp.MustCompile(`\s+`)

// shows compares a response with its form in a document. White space is ignored, and … matches any text.
func shows(shown, got string) bool { return matchesShown(shown, got, "$") }

func matchesShown(shown, got, end string) bool {
	parts := strings.Split(space.ReplaceAllString(shown, ""), "…")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return regexp.MustCompile(`^(?s:` + strings.Join(parts, ".*?") + `)` + end).MatchString(space.ReplaceAllString(got, ""))
}

// firstDifference returns the part of the shown form, without white space, at which a response begins to differ.
func firstDifference(shown, got string) string {
	const context = 20 // characters before and after the difference
	form := []rune(space.ReplaceAllString(shown, ""))
	same := 0
	for same < len(form) && matchesShown(string(form[:same+1]), got, "") {
		same++
	}
	return string(form[max(0, same-context):min(len(form), same+context)])
}

func TestDocs_NameTheFirstDifference(t *testing.T) {
	shown, got := `{"id": "…", "country": "CHE", "active": true}`, `{"id":"0190","country":"CHE","reference":null,"active":true}`
	if at := firstDifference(shown, got); shows(shown, got) || !strings.HasSuffix(at, `"country":"CHE","active":true}`[len(`"country":`):]) {
		t.Errorf("the difference is %q", at)
	}
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
	fmt.Fprintf(&b, "| `%s` (environment only) | – | YAML file with settings, as with the flag `--config`. |\n", settings.ConfigEnv)
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
