package web_test

import (
	"encoding/json"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestScreens_AreComplete checks each row of the list: the module exists, and a menu entry has an icon and a title in
// every language.
func TestScreens_AreComplete(t *testing.T) {
	var rows []struct {
		Path, Module, Menu, Icon, Title string
		Texts                           []string
	}
	readJSON(t, "screens.json", &rows)
	texts := map[string]map[string]any{}
	for _, language := range []string{"en", "de", "fr", "it"} {
		var table map[string]any
		readJSON(t, filepath.Join("i18n", language+".json"), &table) // The menu is on the first screen.
		texts[language] = table
	}
	icons, err := os.ReadFile("app/ui/icon.js")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, row := range rows {
		if seen[row.Path] {
			t.Errorf("%s is listed twice", row.Path)
		}
		seen[row.Path] = true
		if _, err := os.Stat(filepath.Join("app", "screens", filepath.FromSlash(row.Module)+".js")); err != nil {
			t.Errorf("%s: %v", row.Path, err)
		}
		for _, part := range row.Texts {
			if _, err := os.Stat(filepath.Join("i18n", part, "en.json")); err != nil {
				t.Errorf("%s: %v", row.Path, err)
			}
		}
		if row.Menu == "" {
			continue
		}
		if !strings.Contains(string(icons), row.Icon+":") {
			t.Errorf("%s: there is no icon %q", row.Path, row.Icon)
		}
		for language, table := range texts {
			if table[row.Title] == nil {
				t.Errorf("%s: the title %q has no text in %s", row.Path, row.Title, language)
			}
		}
	}
}

// TestScreens_NameEndpoints checks the endpoints that screens and their parts need: a misspelt one would hide the screen from everybody,
// and so would one that the console does not ask about.
func TestScreens_NameEndpoints(t *testing.T) {
	table, err := os.ReadFile("../testdata/endpoints.golden")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for line := range strings.Lines(string(table)) {
		if words := strings.Fields(line); len(words) > 1 {
			known[words[0]+" "+words[1]] = true
		}
	}
	var rows []struct{ Path, Call string }
	readJSON(t, "screens.json", &rows)
	asked := map[string]bool{}
	for _, row := range rows {
		asked[row.Call] = true
		if row.Call != "" && !known[row.Call] {
			t.Errorf("%s: there is no endpoint %q", row.Path, row.Call)
		}
	}
	access, err := os.ReadFile("app/access.js")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(access), "export const CALL = {")
	list, _, _ = strings.Cut(list, "};")
	endpoints := regexp.MustCompile(`'([A-Z]+ /v1/[^']*)'`)
	for _, match := range endpoints.FindAllStringSubmatch(list, -1) {
		asked[match[1]] = true
	}
	err = filepath.WalkDir("app", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		for _, match := range endpoints.FindAllStringSubmatch(string(text), -1) {
			if !known[match[1]] || !asked[match[1]] {
				t.Errorf("%s: %q is an endpoint: %v, the console asks about it: %v", name, match[1], known[match[1]], asked[match[1]])
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestScreens_AnswerTheirAddresses requests an address of each pattern, and some that match none.
func TestScreens_AnswerTheirAddresses(t *testing.T) {
	app := newApp(t, newSite(t))
	for path, want := range map[string]int{
		"/payers/1": http.StatusOK, "/payers/": http.StatusOK, "/customers/1": http.StatusOK, "/customers/1/kyc": http.StatusOK,
		"/customers/1/tasks/2": http.StatusOK, "/chats": http.StatusOK, "/chats/1": http.StatusOK,
		"/payers/1/2": http.StatusNotFound, "/chats/1/2": http.StatusNotFound, "/admin": http.StatusNotFound, "//": http.StatusNotFound,
	} {
		if answer, _ := get(t, app, path); answer.StatusCode != want {
			t.Errorf("%s: got %d, want %d", path, answer.StatusCode, want)
		}
	}
}

func readJSON(t *testing.T, name string, target any) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, target); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}
