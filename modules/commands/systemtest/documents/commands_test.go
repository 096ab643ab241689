package documents_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"kontor/modules/commands/systemtest"
	"kontor/store/testenv"
)

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
		testenv.Tool(t, tool)
	}
	p := systemtest.StartWith(t, nil, "--data.dir", filepath.Join(t.TempDir(), "data"), "--rate_limits.public_per_minute=1000",
		"--notifications.sse.heartbeat_seconds=1") // ends an example that has shown the first frame of a stream
	for _, shell := range []string{"bash", "zsh", "zsh"} {
		for _, document := range []string{"README.md", "docs/api.md", "docs/access.md"} {
			t.Run(shell+"/"+document, func(t *testing.T) { runExamples(t, p, shells[shell], document) })
		}
	}
}

func runExamples(t *testing.T, p *systemtest.Process, shell []string, document string) {
	t.Helper()
	data, err := os.ReadFile(testenv.Path(document))
	if err != nil {
		t.Fatal(err)
	}
	all := examples(string(data))
	var script strings.Builder
	patient := fmt.Sprintf(" --max-time %d ", int(testenv.Limit().Seconds())) // the first frame may come late on a busy machine
	for _, e := range all {
		script.WriteString(strings.ReplaceAll(e.commands, " --max-time 2 ", patient) + "echo; echo '" + divider + "'\n")
	}
	shown := p.Stdout.String()
	cmd := exec.Command(shell[0], shell[1:]...)
	cmd.Dir = testenv.Root() // the examples name files of the project
	cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir(), "KONTOR="+p.URL, "PASSWORD="+systemtest.WordAfter(shown, "password"), "API_KEY="+systemtest.WordAfter(shown, "API key"),
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
