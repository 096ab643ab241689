package rbac_test

import (
	"fmt"
	"testing"
	"time"

	"kontor/server/access"
)

// in returns the time after a duration by the clock of the server.
func (h *harness) in(d time.Duration) time.Time { return h.Clock.Now().Add(d) }

func TestGrants_BeginAndEnd(t *testing.T) {
	h := newHarness(t)
	user := h.user(access.Customer)
	persona := h.persona(h.root)
	from, until := h.in(time.Minute), h.in(2*time.Minute)
	term := func(body object) object {
		body["user_id"], body["starts_at"], body["expires_at"] = user, from, until
		return body
	}
	for _, body := range []object{
		{"rec_type": "personas", "rec_id": persona, "permissions": []string{"read"}},
		{"rec_type": "audit", "permissions": []string{"read"}},
		{"endpoint": "GET /v1/audit"},
	} {
		h.grant(term(body))
	}
	for i, want := range []int{403, 200, 403} {
		h.want(want, map[int]string{403: "common.rbac_no_rec_access"}[want], user, "GET", "/v1/personas/"+persona, nil)
		h.want(want, map[int]string{403: "common.rbac_no_rec_access"}[want], user, "GET", "/v1/audit?limit=1", nil)
		rows := h.want(200, "", user, "GET", "/v1/personas", nil).data()
		if (len(rows) == 1) != (want == 200) {
			t.Errorf("after %d minutes the list has %d rows", i, len(rows))
		}
		h.Clock.Advance(time.Minute)
	}
	if n := h.want(200, "", h.root, "GET", "/v1/rbac/grants?search.user_id="+user, nil).body["total"]; n != 0.0 {
		t.Errorf("%v grants are left", n)
	}
	entries := h.want(200, "", h.root, "GET", "/v1/audit?search.action=rbac.grants.expire", nil).body["total"]
	if entries != 3.0 {
		t.Errorf("%v entries about ended grants", entries)
	}
}

// No request is needed: the job of each node ends what is due, and does nothing before.
func TestGrants_EndWithoutARequest(t *testing.T) {
	h := newHarness(t)
	user := h.user(access.Customer)
	h.grant(object{"user_id": user, "rec_type": "audit", "permissions": []string{"read"}, "expires_at": h.in(time.Minute)})
	caller := access.Caller{UserID: user}
	may := func() bool { return caller.WithPolicy(h.Policy.Load()).May(access.Audit, access.Read) }
	h.Clock.Advance(time.Minute - time.Millisecond)
	for range 2 {
		if err := h.RBAC.ApplyTerms(t.Context()); err != nil || !may() {
			t.Fatalf("before the end: %v, %v", may(), err)
		}
	}
	h.Clock.Advance(time.Millisecond)
	if err := h.RBAC.ApplyTerms(t.Context()); err != nil || may() {
		t.Fatalf("at the end: %v, %v", may(), err)
	}
}

func TestRoles_BeginAndEnd(t *testing.T) {
	h := newHarness(t)
	user := h.user(access.Customer)
	path := "/v1/users/" + user
	h.want(200, "", h.root, "PUT", path+"/roles", object{"roles": []string{"Customer", "Advisor"},
		"terms": []object{{"role": "Advisor", "starts_at": h.in(time.Minute), "expires_at": h.in(2 * time.Minute)}}})
	for i, want := range []string{"[Customer]", "[Advisor Customer]", "[Customer]"} {
		got := h.want(200, "", h.root, "GET", path, nil)
		if fmt.Sprint(got.body["roles"]) != want {
			t.Errorf("after %d minutes: %v, want %s", i, got.body["roles"], want)
		}
		if terms, _ := got.body["role_terms"].([]any); (len(terms) == 1) != (i < 2) {
			t.Errorf("after %d minutes: terms %v", i, terms)
		}
		status := map[bool]int{true: 200, false: 403}[i == 1]
		h.want(status, map[int]string{403: "common.rbac_no_rec_access"}[status], user, "GET", "/v1/kyc/cases?limit=1", nil)
		// A client that does not know terms keeps them.
		h.want(200, "", h.root, "PUT", path+"/roles", object{"roles": got.body["roles"]})
		h.Clock.Advance(time.Minute)
	}
	if n := h.want(200, "", h.root, "GET", "/v1/audit?search.action=user_roles.term", nil).body["total"]; n != 2.0 {
		t.Errorf("%v entries about the role", n)
	}
}

func TestRoles_WrongTerms(t *testing.T) {
	h := newHarness(t)
	user := h.user(access.Customer)
	path := "/v1/users/" + user + "/roles"
	for name, term := range map[string]object{
		"past":           {"role": "Customer", "expires_at": h.in(-time.Minute)},
		"end first":      {"role": "Customer", "starts_at": h.in(time.Hour), "expires_at": h.in(time.Minute)},
		"other role":     {"role": "Advisor", "expires_at": h.in(time.Minute)},
		"unknown role":   {"role": "Emperor", "expires_at": h.in(time.Minute)},
		"no time":        {"role": "Customer", "expires_at": "Friday"},
		"without a role": {"expires_at": h.in(time.Minute)},
	} {
		if a := h.do(h.root, "PUT", path, object{"roles": []string{"Customer"}, "terms": []object{term}}); a.status != 400 {
			t.Errorf("%s: %d %s", name, a.status, a.text)
		}
	}
	grants := "/v1/rbac/grants"
	h.want(400, "common.invalid_input", h.root, "POST", grants, object{"user_id": user, "endpoint": "GET /v1/audit", "expires_at": h.in(0)})
	h.want(400, "common.invalid_input", h.root, "POST", grants,
		object{"user_id": user, "endpoint": "GET /v1/audit", "starts_at": h.in(time.Hour), "expires_at": h.in(time.Hour)})
	// One grant for each permission, also when one of them begins later.
	h.grant(object{"user_id": user, "endpoint": "GET /v1/audit", "starts_at": h.in(time.Hour)})
	h.want(409, "rbac.grant_exists", h.root, "POST", grants, object{"user_id": user, "endpoint": "GET /v1/audit"})
	h.want(403, "common.rbac_no_rec_access", user, "GET", "/v1/audit", nil)
}

// The last administrator cannot get an end, and administrators with an end do not count.
func TestRoles_LastAdministratorHasNoEnd(t *testing.T) {
	h := newHarness(t)
	other := h.user(access.Administrator)
	term := []object{{"role": "Administrator", "expires_at": h.in(time.Hour)}}
	h.want(200, "", h.root, "PUT", "/v1/users/"+other+"/roles", object{"roles": []string{"Administrator"}, "terms": term})
	h.want(409, "users.last_administrator", other, "PUT", "/v1/users/"+h.root+"/roles", object{"roles": []string{}})
	h.want(409, "users.last_administrator", other, "PUT", "/v1/users/"+h.root+"/roles", object{"roles": []string{"Administrator"}, "terms": term})
}

// Rights that begin later protect a user already.
func TestRoles_LaterRightsCount(t *testing.T) {
	h := newHarness(t)
	helper, clerk := h.user(access.Advisor, access.Customer), h.user(access.Customer)
	h.grant(object{"user_id": helper, "rec_type": "users", "permissions": []string{"read_all", "update"}})
	disable := func(want int, code string) {
		t.Helper()
		h.want(want, code, helper, "PATCH", "/v1/users/"+clerk, object{"status": "disabled"})
	}
	later := h.grant(object{"user_id": clerk, "rec_type": "audit", "permissions": []string{"read"}, "starts_at": h.in(time.Hour)})
	disable(403, "rbac.rights_not_held")
	h.want(200, "", h.root, "DELETE", "/v1/rbac/grants/"+later, nil)
	h.want(200, "", h.root, "PUT", "/v1/users/"+clerk+"/roles", object{"roles": []string{"Customer", "Administrator"},
		"terms": []object{{"role": "Administrator", "starts_at": h.in(time.Hour)}}})
	disable(403, "rbac.rights_not_held")
	h.want(200, "", h.root, "PUT", "/v1/users/"+clerk+"/roles", object{"roles": []string{"Customer"}, "terms": []object{}})
	disable(200, "")
}

// A change of the matrix keeps the end of the permissions that stay.
func TestMatrix_KeepsEnds(t *testing.T) {
	h := newHarness(t)
	role := h.role("Auditor")
	user := h.user(role)
	h.grant(object{"role_id": role, "rec_type": "personas", "permissions": []string{"read_all", "update"}, "expires_at": h.in(time.Minute)})
	h.grant(object{"role_id": role, "endpoint": "GET /v1/personas"})
	h.want(200, "", h.root, "PUT", "/v1/rbac/roles/"+role+"/permissions", object{"types": []object{{"rec_type": "personas", "permissions": []string{"read_all"}}}})
	h.persona(h.root)
	for _, want := range []int{1, 0} {
		if rows := h.want(200, "", user, "GET", "/v1/personas", nil).data(); len(rows) != want {
			t.Errorf("%d rows, want %d", len(rows), want)
		}
		h.Clock.Advance(time.Minute)
	}
}

// Both sides get one message a day before, and none about grants for less than a day.
func TestTerms_Warn(t *testing.T) {
	h := newHarness(t)
	user := h.user(access.Customer)
	role := h.role("Auditor")
	other := h.user(role)
	h.grant(object{"user_id": user, "endpoint": "GET /v1/audit", "expires_at": h.in(48 * time.Hour)})
	h.grant(object{"role_id": role, "rec_type": "audit", "permissions": []string{"read"}, "expires_at": h.in(48 * time.Hour)})
	h.grant(object{"user_id": user, "rec_type": "audit", "permissions": []string{"read"}, "expires_at": h.in(23 * time.Hour)})
	h.want(200, "", h.root, "PUT", "/v1/users/"+user+"/roles", object{"roles": []string{"Customer", "Advisor"},
		"terms": []object{{"role": "Advisor", "expires_at": h.in(48 * time.Hour)}}})
	count := func(who string) int {
		t.Helper()
		n := 0
		err := h.DB.QueryRow(t.Context(), `SELECT COUNT(*) FROM notifications WHERE user_id = $1 AND event = 'access_expiring'`, who).Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	warn := func() {
		t.Helper()
		for range 2 {
			for _, job := range []func() error{func() error { return h.RBAC.WarnOfTerms(t.Context()) }, func() error { return h.Users.WarnOfTerms(t.Context()) }} {
				if err := job(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if warn(); count(user)+count(h.root)+count(other) != 0 {
		t.Error("a message two days before")
	}
	h.Clock.Advance(24*time.Hour + time.Minute)
	if warn(); count(user) != 2 || count(other) != 1 || count(h.root) != 3 {
		t.Errorf("messages: %d to the user, %d to the holder of the role, %d to the administrator", count(user), count(other), count(h.root))
	}
}
