package app_test

import (
	"strings"
	"testing"
	"time"

	"kontor/server/access"
	"kontor/server/servertest"
)

// An account that has lost the right to a record gets no event of it: neither of later changes, nor of earlier ones that wait.
func TestWebhooks_SendOnlyWhatTheAccountMayReadNow(t *testing.T) {
	s := servertest.Start(t, allowLocal)
	r := newReceiver(t)
	var role struct{ ID string }
	admin := s.Admin()
	admin.Do("POST", "/v1/rbac/roles", map[string]any{"name": "Integration"}).Expect(t, 201).Into(t, &role)
	for _, endpoint := range []string{"GET /v1/events", "GET /v1/customers/{id}"} {
		admin.Do("POST", "/v1/rbac/grants", map[string]any{"role_id": role.ID, "endpoint": endpoint}).Expect(t, 201)
	}
	account := admin.Create("/v1/service-accounts", map[string]any{"name": "Back office", "roles": []string{"Integration"}})
	h := newHook(t, admin, map[string]any{"url": r.URL, "account_id": account, "include_record": true, "types": []string{"customers.updated"}})
	readable, hidden := newCustomer(admin), newCustomer(admin)
	var grant struct{ ID string }
	admin.Do("POST", "/v1/rbac/grants", map[string]any{"user_id": account, "rec_type": "customers", "permissions": []string{"read"}, "rec_id": readable}).
		Expect(t, 201).Into(t, &grant)
	rename(t, admin, hidden, "Hidden")
	rename(t, admin, readable, "Berta")
	if e := r.next(t).event(t); e.Data.RecID != readable || e.Data.Record["first_name"] != "Berta" {
		t.Errorf("got %+v", e)
	}
	// The receiver fails, the right is lost, and the receiver works again.
	r.answers(status(500))
	rename(t, admin, readable, "Clara")
	r.next(t)
	h.until(inState("retrying"))
	admin.Do("DELETE", "/v1/rbac/grants/"+grant.ID, nil).Expect(t, 200)
	r.answers(nil)
	h.advance(s, time.Hour)
	admin = h.client
	if d := h.until(inState("withheld")); d.Attempts != 2 {
		t.Errorf("got %+v", d)
	}
	rename(t, admin, readable, "Dora")
	h.client.Do("POST", h.path()+"/test", nil).Expect(t, 201)
	if e := r.next(t).event(t); e.Type != "webhooks.test" {
		t.Errorf("got %+v after the right was lost", e)
	}
	// A disabled account gets nothing; what has happened meanwhile follows when it is active again.
	admin.Do("POST", "/v1/rbac/grants", map[string]any{"user_id": account, "rec_type": "customers", "permissions": []string{"read"}, "rec_id": readable}).Expect(t, 201)
	admin.Do("PATCH", "/v1/service-accounts/"+account, map[string]any{"status": "disabled"}).Expect(t, 200)
	rename(t, admin, readable, "Emma")
	h.client.Do("POST", h.path()+"/test", nil).Expect(t, 201)
	if e := r.next(t).event(t); e.Type != "webhooks.test" {
		t.Errorf("got %+v while the account is disabled", e)
	}
	admin.Do("PATCH", "/v1/service-accounts/"+account, map[string]any{"status": "active"}).Expect(t, 200)
	if e := r.next(t).event(t); e.Data.RecID != readable || e.Data.Record["first_name"] != "Emma" {
		t.Errorf("got %+v", e)
	}
}

func TestWebhooks_AreForTheirAccountAndAdministrators(t *testing.T) {
	s := servertest.Start(t, allowLocal)
	admin, advisor := s.Admin(), s.User(access.Advisor)
	h := newHook(t, admin, map[string]any{"url": "http://127.0.0.1:9/"})
	for _, request := range [][2]string{{"POST", "/v1/webhooks"}, {"GET", "/v1/webhooks"}, {"GET", h.path()}, {"PATCH", h.path()}, {"DELETE", h.path()},
		{"POST", h.path() + "/secret"}, {"POST", h.path() + "/test"}, {"GET", h.path() + "/deliveries"}} {
		advisor.Do(request[0], request[1], map[string]any{"url": "http://127.0.0.1:9/"}).Expect(t, 403)
	}
	admin.Do("POST", "/v1/webhooks", map[string]any{"url": "http://127.0.0.1:9/", "account_id": advisor.UserID}).ExpectError(t, 400, "common.invalid_input")
	// An account sees its own webhook only, and cannot change it.
	account := admin.Create("/v1/service-accounts", map[string]any{"name": "Back office", "roles": []string{"Advisor"}})
	for _, endpoint := range []string{"GET /v1/webhooks", "GET /v1/webhooks/{id}", "PATCH /v1/webhooks/{id}", "POST /v1/webhooks"} {
		admin.Do("POST", "/v1/rbac/grants", map[string]any{"user_id": account, "endpoint": endpoint}).Expect(t, 201)
	}
	own := newHook(t, admin, map[string]any{"url": "http://127.0.0.1:9/", "account_id": account})
	var token struct{ Token string }
	admin.Do("POST", "/v1/service-accounts/"+account+"/tokens", map[string]any{"name": "Test"}).Expect(t, 201).Into(t, &token)
	machine := s.Anonymous().With("Authorization", "Bearer "+token.Token)
	machine.Do("GET", own.path(), nil).Expect(t, 200)
	machine.Do("GET", h.path(), nil).Expect(t, 403)
	if body := machine.Do("GET", "/v1/webhooks", nil).Expect(t, 200).Body; !strings.Contains(body, `"total":1`) {
		t.Errorf("got %s", body)
	}
	machine.Do("PATCH", own.path(), map[string]any{"url": "http://127.0.0.1:10/"}).ExpectError(t, 403, "service_accounts.person_required")
}

func TestWebhooks_RejectForbiddenReceivers(t *testing.T) {
	s := servertest.Start(t)
	for _, address := range []string{"http://hooks.example/", "https://127.0.0.1/", "https://[::1]/", "https://[::ffff:127.0.0.1]/", "https://[64:ff9b::7f00:1]/",
		"https://10.0.0.1/", "https://100.100.100.200/", "https://169.254.169.254/", "https://168.63.129.16/", "https://[fd00:ec2::254]/", "https://[fe80::1]/",
		"https://0.0.0.0/", "https://user:password@hooks.example/", "https://hooks.example/#x", "ftp://hooks.example/", "hooks.example", "https://hooks.example:25/",
		"https://hooks.example:0/", "https:///x", "https://hooks.example/a b", "https://" + strings.Repeat("a", 2000), ""} {
		s.Admin().Do("POST", "/v1/webhooks", map[string]any{"url": address}).ExpectError(t, 400, "common.invalid_input")
	}
	s.Admin().Do("POST", "/v1/webhooks", map[string]any{"url": "https://hooks.example/", "types": []string{"customers.exploded"}}).
		ExpectError(t, 400, "common.invalid_input")
	// A name is checked when it is called.
	h := newHook(t, s.Admin(), map[string]any{"url": "https://localhost/", "types": []string{"customers.*"}})
	newCustomer(s.Admin())
	if d := h.until(inState("retrying")); !strings.Contains(d.LastError, "not public") {
		t.Errorf("got %+v", d)
	}
}
