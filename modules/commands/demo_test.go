package commands_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kontor/store/inspect"
)

func TestServeDemo_PrintsSignInsForEachRole(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	first := start(t, []string{"KONTOR_ADMIN_EMAIL=root@kontor.example"}, "--demo", "--data.dir", dir)
	shown := first.stdout.String()
	passwords := map[string]string{}
	for role, email := range map[string]string{"Administrator": "root@kontor.example", "Advisor": "", "Customer": "", "Registrant": ""} {
		login := wordAfter(shown, role)
		password := wordAfter(shown, login)
		if email != "" && login != email || !first.canSignIn(t, login, password) {
			t.Errorf("%s: %q cannot sign in with the printed password: %s", role, login, shown)
		}
		for other, taken := range passwords {
			if taken == password {
				t.Errorf("%s and %s have the same password", role, other)
			}
		}
		passwords[role] = password
	}
	key := wordAfter(shown, "API key is")
	if !strings.HasPrefix(key, "kontor_") || strings.Contains(first.stderr.String(), key) {
		t.Errorf("the API key is not printed, or it is in the log: %s", shown)
	}
	first.expectDemoData(t, "root@kontor.example", passwords["Administrator"])
	first.expectDemoData(t, "advisor@kontor.localhost", passwords["Advisor"])
	bills, err := filepath.Glob(filepath.Join(wordAfter(shown, "try out are in"), "*.pdf"))
	if err != nil || len(bills) < 3 {
		t.Errorf("the printed directory contains %d sample bills: %v", len(bills), err)
	}
	first.stop()

	again := start(t, nil, "--demo", "--data.dir", dir)
	if shown := again.stdout.String(); wordAfter(shown, "Administrator") != "root@kontor.example" || wordAfter(shown, "API key is") != key {
		t.Errorf("the second start printed %s", shown)
	}
}

func TestServeDemo_StartsOverAfterAnInterruption(t *testing.T) {
	t.Parallel()
	dir := newPurposeDir(t, inspect.Sandbox) // its database holds no demo data yet
	if err := os.WriteFile(filepath.Join(dir, "demo.json"), []byte(`{"admin":"admin@kontor.localhost","password":"of the first try","complete":false}`), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, nil, "--demo", "--data.dir", dir)
	shown := p.stdout.String()
	if p.canSignIn(t, "admin@kontor.localhost", "of the first try") || !p.canSignIn(t, "admin@kontor.localhost", wordAfter(shown, "admin@kontor.localhost")) {
		t.Errorf("the demo shows %s", shown)
	}
	p.expectDemoData(t, "advisor@kontor.localhost", wordAfter(shown, "advisor@kontor.localhost"))
}

// expectDemoData checks that a user finds records on each screen, and about as many customers as documented.
func (p *process) expectDemoData(t *testing.T, login, password string) {
	t.Helper()
	token := p.signIn(t, login, password)
	get := func(path string, into any) {
		t.Helper()
		_, answer := p.call(t, http.MethodGet, path, "", "Authorization", "Bearer "+token)
		if err := json.Unmarshal([]byte(answer), into); err != nil {
			t.Errorf("%s: %s: %v in %s", login, path, err, answer)
		}
	}
	for path, least := range map[string]int{"/v1/customers?limit=1": 180, "/v1/personas?limit=1": 80, "/v1/payers?limit=1": 60, "/v1/tasks?limit=1": 10,
		"/v1/tasks?limit=1&search.status=in_progress": 2, "/v1/notifications?limit=1&search.read=false": 3} {
		var list struct {
			Total int `json:"total"`
		}
		get(path, &list)
		if list.Total < least || list.Total > 4000 {
			t.Errorf("%s: %s has %d, want at least %d", login, path, list.Total, least)
		}
	}
	var chats []struct {
		Members []string `json:"participants"`
		People  map[string]struct {
			DisplayName string `json:"display_name"`
		} `json:"people"`
	}
	get("/v1/chats", &chats)
	if len(chats) < 3 {
		t.Errorf("%s has %d chats", login, len(chats))
	}
	for _, chat := range chats {
		for _, id := range chat.Members {
			if chat.People[id].DisplayName == "" {
				t.Errorf("%s: participant %s has no display name", login, id)
			}
		}
	}
	var customers struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	get("/v1/customers?limit=20", &customers)
	files := 0
	for _, customer := range customers.Data {
		var evidence struct {
			Files []any `json:"files"`
		}
		get("/v1/customers/"+customer.ID+"/kyc/files", &evidence)
		files += len(evidence.Files)
	}
	if files == 0 {
		t.Errorf("%s: %d customers have no evidence", login, len(customers.Data))
	}
}
