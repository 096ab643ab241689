package rbac_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/store"
	"kontor/store/testenv"
)

// readable is a record and the path that reads it.
type readable struct{ recType, id, path string }

// records creates records of several types, with random creators, participants, assignees and linked users.
func (h *harness) records(random *rand.Rand, users []string) []readable {
	pick := func() *servertest.Client {
		client, _ := h.clients.Load(users[random.IntN(len(users))])
		return client.(*servertest.Client)
	}
	admin := h.Admin()
	var found []readable
	for range 3 {
		customer := admin.Create("/v1/customers", object{"first_name": "Ada", "last_name": "Muster", "email": "ada@example.ch"})
		found = append(found, readable{"customers", customer, "/v1/customers/" + customer})
		task := admin.Create("/v1/customers/"+customer+"/tasks", object{"title": "Sign", "category": "sign", "weight": 1})
		assignee := pick().UserID
		admin.Do("POST", "/v1/customers/"+customer+"/tasks/"+task+"/assignees", object{"user_id": assignee, "weight": 1}).Expect(h.t, 201)
		found = append(found, readable{"tasks", task, "/v1/customers/" + customer + "/tasks/" + task})
		chat := admin.Create("/v1/chats", object{"type": "group", "participants": []string{pick().UserID, pick().UserID}})
		found = append(found, readable{"chats", chat, "/v1/chats/" + chat})
		persona := h.persona(pick().UserID)
		found = append(found, readable{"personas", persona, "/v1/personas/" + persona})
		payer := admin.Create("/v1/payers", object{"customer_id": customer, "name": "Ada", "country": "CHE"})
		found = append(found, readable{"payers", payer, "/v1/payers/" + payer})
		user := pick().UserID
		found = append(found, readable{"users", user, "/v1/users/" + user})
	}
	return found
}

// TestExplain_AgreesWithWhatUsersCanRead creates random roles, relations and grants, and compares the answer for each record with
// the status that every user gets.
func TestExplain_AgreesWithWhatUsersCanRead(t *testing.T) {
	for seed := range uint64(testenv.Rounds(2, 4, 40)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { compareWithReads(t, rand.New(rand.NewPCG(16, seed))) })
	}
}

func compareWithReads(t *testing.T, random *rand.Rand) {
	h := newHarness(t)
	roles := []string{access.Advisor, access.Customer}
	for i := range 3 {
		roles = append(roles, h.role(fmt.Sprint("Role ", i)))
	}
	users := []string{h.root}
	for range 8 {
		held := slices.DeleteFunc(slices.Clone(roles), func(string) bool { return random.IntN(3) > 0 })
		users = append(users, h.user(held...))
	}
	all := h.records(random, users[1:])
	principal := func(body object) object {
		if random.IntN(2) == 0 {
			body["user_id"] = users[1+random.IntN(len(users)-1)]
		} else {
			body["role_id"] = roles[2+random.IntN(len(roles)-2)]
		}
		return body
	}
	for range 40 {
		r := all[random.IntN(len(all))]
		body := principal(object{"rec_type": r.recType, "permissions": []string{[]string{"read", "update", "delete"}[random.IntN(3)]}, "rec_id": r.id})
		switch random.IntN(4) {
		case 0: // on the type
			delete(body, "rec_id")
			body["permissions"] = []string{[]string{"read", "update", "read_all"}[random.IntN(3)]}
		case 1: // on an endpoint
			body = principal(object{"endpoint": "GET /v1/" + []string{"customers/{id}", "chats/{id}", "users/{id}", "payers/{id}"}[random.IntN(4)]})
		}
		h.do(h.root, "POST", "/v1/rbac/grants", body) // some exist already
	}
	compared := map[bool]int{}
	for _, r := range all {
		page := h.want(200, "", h.root, "GET", "/v1/rbac/explain?limit=100&type="+r.recType+"&id="+r.id, nil)
		reasons := map[string]string{}
		for _, row := range page.data() {
			if row["calls"] == true {
				reasons[row["user_id"].(string)] = fmt.Sprint(row["reasons"])
			} else {
				reasons[row["user_id"].(string)] = "no endpoint"
			}
			if len(row["reasons"].([]any)) == 0 {
				t.Errorf("%s: no reason for %v", r.path, row)
			}
		}
		for _, user := range users {
			status := h.do(user, "GET", r.path, nil).status
			reason, listed := reasons[user]
			compared[status == 200]++
			if (status == 200) != (listed && reason != "no endpoint") {
				t.Errorf("%s: %s gets %d, and the answer says %q", r.path, user, status, reason)
			}
		}
	}
	if compared[true] < 20 || compared[false] < 20 {
		t.Errorf("compared %v: too few of one kind to prove anything", compared)
	}
}

// The answer names every source of a permission: the relation, the grant to the user, and the roles with their grants.
func TestExplain_NamesTheChain(t *testing.T) {
	h := newHarness(t)
	role := h.role("Reader")
	user := h.user(role)
	persona := h.persona(user)
	onType := h.grant(object{"role_id": role, "rec_type": "personas", "permissions": []string{"read_all", "create"}})
	onRecord := h.grant(object{"user_id": user, "rec_type": "personas", "permissions": []string{"read"}, "rec_id": persona})
	page := h.want(200, "", h.root, "GET", "/v1/rbac/explain?type=personas&id="+persona+"&search.user_id="+user, nil)
	want := `[{"source":"owner","relation":"creator","role_id":null,"role_name":"","grant_id":null,"scope":"","granted":""},` +
		`{"source":"user","relation":"","role_id":null,"role_name":"","grant_id":"` + onRecord + `","scope":"record","granted":"read"},` +
		`{"source":"role","relation":"","role_id":"` + role + `","role_name":"Reader","grant_id":"` + onType + `","scope":"type","granted":"read_all"}]`
	if !strings.Contains(page.text, want) {
		t.Errorf("got %s\nwant %s", page.text, want)
	}
	admin := h.want(200, "", h.root, "GET", "/v1/rbac/explain?type=personas&id="+persona+"&search.user_id="+h.root, nil)
	if !strings.Contains(admin.text, `"role_name":"Administrator","grant_id":null`) {
		t.Error(admin.text)
	}
	updates := h.want(200, "", h.root, "GET", "/v1/rbac/explain?permission=update&type=personas&id="+persona+"&search.user_id="+user, nil)
	if !strings.Contains(updates.text, `"relation":"creator"`) || strings.Contains(updates.text, `"source":"role"`) {
		t.Error(updates.text)
	}
}

// Only callers who may read all grants or the audit trail get an answer; others learn nothing of the record either.
func TestExplain_IsForAuditors(t *testing.T) {
	h := newHarness(t)
	role := h.role("Curious")
	user := h.user(role)
	path := "/v1/rbac/explain?type=personas&id=" + h.persona(user)
	h.want(403, "common.rbac_no_rec_access", user, "GET", path, nil)
	h.grant(object{"role_id": role, "endpoint": "GET /v1/rbac/explain"})
	h.want(403, "common.rbac_no_rec_access", user, "GET", path, nil)
	h.want(403, "common.rbac_no_rec_access", user, "GET", "/v1/rbac/explain?type=personas&id="+store.NewID(), nil)
	h.grant(object{"role_id": role, "rec_type": "audit", "permissions": []string{"read"}})
	h.want(200, "", user, "GET", path, nil)
	h.want(404, "rbac.record_not_found", user, "GET", "/v1/rbac/explain?type=personas&id="+store.NewID(), nil)
	h.want(404, "rbac.record_not_found", user, "GET", "/v1/rbac/explain?type=invoices&id="+store.NewID(), nil)
	for _, query := range []string{"", "type=ships&id=" + store.NewID(), "type=personas&id=x", "type=personas&id=" + store.NewID() + "&permission=create"} {
		h.want(400, "common.invalid_input", user, "GET", "/v1/rbac/explain?"+query, nil)
	}
}
