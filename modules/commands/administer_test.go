package commands_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

func TestUserCommands(t *testing.T) {
	t.Parallel()
	in := newServedData(t)
	const login, password, changed = "anna@kontor.example", "an unusual sentence 1", "an unusual sentence 2"

	expectSuccess(t, run(nil, password+"\n", "user", "create", login, "--role=Advisor", in), "status active  roles Advisor")
	expectFailure(t, run(nil, password+"\n", "user", "create", login, in), "is already taken.\n")
	expectFailure(t, run(nil, "short\n", "user", "create", "b@kontor.example", in), "password")
	expectFailure(t, run(nil, "", "user", "create", "b@kontor.example", in), "no password on standard input")
	expectFailure(t, run(nil, password+"\n", "user", "create", "b@kontor.example", "--role=Nobody", in), "role")
	expectFailure(t, run(nil, password+"\n", "user", "create", "b@kontor.example", "--language=rm", in), "rm")
	expectFailure(t, run(nil, password+"\n", "user", "create", in), "<login>")

	expectSuccess(t, run(nil, "", "user", "role", login, in), "roles Advisor")
	expectSuccess(t, run(nil, "", "user", "role", login, "Customer", "Advisor", in), "roles Advisor, Customer")
	expectSuccess(t, run(nil, "", "user", "role", login, "--none", in), "roles none")
	expectFailure(t, run(nil, "", "user", "role", "root@kontor.example", "Customer", in), "administrator")
	expectFailure(t, run(nil, "", "user", "role", "root@kontor.example", "--none", in), "administrator")
	expectFailure(t, run(nil, "", "user", "role", login, "--none", "Customer", in), "--none")
	expectFailure(t, run(nil, "", "user", "role", "nobody@kontor.example", in), "User not found")

	expectSuccess(t, run(nil, changed+"\n", "user", "password", login, in), "new password")
	expectFailure(t, run(nil, changed+"\n", "user", "password", "nobody@kontor.example", in), "User not found")

	p := start(t, nil, in)
	if p.canSignIn(t, login, password) || !p.canSignIn(t, login, changed) {
		t.Error("the new password is not in force")
	}
}

func TestAPIKeyCommands(t *testing.T) {
	t.Parallel()
	in := newServedData(t)
	created := run(nil, "", "apikey", "create", "the \x1b[2J web site", in)
	expectSuccess(t, created, "kontor_")
	expectSuccess(t, run(nil, "", "apikey", "create", "another", in), "kontor_")
	expectFailure(t, run(nil, "", "apikey", "create", " ", in), "empty")

	listed := run(nil, "", "apikey", "list", in)
	expectSuccess(t, listed, `"the \x1b[2J web site"`)
	var keys []struct {
		ID, Name string
		Revoked  *string `json:"revoked_at"`
	}
	read := func() {
		t.Helper()
		o := run(nil, "", "apikey", "list", "--json", in)
		expectSuccess(t, o, "another")
		if err := json.Unmarshal([]byte(o.stdout), &keys); err != nil || len(keys) != 3 { // the first start created one
			t.Fatalf("%d keys, %v: %s", len(keys), err, o.stdout)
		}
	}
	read()
	if secret := strings.TrimSpace(created.stdout); strings.Contains(listed.stdout, secret) {
		t.Error("the list shows the secret of a key")
	}
	expectSuccess(t, run(nil, "", "apikey", "revoke", keys[1].ID, in), keys[1].ID+" was revoked")
	expectFailure(t, run(nil, "", "apikey", "revoke", "01a1fb8a-2c0a-7d94-ab9c-5d46a808af71", in), "key")
	read()
	if keys[1].Revoked == nil || keys[0].Revoked != nil || keys[2].Revoked != nil {
		t.Errorf("after the revocation: %+v", keys)
	}
}

func TestAPIKeyCommands_LimitAKey(t *testing.T) {
	t.Parallel()
	in := newServedData(t)
	expectSuccess(t, run(nil, "", "apikey", "create", "form", "--scope=users.register", "--scope=auth.public", "--expires=2099-01-31", in), "kontor_")
	expectSuccess(t, run(nil, "", "apikey", "list", in), "2099-01-31T00:00:00.000Z  auth.public,users.register  form")
	expectFailure(t, run(nil, "", "apikey", "create", "form", "--scope=audit.list", in), "users.register")
	expectFailure(t, run(nil, "", "apikey", "create", "form", "--expires=2001-01-31", in), "past")
	expectFailure(t, run(nil, "", "apikey", "create", "form", "--expires=soon", in), "neither a date")
}

func TestServiceCommands(t *testing.T) {
	t.Parallel()
	in := newServedData(t)
	account := strings.TrimSpace(run(nil, "", "service", "create", "Back office", "--role=Advisor", in).stdout)
	expectFailure(t, run(nil, "", "service", "create", "Back office", "--role=Emperor", in), "roles.0")
	expectFailure(t, run(nil, "", "service", "create", " ", in), "name")
	token := run(nil, "", "service", "token", account, "--name=Night job", "--scope=customers.list", "--network=192.0.2.0/24", in)
	expectSuccess(t, token, "kontor_sa_")
	expectFailure(t, run(nil, "", "service", "token", account, "--network=192.0.2.7/24", in), "networks.0")
	expectFailure(t, run(nil, "", "service", "token", account, "--scope=audit.burn", in), "scopes.0")
	expectFailure(t, run(nil, "", "service", "token", account, "--expires=soon", in), "neither a date")
	listed := run(nil, "", "service", "list", in)
	expectSuccess(t, listed, "192.0.2.0/24  customers.list  Night job")
	if strings.Contains(listed.stdout, strings.TrimSpace(token.stdout)) {
		t.Error("the list shows the token")
	}
	var accounts []struct{ Tokens []struct{ ID string } }
	if err := json.Unmarshal([]byte(run(nil, "", "service", "list", "--json", in).stdout), &accounts); err != nil || len(accounts) != 1 || len(accounts[0].Tokens) != 1 {
		t.Fatalf("listed %+v: %v", accounts, err)
	}
	id := accounts[0].Tokens[0].ID
	expectSuccess(t, run(nil, "", "service", "revoke", account, id, in), id+" was revoked")
	expectFailure(t, run(nil, "", "service", "revoke", account, account, in), "Token not found")
}

func TestAdminister_RejectsADirectoryWithoutData(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "data")
	expectFailure(t, run(nil, "", "apikey", "list", "--data.dir", missing), "there is no data in "+missing)
	expectFailure(t, run(nil, "a long password\n", "user", "password", "x", "--data.dir", t.TempDir()), "there is no data in")
}
