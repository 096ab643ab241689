package commands_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestServeDemo_ShowsHowToComeInAsEachRole(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	first := startBank(t, []string{"KONTOR_ADMIN_EMAIL=root@kontor.example"}, "--demo", "--data.dir", dir)
	shown := first.stdout.String()
	passwords := map[string]string{}
	for role, email := range map[string]string{"Administrator": "root@kontor.example", "Advisor": "", "Customer": "", "Registrant": ""} {
		login := after(shown, role)
		password := after(shown, login)
		if email != "" && login != email || !first.signsIn(t, login, password) {
			t.Errorf("%s: %q cannot sign in with what was shown: %s", role, login, shown)
		}
		for other, taken := range passwords {
			if taken == password {
				t.Errorf("%s and %s have the same password", role, other)
			}
		}
		passwords[role] = password
	}
	key := after(shown, "API key is")
	if !strings.HasPrefix(key, "kontor_") || strings.Contains(first.stderr.String(), key) {
		t.Errorf("the API key is not shown, or is in the log: %s", shown)
	}
	first.isAlive(t, "root@kontor.example", passwords["Administrator"])
	first.isAlive(t, "advisor@kontor.localhost", passwords["Advisor"])
	bills, err := filepath.Glob(filepath.Join(after(shown, "try out are in"), "*.pdf"))
	if err != nil || len(bills) < 3 {
		t.Errorf("there are %d sample bills where the first start says: %v", len(bills), err)
	}
	first.stop()

	again := startBank(t, nil, "--demo", "--data.dir", dir)
	if shown := again.stdout.String(); after(shown, "Administrator") != "root@kontor.example" || after(shown, "API key is") != key {
		t.Errorf("the second start printed %s", shown)
	}
}

func TestServeDemo_IsMadeAnewWhereItWasCutOff(t *testing.T) {
	t.Parallel()
	dir := newDatabase(t) // with a database that is not the demo's whole one
	if err := os.WriteFile(filepath.Join(dir, "demo.json"), []byte(`{"admin":"admin@kontor.localhost","password":"of the first try","complete":false}`), 0o600); err != nil {
		t.Fatal(err)
	}
	b := startBank(t, nil, "--demo", "--data.dir", dir)
	shown := b.stdout.String()
	if b.signsIn(t, "admin@kontor.localhost", "of the first try") || !b.signsIn(t, "admin@kontor.localhost", after(shown, "admin@kontor.localhost")) {
		t.Errorf("the demo shows %s", shown)
	}
	b.isAlive(t, "advisor@kontor.localhost", after(shown, "advisor@kontor.localhost"))
}

// isAlive checks that somebody finds something on each of his screens, and about as many customers as is promised.
func (b *bank) isAlive(t *testing.T, login, password string) {
	t.Helper()
	body, err := json.Marshal(map[string]string{"user_id": login, "password": password})
	if err != nil {
		t.Fatal(err)
	}
	_, answer := b.call(t, http.MethodPost, "/authenticate", string(body))
	var session struct {
		Token string `json:"access_token"`
	}
	if err := json.Unmarshal([]byte(answer), &session); err != nil {
		t.Fatalf("%s: %v", login, err)
	}
	for path, least := range map[string]int{"/v1/customers?limit=1": 180, "/v1/personas?limit=1": 80, "/v1/payers?limit=1": 60, "/v1/tasks?limit=1": 10,
		"/v1/tasks?limit=1&search.status=in_progress": 2, "/v1/notifications?limit=1&search.read=false": 3} {
		var list struct {
			Total int `json:"total"`
		}
		_, answer := b.call(t, http.MethodGet, path, "", "Authorization", "Bearer "+session.Token)
		if err := json.Unmarshal([]byte(answer), &list); err != nil || list.Total < least || list.Total > 4000 {
			t.Errorf("%s: %s has %d, want at least %d: %v", login, path, list.Total, least, err)
		}
	}
	var chats []struct {
		Members []string `json:"participants"`
		About   struct {
			Names map[string]string `json:"names"`
		} `json:"metadata"`
	}
	_, answer = b.call(t, http.MethodGet, "/v1/chats", "", "Authorization", "Bearer "+session.Token)
	if err := json.Unmarshal([]byte(answer), &chats); err != nil || len(chats) < 3 {
		t.Fatalf("%s has %d chats: %v", login, len(chats), err)
	}
	for _, chat := range chats {
		if len(chat.About.Names) != len(chat.Members) {
			t.Errorf("%s: a chat of %d names %d", login, len(chat.Members), len(chat.About.Names))
		}
	}
}
