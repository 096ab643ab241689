package treetest_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kontor/server/settings"
	"kontor/store/testenv"
)

var update = flag.Bool("update", false, "write the generated parts of the README anew")

// TestReadme_NamesTheTwoCommands checks the commands that a new reader types first.
func TestReadme_NamesTheTwoCommands(t *testing.T) {
	t.Chdir(testenv.Root())
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
		meaning := s.Meaning
		if len(s.Choices) > 0 && !slices.Equal(s.Choices, []string{"true", "false"}) {
			meaning += " One of `" + strings.Join(s.Choices, "`, `") + "`."
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", name, value, meaning)
	}
	fmt.Fprintf(&b, "| `%s` (environment only) | – | YAML file with settings, as with the flag `--config`. |\n", settings.ConfigEnv)
	return b.String()
}

var settingsPart = regexp.MustCompile(`(?s)(<!-- settings: [^>]*-->\n).*(<!-- end of settings -->)`)

func TestReadme_ListsTheSettings(t *testing.T) {
	t.Chdir(testenv.Root())
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
