package app_test

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"kontor/modules/duty/privacy"
	"kontor/server/endpoint"
	"kontor/server/servertest"
)

// Every section names the endpoint that returns the same rows, or the rule by which it is written. The documented type and the
// table in docs/security.md have exactly the declared sections.
func TestPersonalSections_AreDocumented(t *testing.T) {
	s := servertest.Start(t)
	table, names := map[string]bool{}, map[string]bool{}
	for _, e := range s.Table() {
		table[e.Key()] = true
	}
	var rows []string
	for _, section := range s.PersonalSections() {
		key := string(section.Kind) + "." + section.Name
		if names[key] {
			t.Errorf("%s is declared twice", key)
		}
		names[key], names[section.Name] = true, true
		if (section.Endpoint == "") == (section.Rule == "") {
			t.Errorf("%s: name the endpoint with the same rows, or the rule", key)
		}
		if section.Endpoint != "" && !table[section.Endpoint] {
			t.Errorf("%s: there is no endpoint %s", key, section.Endpoint)
		}
		rule := string(section.Rule)
		if rule == "" {
			rule = "`" + section.Endpoint + "`"
		}
		rows = append(rows, fmt.Sprintf("| %s | `%s` | %s |", section.Kind, section.Name, rule))
	}
	head := []string{"kind", "id", "exported_at"}
	for field := range reflect.TypeFor[privacy.Export]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if !names[name] && !slices.Contains(head, name) {
			t.Errorf("the documented type has %s, which no module declares", name)
		}
		delete(names, name)
	}
	for name := range names {
		if !strings.Contains(name, ".") {
			t.Errorf("the documented type lacks %s", name)
		}
	}
	text, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(rows)
	if want := strings.Join(rows, "\n"); !strings.Contains(string(text), want) {
		t.Errorf("docs/security.md lacks the table\n%s", want)
	}
}

// Reports are for callers with a right of their own, a recent authentication, and permission to read all records of the kind.
func TestReport_IsForTheDataProtectionOfficer(t *testing.T) {
	w := newExportWorld(t)
	officer := w.User()
	const path = "GET /v1/customers/{id}/report"
	grant := func(body map[string]any) {
		body["user_id"] = officer.UserID
		w.Admin().Do("POST", "/v1/rbac/grants", body).Expect(t, 201)
	}
	report := "/v1/customers/" + w.customer + "/report"
	for name, c := range map[string]*servertest.Client{"the customer": w.owner, "an advisor": w.advisor, "a user without grants": officer} {
		if got := c.Do("GET", report, nil); got.Status != 403 {
			t.Errorf("%s: got %d", name, got.Status)
		}
	}
	grant(map[string]any{"endpoint": path})
	officer.Do("GET", report, nil).Expect(t, 403)
	grant(map[string]any{"rec_type": "customers", "permissions": []string{"read"}})
	officer.Do("GET", report, nil).Expect(t, 403)
	grant(map[string]any{"rec_type": "customers", "permissions": []string{"read_all"}})
	body := officer.Do("GET", report, nil).Expect(t, 200).Body
	for _, secret := range w.staffOnly {
		if !strings.Contains(body, secret) {
			t.Errorf("the report lacks %q", secret)
		}
	}
	if !strings.Contains(body, "legal_hold") {
		t.Error("the report lacks the legal hold")
	}
	whole := body
	for _, path := range []string{"/v1/users/" + w.owner.UserID, "/v1/personas/" + w.persona} {
		officer.Do("GET", path+"/report", nil).Expect(t, 403)
		whole += w.Admin().Do("GET", path+"/report", nil).Expect(t, 200).Body
	}
	w.checkNoCodes(t, "the reports", whole)
	officer.Do("HEAD", report, nil).Expect(t, 200)
	if err := w.Audit.WriteEvents(t.Context()); err != nil {
		t.Fatal(err)
	}
	trail := w.Admin().Do("GET", "/v1/audit?search.action=privacy.report&search.rec_id="+w.customer, nil).Expect(t, 200).JSON(t)
	if trail["total"] != 1.0 {
		t.Errorf("the audit trail has %v entries of the report, want 1", trail["total"])
	}
	w.Clock.Advance(endpoint.FreshFor)
	officer.Do("GET", report, nil).ExpectError(t, 401, "auth_m.insufficient_user_authentication")
}
