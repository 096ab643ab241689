package commands_test

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestServeDemo_ShowsHowToComeInAsEachRole(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	first := startBank(t, []string{"KONTOR_ADMIN_EMAIL=root@kontor.example"}, "--demo", "--data.dir", dir)
	shown := first.stdout.String()
	password := after(shown, "password is")
	for role, email := range map[string]string{"Administrator": "root@kontor.example", "Advisor": "", "Customer": "", "Registrant": ""} {
		if login := after(shown, role); email != "" && login != email || !first.signsIn(t, login, password) {
			t.Errorf("%s: %q cannot sign in with what was shown: %s", role, login, shown)
		}
	}
	key := after(shown, "shown this once, is")
	if !strings.HasPrefix(key, "kontor_") || strings.Contains(first.stderr.String(), key) {
		t.Errorf("the API key is not shown, or is in the log: %s", shown)
	}
	first.stop()

	again := startBank(t, nil, "--demo", "--data.dir", dir)
	if shown := again.stdout.String(); after(shown, "Administrator") != "root@kontor.example" || strings.Contains(shown, key) {
		t.Errorf("the second start printed %s", shown)
	}
}
