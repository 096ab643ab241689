package erasure_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"kontor/modules/commands/systemtest"
	"kontor/store/testenv"
)

// planted are texts that a test has stored about a person.
type planted struct {
	name  string
	texts []string
}

// text returns a new text. Each is unique.
func (p *planted) text(what string) string {
	text := fmt.Sprintf("Qplant%s%s%02dq", what, p.name, len(p.texts))
	p.texts = append(p.texts, text)
	return text
}

// in returns the texts that the files of a directory contain, in any case.
func (p *planted) in(tb testing.TB, dir string) (found []string) {
	tb.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		data = bytes.ToLower(data)
		for _, text := range p.texts {
			if bytes.Contains(data, []byte(strings.ToLower(text))) {
				found = append(found, d.Name()+": "+text)
			}
		}
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	return found
}

func body(tb testing.TB, v any) string {
	tb.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}

type members map[string]any

// plantPerson stores 40 texts about a customer and a user in all modules, and returns their ids.
func plantPerson(tb testing.TB, p *systemtest.Process, m *planted) (customer, user string) {
	tb.Helper()
	admin := p.Admin()
	email := m.text("login") + "@example.ch"
	registered := p.Keyed().Do(tb, "POST", "/v1/users/initiate-registration", body(tb, members{"credential_type": "email", "credential_value": email,
		"password": "a quiet day in May 42", "display_name": m.text("display"), "language": "de",
		"terms_accepted": true, "privacy_policy_accepted": true}), 201)
	var r struct {
		UserID      string `json:"user_id"`
		AccessToken string `json:"access_token"`
		Credential  struct{ ID string }
	}
	registered.Decode(tb, &r)
	user = r.UserID
	code := systemtest.SentCode(tb, admin, email)
	p.Client("Authorization", "Bearer "+r.AccessToken).Do(tb, "PUT", "/v1/users/"+user+"/credentials/"+r.Credential.ID+"/validate", systemtest.Object("otp", code), 200)
	customer = admin.Create(tb, "/v1/customers", body(tb, members{"first_name": m.text("first"), "last_name": m.text("last"),
		"email": m.text("mail") + "@example.ch", "metadata": members{"note": m.text("meta"), m.text("key"): true},
		"address": members{"street": m.text("street"), "city": m.text("city"), "postal_code": m.text("zip")[:10], "country": "CH"}}))
	m.texts[len(m.texts)-1] = m.texts[len(m.texts)-1][:10]
	path := "/v1/customers/" + customer
	for i := range 2 {
		admin.Create(tb, "/v1/payers", body(tb, members{"customer_id": customer, "name": m.text("payer"), "company": m.text("company"),
			"email": m.text("paymail") + "@example.ch", "metadata": members{"note": m.text("paymeta")}}))
		admin.Do(tb, "PUT", path+"/kyc", body(tb, members{"documents": []members{{"type": "passport", "number": m.text("passport"),
			"expiry_date": fmt.Sprint(2040+i) + "-01-01", "country": "CHE"}}}), 200)
	}
	task := admin.Create(tb, path+"/tasks", body(tb, members{"title": m.text("title"), "category": "sign", "description": m.text("text"),
		"metadata": members{"note": m.text("taskmeta")}, "assignees": []members{{"user_id": user, "name": m.text("assignee")}}}))
	admin.Do(tb, "PATCH", path+"/tasks/"+task+"/status", body(tb, members{"status": "in_progress", "reason": m.text("why")}), 200)
	for _, status := range []string{"in_review", "action_required", "pending"} {
		admin.Do(tb, "PATCH", path+"/kyc/status", body(tb, members{"kyc_status": status, "reason": m.text("reason")}), 200)
	}
	admin.Do(tb, "PUT", path, body(tb, members{"last_name": m.text("renamed")}), 200)
	persona := admin.Create(tb, "/v1/personas", body(tb, members{"first_name": m.text("pfirst"), "last_name": m.text("plast"),
		"date_of_birth": "1980-02-03", "hash_id": m.text("hash"), "metadata": members{"note": m.text("pmeta")}}))
	admin.Do(tb, "POST", "/v1/personas/"+persona+"/users", body(tb, members{"user_id": user}), 201)
	admin.Do(tb, "PUT", "/v1/personas/"+persona, body(tb, members{"first_name": m.text("pnew"), "last_name": m.text("pnewlast"),
		"date_of_birth": "1980-02-03"}), 200)

	var tokens struct {
		AccessToken string `json:"access_token"`
	}
	own := p.Client("X-Device-ID", m.text("device"), "User-Agent", m.text("agent"))
	own.Do(tb, "POST", "/authenticate", body(tb, members{"user_id": email, "password": "a quiet day in May 42"}), 200).Decode(tb, &tokens)
	own = own.With("Authorization", "Bearer "+tokens.AccessToken)
	chat := own.Create(tb, "/v1/chats", body(tb, members{"participants": []string{admin.UserID(tb)}, "metadata": members{"topic": m.text("topic")}}))
	for range 3 {
		own.Do(tb, "POST", "/v1/chats/"+chat+"/messages", body(tb, members{"content": m.text("message"), "metadata": members{"note": m.text("msgmeta")}}), 201)
	}
	own.With("Idempotency-Key", m.text("idem")).Do(tb, "POST", "/v1/chats/"+chat+"/messages", body(tb, members{"content": m.text("message")}), 201)
	return customer, user
}

// eraseFully erases a person and waits until the files are clean.
func eraseFully(tb testing.TB, c *systemtest.Client, path string) {
	tb.Helper()
	var e struct{ ID, Status string }
	testenv.Wait(tb, "the erasure to be complete", func() bool {
		got, err := c.Try("POST", path+"/erasure", `{"reason":"request"}`)
		if err != nil || got.Status != 200 && got.Status != 202 {
			tb.Fatalf("%s: %d %s, %v", path, got.Status, got.Body, err)
		}
		got.Decode(tb, &e)
		return e.Status == "erased"
	})
}

// After an erasure no byte of the data directory holds one of the planted texts, while the server runs and after its stop. An
// older backup brings them back, and the ledger erases them again.
func TestErasure_LeavesNoByteOfAPerson(t *testing.T) {
	work := t.TempDir()
	dir, file, ledger := filepath.Join(work, "data"), filepath.Join(work, "old.backup"), filepath.Join(work, "kontor.erasures")
	p := systemtest.Start(t, dir)
	m, other := planted{name: "x"}, planted{name: "y"}
	customer, user := plantPerson(t, p, &m)
	keptCustomer, _ := plantPerson(t, p, &other)
	if len(m.texts) < 40 {
		t.Fatalf("%d texts were planted", len(m.texts))
	}
	if o := systemtest.Run(t, nil, "backup", file, "--with-key", "--data.dir", dir); o.Code != 0 {
		t.Fatal(o.Stderr)
	}
	if n := len(m.in(t, dir)); n < 25 {
		t.Fatalf("only %d texts are in the files", n)
	}
	admin := p.Admin()
	before := admin.Do(t, "GET", "/v1/customers/"+keptCustomer+"/export", "", 200).Body
	exported := admin.Do(t, "GET", "/v1/customers/"+customer+"/export", "", 200).Body + admin.Do(t, "GET", "/v1/users/"+user+"/export", "", 200).Body
	for _, text := range []string{"first", "payer", "passport", "title", "reason", "display", "message", "device"} {
		if !strings.Contains(exported, "Qplant"+text) {
			t.Errorf("the export lacks %s", text)
		}
	}
	eraseFully(t, admin, "/v1/customers/"+customer)
	eraseFully(t, admin, "/v1/users/"+user)
	if found := m.in(t, dir); len(found) > 0 {
		t.Errorf("while the server runs, the files hold %v", found)
	}
	if after := admin.Do(t, "GET", "/v1/customers/"+keptCustomer+"/export", "", 200).Body; withoutTime(after) != withoutTime(before) {
		t.Error("another customer has changed")
	}
	systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "privacy", "ledger", ledger, "--data.dir", dir))
	if code := p.Stop(); code != 0 {
		t.Fatalf("it ended with %d", code)
	}
	if found := m.in(t, dir); len(found) > 0 {
		t.Errorf("after the stop, the files hold %v", found)
	}
	if log := p.Stderr.String(); strings.Contains(log, "Qplant") {
		t.Error("the log holds planted texts")
	}
	if out := systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "check", "--data.dir", dir)); !strings.Contains(out, "is intact") {
		t.Errorf("check printed %q", out)
	}

	elsewhere := filepath.Join(work, "elsewhere")
	systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "restore", file, "--erasures", ledger, "--data.dir", elsewhere))
	restored := systemtest.Start(t, elsewhere)
	admin = restored.Admin()
	if got := admin.Do(t, "GET", "/v1/customers/"+customer, "", 200).Body; !strings.Contains(got, "erased_at") || strings.Contains(got, "Qplant") {
		t.Errorf("the restored customer is %s", got)
	}
	eraseFully(t, admin, "/v1/customers/"+customer) // returns the erasure of the ledger
	eraseFully(t, admin, "/v1/users/"+user)
	if found := m.in(t, elsewhere); len(found) > 0 {
		t.Errorf("the restored files hold %v", found)
	}
	if len(other.in(t, elsewhere)) == 0 {
		t.Error("another person is missing")
	}
	restored.Stop()
	systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "check", "--data.dir", elsewhere))
	tampered := filepath.Join(work, "tampered")
	text, err := os.ReadFile(ledger)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(tampered, bytes.Replace(text, []byte(`"customer"`), []byte(`"persona"`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	third := filepath.Join(work, "third")
	systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "restore", file, "--erasures", tampered, "--data.dir", third))
	systemtest.ExpectFailure(t, systemtest.Run(t, nil, "serve", "--server.listen=127.0.0.1:0", "--data.dir", third), "not authentic")
	systemtest.ExpectFailure(t, systemtest.Run(t, nil, "restore", file, "--erasures", ledger, "--data.dir", third), "neither continues the other")
}

// withoutTime removes the time of an export.
func withoutTime(export string) string {
	from, to := strings.Index(export, `"exported_at"`), strings.Index(export, `"customer":`)
	if from < 0 || to < from {
		return export
	}
	return export[:from] + export[to:]
}

// A killed erasure has not begun, or it is finished after the next start.
func TestErasure_SurvivesKills(t *testing.T) {
	work := t.TempDir()
	dir := filepath.Join(work, "data")
	p := systemtest.Start(t, dir)
	for round := range 4 {
		m := planted{name: strings.Repeat("z", round+1)}
		customer, user := plantPerson(t, p, &m)
		admin := p.Admin()
		chat := admin.Create(t, "/v1/chats", body(t, members{"participants": []string{user}, "metadata": members{"support": true}}))
		var wait sync.WaitGroup
		for range 4 {
			wait.Go(func() {
				for range 50 {
					if got, err := admin.Try("POST", "/v1/chats/"+chat+"/messages", `{"content":"Good morning"}`); err != nil || got.Status != 201 {
						t.Errorf("a message: %d %s, %v", got.Status, got.Body, err)
					}
				}
			})
		}
		wait.Wait()
		for _, path := range []string{"/v1/customers/" + customer, "/v1/users/" + user} {
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_, _ = admin.Try("POST", path+"/erasure", `{"reason":"request"}`) // the kill interrupts it
			}()
			select {
			case <-ended:
			case <-time.NewTimer(time.Duration(1+5*round) * time.Millisecond).C: // the moment of the kill
			}
			p.Kill()
			<-ended
			p = systemtest.Start(t, dir)
			admin = p.Admin()
			eraseFully(t, admin, path)
		}
		if found := m.in(t, dir); len(found) > 0 {
			t.Errorf("round %d: the files hold %v", round, found)
		}
	}
	p.Stop()
	systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "check", "--data.dir", dir))
}
