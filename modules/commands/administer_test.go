package commands_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// newBank makes a data directory that a server has used, and returns the flag that names it.
func newBank(t *testing.T) (flag string) {
	t.Helper()
	flag = "--data.dir=" + filepath.Join(t.TempDir(), "data")
	b := startBank(t, []string{"KONTOR_ADMIN_EMAIL=root@kontor.example"}, flag)
	if code := b.stop(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	return flag
}

func TestUserCommands(t *testing.T) {
	t.Parallel()
	in := newBank(t)
	const login, password, changed = "anna@kontor.example", "an unusual sentence 1", "an unusual sentence 2"

	succeeded(t, run(nil, password+"\n", "user", "create", login, "--role=Advisor", in), "status active  roles Advisor")
	refused(t, run(nil, password+"\n", "user", "create", login, in), "already")
	refused(t, run(nil, "short\n", "user", "create", "b@kontor.example", in), "password")
	refused(t, run(nil, "", "user", "create", "b@kontor.example", in), "no password on standard input")
	refused(t, run(nil, password+"\n", "user", "create", "b@kontor.example", "--role=Nobody", in), "role")
	refused(t, run(nil, password+"\n", "user", "create", "b@kontor.example", "--language=rm", in), "rm")
	refused(t, run(nil, password+"\n", "user", "create", in), "<login>")

	succeeded(t, run(nil, "", "user", "role", login, in), "roles Advisor")
	succeeded(t, run(nil, "", "user", "role", login, "Customer", "Advisor", in), "roles Advisor, Customer")
	succeeded(t, run(nil, "", "user", "role", login, "--none", in), "roles none")
	refused(t, run(nil, "", "user", "role", "root@kontor.example", "Customer", in), "administrator")
	refused(t, run(nil, "", "user", "role", "root@kontor.example", "--none", in), "administrator")
	refused(t, run(nil, "", "user", "role", login, "--none", "Customer", in), "--none")
	refused(t, run(nil, "", "user", "role", "nobody@kontor.example", in), "User not found")

	succeeded(t, run(nil, changed+"\n", "user", "password", login, in), "new password")
	refused(t, run(nil, changed+"\n", "user", "password", "nobody@kontor.example", in), "User not found")

	b := startBank(t, nil, in)
	if b.signsIn(t, login, password) || !b.signsIn(t, login, changed) {
		t.Error("the new password is not the one in force")
	}
}

func TestAPIKeyCommands(t *testing.T) {
	t.Parallel()
	in := newBank(t)
	made := run(nil, "", "apikey", "create", "the \x1b[2J web site", in)
	succeeded(t, made, "kontor_")
	succeeded(t, run(nil, "", "apikey", "create", "another", in), "kontor_")
	refused(t, run(nil, "", "apikey", "create", " ", in), "empty")

	listed := run(nil, "", "apikey", "list", in)
	succeeded(t, listed, `"the \x1b[2J web site"`)
	var keys []struct {
		ID, Name string
		Revoked  *string `json:"revoked_at"`
	}
	read := func() {
		t.Helper()
		o := run(nil, "", "apikey", "list", "--json", in)
		succeeded(t, o, "another")
		if err := json.Unmarshal([]byte(o.stdout), &keys); err != nil || len(keys) != 3 { // one is of the first start
			t.Fatalf("%d keys, %v: %s", len(keys), err, o.stdout)
		}
	}
	read()
	if secret := strings.TrimSpace(made.stdout); strings.Contains(listed.stdout, secret) {
		t.Error("the key itself is listed")
	}
	succeeded(t, run(nil, "", "apikey", "revoke", keys[1].ID, in), keys[1].ID+" was revoked")
	refused(t, run(nil, "", "apikey", "revoke", "01a1fb8a-2c0a-7d94-ab9c-5d46a808af71", in), "key")
	read()
	if keys[1].Revoked == nil || keys[0].Revoked != nil || keys[2].Revoked != nil {
		t.Errorf("after the revocation: %+v", keys)
	}
}

func TestAPIKeyCommands_LimitAKey(t *testing.T) {
	t.Parallel()
	in := newBank(t)
	succeeded(t, run(nil, "", "apikey", "create", "form", "--scope=users.register", "--scope=auth.public", "--expires=2099-01-31", in), "kontor_")
	succeeded(t, run(nil, "", "apikey", "list", in), "2099-01-31T00:00:00.000Z  auth.public,users.register  form")
	refused(t, run(nil, "", "apikey", "create", "form", "--scope=audit.list", in), "users.register")
	refused(t, run(nil, "", "apikey", "create", "form", "--expires=2001-01-31", in), "past")
	refused(t, run(nil, "", "apikey", "create", "form", "--expires=soon", in), "neither a date")
}

func TestAdminister_RefusesADirectoryWithoutData(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "data")
	refused(t, run(nil, "", "apikey", "list", "--data.dir", missing), "there is no data in "+missing)
	refused(t, run(nil, "a long password\n", "user", "password", "x", "--data.dir", t.TempDir()), "there is no data in")
}
