package tampering_test

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"kontor/modules/commands/systemtest"
	"kontor/store/storetest"
)

// newDemo returns a data directory with records of all types, and responses of the API for some records, by their names in
// "kontor check --record".
func newDemo(t *testing.T) (dir string, answers map[string]string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "demo")
	p := systemtest.StartWith(t, nil, "--demo", "--data.dir", dir, "--rate_limits.enabled=false")
	passwords := map[string]string{}
	for _, row := range regexp.MustCompile(`(\w+)@kontor\.localhost\s+(\S+)`).FindAllStringSubmatch(p.Stdout.String(), -1) {
		passwords[row[1]] = row[2]
	}
	signIn := func(name string) *systemtest.Client { return p.SignIn(name+"@kontor.localhost", passwords[name]) }
	root, customer := signIn("admin"), signIn("customer")
	var me struct {
		ID string `json:"id"`
	}
	customer.Do(t, "GET", "/v1/users/me", "", 200).Decode(t, &me)
	signIn("customer").Do(t, "POST", "/v1/logout", "", 200)
	customer.Do(t, "PUT", "/v1/profile/preferences", `{"theme":"dark"}`, 200)
	root.Do(t, "POST", "/v1/personas/"+systemtest.IDOf(t, firstRow(t, root, "/v1/personas"))+"/users", `{"user_id":"`+me.ID+`"}`, 201)

	answers = map[string]string{"profiles/" + me.ID: customer.Do(t, "GET", "/v1/profile", "", 200).Body}
	for recType, path := range map[string]string{"customers": "/v1/customers", "personas": "/v1/personas", "users": "/v1/users", "roles": "/v1/rbac/roles"} {
		id := systemtest.IDOf(t, firstRow(t, root, path))
		answers[recType+"/"+id] = root.Do(t, "GET", path+"/"+id, "", 200).Body
	}
	for recType, path := range map[string]string{"api_keys": "/v1/api-keys", "grants": "/v1/rbac/grants", "tasks": "/v1/tasks",
		"sessions": "/v1/users/" + me.ID + "/sessions", "credentials": "/v1/users/" + me.ID + "/credentials"} {
		by := root
		if recType == "tasks" {
			by = signIn("advisor")
		}
		row := firstRow(t, by, path)
		answers[recType+"/"+systemtest.IDOf(t, row)] = row
	}
	chat := firstRow(t, customer, "/v1/chats")
	answers["chats/"+systemtest.IDOf(t, chat)] = chat
	for _, row := range rows(t, customer.Do(t, "GET", "/v1/chats/"+systemtest.IDOf(t, chat)+"/messages", "", 200).Body) {
		if !strings.Contains(row, `"type":"system"`) {
			answers["chat_messages/"+systemtest.IDOf(t, row)] = row
		}
	}
	if code := p.Stop(); code != 0 {
		t.Fatalf("exit code %d: %s", code, p.Stderr)
	}
	return dir, answers
}

// rows returns the rows of a list, each as the API encoded it.
func rows(t *testing.T, body string) (all []string) {
	t.Helper()
	var found []json.RawMessage
	if !strings.HasPrefix(body, "[") {
		var list struct {
			Data []json.RawMessage `json:"data"`
		}
		systemtest.Answer{Body: body}.Decode(t, &list)
		found = list.Data
	} else {
		systemtest.Answer{Body: body}.Decode(t, &found)
	}
	for _, row := range found {
		all = append(all, string(row))
	}
	return all
}

func firstRow(t *testing.T, c *systemtest.Client, path string) string {
	t.Helper()
	all := rows(t, c.Do(t, "GET", path, "", 200).Body)
	if len(all) == 0 {
		t.Fatalf("%s returned no row", path)
	}
	return all[0]
}

const anyID = "0192aaaa-0000-7000-8000-000000000001"

// The check must report every record that was changed outside the program.
func TestCheck_ReportsManipulatedRecords(t *testing.T) {
	dir, _ := newDemo(t)
	if out := systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "check", "--data.dir", dir)); !strings.Contains(out, "records match the audit trail") {
		t.Fatalf("an intact database: %q", out)
	}
	for _, c := range []struct{ statement, says string }{
		{"UPDATE users SET status = 'active' WHERE status = 'pending'", "users/"},
		{"UPDATE users SET created_by = id", "users/"},
		{"UPDATE credentials SET value = 'x' || value", "credentials/"},
		{"UPDATE credentials SET value_key = 'x' || value_key", "credentials/"},
		{"UPDATE passwords SET hash = (SELECT hash FROM passwords LIMIT 1)", "passwords/"},
		{"UPDATE user_roles SET role_id = '" + administratorRole + "'", "user_roles/"},
		{"DELETE FROM user_roles", "user_roles/"},
		{"INSERT INTO user_roles (user_id, role_id, created_at, created_by) SELECT user_id, '" + administratorRole + "', 0, user_id FROM user_roles WHERE role_id <> '" + administratorRole + "'", "user_roles/"},
		{"UPDATE sessions SET expires_at = expires_at + 1", "sessions/"},
		{"UPDATE sessions SET ended_at = NULL", "sessions/"},
		{"UPDATE api_keys SET key_hash = 'x' || key_hash", "api_keys/"},
		{"UPDATE api_keys SET revoked_at = 1", "api_keys/"},
		{"UPDATE roles SET name = name || 'x'", "roles/"},
		{"UPDATE roles SET name_key = name_key || 'x'", "roles/"},
		{"UPDATE grants SET permission = 'delete' WHERE permission = 'update'", "grants/"},
		{"DELETE FROM grants WHERE permission = 'create'", "grants/"},
		{"DELETE FROM endpoint_grants", "grants/"},
		{"UPDATE grant_records SET permissions = permissions || ',delete' WHERE permissions <> ''", "grants/"},
		{"INSERT INTO grants VALUES ('" + anyID + "', 'user', 'u', 'customers', 'read_all', '', 0, 'u', 1)", "grants/" + anyID + ": the row belongs to no record"},
		{"INSERT INTO endpoint_grants VALUES ('" + anyID + "', 'user', 'u', 'GET /v1/audit', 0, 'u', 1)", "grants/" + anyID + ": the row belongs to no record"},
		{"UPDATE rate_limit_rules SET per_minute = per_minute + 1", "rate_limits/"},
		{"UPDATE customers SET kyc_status = 'verified' WHERE kyc_status <> 'verified'", "customers/"},
		{"UPDATE customers SET created_by = (SELECT id FROM users LIMIT 1) WHERE created_by <> (SELECT id FROM users LIMIT 1)", "customers/"},
		{"UPDATE customers SET last_name_key = 'x'", "customers/"},
		{"UPDATE customers SET metadata = '{\"vip\":true}'", "customers/"},
		{"UPDATE customers SET version = version + 1", "customers/"},
		{"UPDATE kyc_documents SET expiry_date = '2999-01-01'", "kyc_documents/"},
		{"UPDATE kyc_documents SET number_key = 'x' || number_key", "kyc_documents/"},
		{"UPDATE kyc_changes SET changed_by = changed_by || 'x'", "kyc_changes/"},
		{"DELETE FROM kyc_changes", "kyc_changes/"},
		{"UPDATE personas SET date_of_birth = '1990-01-01'", "personas/"},
		{"UPDATE personas SET first_name_key = first_name_key || 'x'", "personas/"},
		{"DELETE FROM persona_users", "personas/"},
		{"UPDATE persona_links SET relation = 'other' WHERE relation <> 'other'", "personas/"},
		{"UPDATE payers SET active = NOT active", "payers/"},
		{"UPDATE payers SET company_key = company_key || 'x'", "payers/"},
		{"UPDATE chats SET metadata = '{\"a\":1}'", "chats/"},
		{"DELETE FROM chat_participants", "chats/"},
		{"UPDATE chat_messages SET content = content || '!'", "chat_messages/"},
		{"DELETE FROM chat_messages", "chat_messages/"},
		{"UPDATE tasks SET title = title || '!'", "tasks/"},
		{"DELETE FROM task_members", "tasks/"},
		{"INSERT INTO task_members SELECT id, (SELECT u.id FROM users u WHERE u.id NOT IN (SELECT user_id FROM task_members m WHERE m.task_id = tasks.id) LIMIT 1), 0 FROM tasks LIMIT 1", "tasks/"},
		{"UPDATE profile_preferences SET theme = 'light'", "profiles/"},
		{"INSERT INTO avatars SELECT user_id, 512, 'token', 'image/png', x'00', 0, user_id FROM profile_preferences", "profiles/"},
		{"DELETE FROM payers", "payers/"},
		{"INSERT INTO payers (id, customer_id, name, company_key, active, metadata, created_at, created_by, modified_at, modified_by) " +
			"SELECT '" + anyID + "', customer_id, 'x', '', active, metadata, created_at, created_by, modified_at, modified_by FROM payers LIMIT 1",
			"payers/" + anyID + ": it exists without an audit entry"},
	} {
		t.Run(c.statement, func(t *testing.T) {
			tampered := systemtest.CopyDataDir(t, dir)
			storetest.Tamper(t, filepath.Join(tampered, "kontor.db"), c.statement)
			systemtest.ExpectFailure(t, systemtest.Run(t, nil, "check", "--data.dir", tampered), c.says)
		})
	}
}

const administratorRole = "0193b000-0000-7000-8000-000000000001"

// The check of one record accepts a record as the API returned it, and rejects a changed one.
func TestCheck_ComparesARecordOfTheAPI(t *testing.T) {
	dir, answers := newDemo(t)
	types := map[string]bool{}
	for name, body := range answers {
		recType, _, _ := strings.Cut(name, "/")
		types[recType] = true
		if out := systemtest.ExpectSuccess(t, checkRecord(t, dir, name, body)); !strings.Contains(out, name+" matches audit entry") || !strings.Contains(out, "has not changed since") {
			t.Errorf("%s: %q", name, out)
		}
		_, id, _ := strings.Cut(name, "/")
		changed := strings.Replace(body, id, anyID, 1)
		systemtest.ExpectFailure(t, checkRecord(t, dir, name, changed), name+": no audit entry contains this record")
	}
	if len(types) < 12 {
		t.Errorf("only %v were checked", types)
	}
	for _, c := range []struct{ record, body, says string }{
		{"nothing/1", "{}", "want TYPE/ID"},
		{"customers", "{}", "want TYPE/ID"},
		{"customers/" + anyID, "{}", "no audit entry contains"},
		{"customers/" + anyID, "[]", "not a JSON object"},
		{"customers/" + anyID, `{"id":`, "not a JSON object"},
		{"customers/" + anyID, "", "not a JSON object"},
	} {
		systemtest.ExpectFailure(t, checkRecord(t, dir, c.record, c.body), c.says)
	}
}

// checkRecord runs the check of one record.
func checkRecord(t *testing.T, dir, record, body string) systemtest.Outcome {
	t.Helper()
	return systemtest.RunWithInput(t, body, "check", "--record", record, "--data.dir", dir)
}
