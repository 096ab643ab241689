package directory_test

import (
	"net/url"
	"testing"
	"time"
)

func credential(kind, value string) map[string]string {
	return map[string]string{"credential_type": kind, "credential_value": value, "password": password}
}

func TestAddCredential_SendsACodeAndIsListed(t *testing.T) {
	h := newHarness(t)
	m := h.customer(email(1))
	r := h.call(m.token, "POST", m.path("/credentials"), credential("phone", "+41446681800")).want(t, 201, "")
	if r.Body["validated"] != false || r.text("user_id") != m.id || h.outbox.last("+41446681800").Channel != "sms" {
		t.Errorf("got %s", r.Text)
	}
	list := h.call(m.token, "GET", m.path("/credentials?sort=type"), nil).want(t, 200, "")
	data := list.Body["data"].([]any)
	if len(data) != 2 || data[0].(map[string]any)["type"] != "email" || data[1].(map[string]any)["value"] != "+41446681800" {
		t.Errorf("got %s", list.Text)
	}
	list = h.call(m.token, "GET", m.path("/credentials?search.value="+url.QueryEscape("ANNA.1@bank.example")), nil).want(t, 200, "")
	if list.Body["total"] != 1.0 || list.Body["total_unfiltered"] != 2.0 {
		t.Errorf("got %s", list.Text)
	}
	h.call(m.token, "PUT", m.path("/credentials/"+r.text("id")+"/validate"), otp(h.outbox.last("+41446681800").Code)).want(t, 200, "")
}

func TestAddCredential_RejectsInvalidInput(t *testing.T) {
	h := newHarness(t)
	m, other := h.customer(email(1)), h.customer(email(2))
	h.call(m.token, "POST", m.path("/credentials"), credential("email", email(1))).want(t, 409, "users.credential_exists")
	h.call(m.token, "POST", other.path("/credentials"), credential("email", email(3))).want(t, 403, "common.rbac_no_rec_access")
	h.call(m.token, "POST", "/v1/users/0193b000-0000-7000-8000-00000000abcd/credentials", credential("email", email(3))).want(t, 404, "users.user_not_found")
	h.call(m.token, "POST", m.path("/credentials"), map[string]string{}).want(t, 400, "common.invalid_input")
	for i := range 9 {
		h.call(m.token, "POST", m.path("/credentials"), credential("email", email(10+i))).want(t, 201, "")
	}
	r := h.call(m.token, "POST", m.path("/credentials"), credential("email", email(20))).want(t, 409, "users.too_many_credentials")
	if r.text("message") != "A user can have at most 10 credentials." {
		t.Errorf("got %s", r.Text)
	}
}

func TestAddCredential_ByAnAdministrator(t *testing.T) {
	h := newHarness(t)
	admin, m := h.admin(), h.customer(email(1))
	r := h.call(admin.token, "POST", m.path("/credentials"), credential("username", "anna")).want(t, 201, "")
	if r.Body["validated"] != true || r.text("user_id") != m.id {
		t.Errorf("got %s", r.Text)
	}
	// The user owns the credential, although an administrator created it.
	h.call(m.token, "DELETE", "/v1/users/credentials/"+r.text("id"), nil).want(t, 200, "")
}

func TestListCredentials_RequiresTheUserOrAGrant(t *testing.T) {
	h := newHarness(t)
	admin, m, other := h.admin(), h.customer(email(1)), h.customer(email(2))
	h.call(other.token, "GET", m.path("/credentials"), nil).want(t, 403, "common.rbac_no_rec_access")
	h.call(m.token, "GET", "/v1/users/0193b000-0000-7000-8000-00000000abcd/credentials", nil).want(t, 404, "users.user_not_found")
	h.call(admin.token, "GET", m.path("/credentials"), nil).want(t, 200, "")
	h.call(m.token, "GET", m.path("/credentials?search.key=x"), nil).want(t, 500, "query_m.invalid_search_field")
	// A grant on the record shows that record.
	h.grant(other.id, "credentials", "read", m.credential)
	if r := h.call(other.token, "GET", m.path("/credentials"), nil).want(t, 200, ""); r.Body["total"] != 1.0 {
		t.Errorf("got %s", r.Text)
	}
}

func TestDeleteCredential_KeepsTheLastValidatedCredential(t *testing.T) {
	h := newHarness(t)
	m, other := h.customer(email(1)), h.customer(email(2))
	extra := h.call(m.token, "POST", m.path("/credentials"), credential("email", email(3))).want(t, 201, "").text("id")
	remove := func(who, id string) reply { return h.call(who, "DELETE", "/v1/users/credentials/"+id, nil) }

	remove(other.token, m.credential).want(t, 403, "common.rbac_no_rec_access")
	remove(m.token, m.credential).want(t, 409, "users.last_credential") // the other one is not validated
	remove(m.token, "0193b000-0000-7000-8000-00000000abcd").want(t, 404, "users.user_not_found")
	h.call(m.token, "PUT", m.path("/credentials/"+extra+"/validate"), otp(h.outbox.last(email(3)).Code)).want(t, 200, "")
	h.clock.Advance(24 * time.Hour)
	if r := remove(m.token, m.credential).want(t, 200, ""); r.text("message") == "" {
		t.Errorf("got %s", r.Text)
	}
	if h.audited("credentials.delete", m.credential) != 1 {
		t.Error("the audit trail lacks the change")
	}
	remove(m.token, m.credential).want(t, 404, "users.user_not_found")
	remove(m.token, extra).want(t, 409, "users.last_credential")
	// The value can be registered again.
	h.call(other.token, "POST", other.path("/credentials"), credential("email", email(1))).want(t, 201, "")
}

func TestAddCredential_DeletionDoesNotResetLimits(t *testing.T) {
	h := newHarness(t)
	m := h.customer(email(1))
	for range 3 {
		id := h.call(m.token, "POST", m.path("/credentials"), credential("email", email(2))).want(t, 201, "").text("id")
		h.call(m.token, "DELETE", "/v1/users/credentials/"+id, nil).want(t, 200, "")
	}
	h.call(m.token, "POST", m.path("/credentials"), credential("email", email(2))).want(t, 429, "users.otp_send_limited")
	if list := h.call(m.token, "GET", m.path("/credentials"), nil); list.Body["total"] != 1.0 || h.outbox.count(email(2)) != 3 {
		t.Errorf("got %s and %d codes", list.Text, h.outbox.count(email(2)))
	}
}
