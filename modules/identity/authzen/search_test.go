package authzen_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"kontor/modules/demo/demotest"
	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/store"
	"kontor/store/testenv"
)

// tables are the tables with the records of types, from which the test reads all ids by itself.
var tables = map[string]string{
	"customers": "customers", "personas": "personas", "payers": "payers", "chats": "chats", "users": "users", "roles": "roles",
	"grants": "grant_records", "credentials": "credentials", "sessions": "sessions", "webhooks": "webhooks", "audit": "",
}

// bank is a server with random users, records and grants.
type bank struct {
	*servertest.Server
	random   *rand.Rand
	subjects []string            // user names, or ids of users without one
	records  map[string][]string // by type
	asker    *servertest.Client
	page     int // the largest page of a search
}

func newBank(t *testing.T, seed uint64) *bank {
	t.Helper()
	s := servertest.Start(t, atBank)
	b := &bank{Server: s, random: rand.New(rand.NewPCG(seed, 30)), records: map[string][]string{}, asker: s.Admin(), page: 7}
	role := s.Admin().Create("/v1/rbac/roles", json{"name": "Auditor"})
	var ids []string
	for name, roles := range map[string][]string{"alice": {access.Advisor}, "bob": {access.Customer}, "carol": {access.Customer, role}, "dora": {role}, "root": {access.Administrator}} {
		ids = append(ids, named(t, s, name, roles...))
		b.subjects = append(b.subjects, name)
	}
	slices.Sort(b.subjects)
	for i, owner := range []string{"alice", "bob", "carol"} {
		c := s.SignIn(owner, servertest.Password)
		for j := range 3 {
			customer := c.Create("/v1/customers", json{"first_name": "Anna", "last_name": "Keller", "email": fmt.Sprintf("anna%d%d@example.ch", i, j)})
			c.Create("/v1/payers", json{"customer_id": customer, "name": "Anna Keller"})
			c.Create("/v1/personas", json{"first_name": "Anna", "last_name": "Keller", "date_of_birth": "1990-01-31"})
		}
	}
	s.Admin().Create("/v1/rbac/record-types", json{"name": "invoice", "permissions": []string{"approve", "read"}})
	b.readRecords(t)
	for range 40 {
		b.grant(t, append(ids, role, access.Customer))
	}
	b.readRecords(t) // with the grants
	return b
}

func (b *bank) readRecords(t *testing.T) {
	t.Helper()
	for recType, table := range tables {
		if table == "" {
			continue
		}
		found, err := store.All(t.Context(), b.DB, store.Text, "SELECT id FROM "+table+" ORDER BY id")
		if err != nil {
			t.Fatal(err)
		}
		b.records[recType] = found
	}
	b.records["invoice"] = []string{"1", "10", "2", "ä", "Z"}
}

// grant creates a random grant. The principal may have it already.
func (b *bank) grant(t *testing.T, principals []string) {
	t.Helper()
	pick := func(all []string) string { return all[b.random.IntN(len(all))] }
	recType := pick([]string{"customers", "personas", "payers", "users", "roles", "invoice", "invoice"})
	body := json{"rec_type": recType, "user_id": pick(principals)}
	if n := b.random.IntN(len(principals)); n >= len(principals)-2 {
		body = json{"rec_type": recType, "role_id": principals[n]}
	} else {
		body["user_id"] = principals[n]
	}
	possible := []string{"read", "update", "delete"}
	if recType == "invoice" {
		possible = []string{"approve", "read"}
	}
	switch {
	case b.random.IntN(5) > 0:
		body["rec_id"] = pick(b.records[recType])
	case recType != "invoice":
		possible = append(possible, "create", "read_all")
	}
	body["permissions"] = []string{pick(possible)}
	if answer := b.Admin().Do("POST", "/v1/rbac/grants", body); answer.Status != 201 && answer.Status != 409 {
		t.Fatalf("%v: %d %s", body, answer.Status, answer.Body)
	}
}

// allowed returns for which questions a batch of evaluations permits.
func (b *bank) allowed(t *testing.T, defaults json, key string, values []json) (at []int) {
	t.Helper()
	items := make([]json, len(values))
	for i, v := range values {
		items[i] = json{key: v}
	}
	i := 0
	for batch := range slices.Chunk(items, 1000) { // the most that a request may have
		defaults["evaluations"] = batch
		for _, d := range b.asker.Do("POST", "/access/v1/evaluations", defaults).Expect(t, 200).JSON(t)["evaluations"].([]any) {
			if d.(map[string]any)["decision"] == true {
				at = append(at, i)
			}
			i++
		}
	}
	return at
}

// pages returns all results of a search, a few at a time.
func (b *bank) pages(t *testing.T, path string, body json) (found []string) {
	t.Helper()
	body["page"] = json{"limit": 1 + b.random.IntN(b.page)}
	for {
		answer := b.asker.Do("POST", "/access/v1/search/"+path, body).Expect(t, 200).JSON(t)
		for _, one := range answer["results"].([]any) {
			member := one.(map[string]any)
			if name, ok := member["name"]; ok {
				found = append(found, name.(string))
			} else {
				found = append(found, member["id"].(string))
			}
		}
		token := answer["page"].(map[string]any)["next_token"].(string)
		if token == "" {
			slices.Sort(found)
			return found
		}
		body["page"] = json{"token": token}
	}
}

// TestSearch_EqualsEvaluation compares each search with evaluations of all that it could find.
func TestSearch_EqualsEvaluation(t *testing.T) {
	for seed := range uint64(testenv.Rounds(1, 2, 10)) {
		b := newBank(t, seed)
		for recType := range tables {
			b.compare(t, recType, access.All.Names())
		}
		b.compare(t, "invoice", []string{"approve", "read", "fly"})
		b.compare(t, "spaceship", []string{"read"})
	}
}

// TestEvaluation_EqualsTheCheck compares evaluations with the permission check of the API.
func TestEvaluation_EqualsTheCheck(t *testing.T) {
	b := newBank(t, 31)
	for _, recType := range []string{"customers", "personas", "users"} {
		var checks, items []json
		for _, id := range b.records[recType] {
			for _, action := range []string{"read", "update", "delete"} {
				checks = append(checks, json{"rec_type": recType, "permission": action, "rec_id": id})
				items = append(items, json{"action": json{"name": action}, "resource": json{"type": recType, "id": id}})
			}
		}
		for _, user := range b.records["users"] {
			checked := b.asker.Do("POST", "/v1/rbac/check", json{"user_id": user, "checks": checks}).Expect(t, 200).JSON(t)["results"].([]any)
			body := json{"subject": json{"type": "user", "id": user}, "evaluations": items}
			for i, d := range b.asker.Do("POST", "/access/v1/evaluations", body).Expect(t, 200).JSON(t)["evaluations"].([]any) {
				if got, want := d.(map[string]any)["decision"], checked[i].(map[string]any)["allowed"]; got != want {
					t.Errorf("%s %v: the evaluation says %v, the check %v", user, checks[i], got, want)
				}
			}
		}
	}
}

// TestSearch_EqualsEvaluationOverTheDemo compares searches with evaluations of all records of the demo, for users of each role.
func TestSearch_EqualsEvaluationOverTheDemo(t *testing.T) {
	testenv.Need(t, testenv.Full)
	s := demotest.Start(t)
	b := &bank{Server: s, random: rand.New(rand.NewPCG(1, 30)), records: map[string][]string{}, asker: s.Admin(), page: 400}
	b.readRecords(t)
	var err error
	b.subjects, err = store.All(t.Context(), b.DB, store.Text, `SELECT MIN(user_id) FROM user_roles GROUP BY role_id ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	if len(b.subjects) < 3 || len(b.records["customers"]) < 100 {
		t.Fatalf("the demo has %d kinds of users and %d customers", len(b.subjects), len(b.records["customers"]))
	}
	for recType := range tables {
		b.compare(t, recType, access.All.Names())
	}
}

func (b *bank) compare(t *testing.T, recType string, actions []string) {
	t.Helper()
	user := func(name string) json { return json{"type": "user", "id": name} }
	record := func(id string) json { return json{"type": recType, "id": id} }
	var ids []json
	for _, id := range b.records[recType] {
		ids = append(ids, record(id))
	}
	ids = append(ids, record("0198f5c0-52a1-7cc2-9f00-2a3b4c5d6e7f"))
	for _, action := range actions {
		for _, subject := range b.subjects {
			var want []string
			for _, i := range b.allowed(t, json{"subject": user(subject), "action": json{"name": action}}, "resource", ids) {
				want = append(want, ids[i]["id"].(string))
			}
			if recType == "invoice" { // a search finds the records that grants name
				want = slices.DeleteFunc(want, func(id string) bool { return !b.names(t, id) })
			}
			slices.Sort(want)
			got := b.pages(t, "resource", json{"subject": user(subject), "action": json{"name": action}, "resource": json{"type": recType}})
			if !slices.Equal(got, want) {
				t.Errorf("%s may %s %s: the search finds %v, the evaluation %v", subject, action, recType, got, want)
			}
		}
		for _, resource := range some(ids, 4) {
			var all []json
			for _, subject := range b.subjects {
				all = append(all, user(subject))
			}
			var want []string
			for _, i := range b.allowed(t, json{"resource": resource, "action": json{"name": action}}, "subject", all) {
				want = append(want, b.subjects[i])
			}
			got := b.pages(t, "subject", json{"subject": json{"type": "user"}, "action": json{"name": action}, "resource": resource})
			got = slices.DeleteFunc(got, func(id string) bool { return !slices.Contains(b.subjects, id) }) // the first administrator has no user name
			if !slices.Equal(got, want) {
				t.Errorf("%s %v: the search finds %v, the evaluation %v", action, resource, got, want)
			}
		}
	}
	for _, resource := range some(ids, 3) {
		for _, subject := range b.subjects {
			var all []json
			for _, action := range actions {
				all = append(all, json{"name": action})
			}
			var want []string
			for _, i := range b.allowed(t, json{"resource": resource, "subject": user(subject)}, "action", all) {
				want = append(want, actions[i])
			}
			slices.Sort(want)
			if got := b.pages(t, "action", json{"subject": user(subject), "resource": resource}); !slices.Equal(got, want) {
				t.Errorf("%s with %v: the search finds %v, the evaluation %v", subject, resource, got, want)
			}
		}
	}
}

// names reports whether a grant names a record of the other application.
func (b *bank) names(t *testing.T, id string) bool {
	t.Helper()
	var n int
	if err := b.DB.QueryRow(t.Context(), `SELECT COUNT(*) FROM external_grants WHERE rec_type = 'invoice' AND rec_id = $1`, id).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n > 0
}

// some returns at most n values, the last one among them.
func some(values []json, n int) []json {
	return values[max(0, len(values)-n):]
}
