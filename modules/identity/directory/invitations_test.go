package directory_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"kontor/server/access"
	"kontor/store"
)

const chosen = "violet paper boats 77"

func invitation(email string, roles ...string) map[string]any {
	return map[string]any{"email": email, "display_name": "Anna Keller", "language": "de", "roles": roles}
}

// recruiter creates a user who may invite, and holds the role Advisor.
func (h *harness) recruiter() testUser {
	h.t.Helper()
	h.exec(func(ctx context.Context, tx *store.Tx) error { return insertRole(ctx, tx, recruiter, "Recruiter") })
	return h.staff("recruiter", "Recruiter", "Advisor")
}

// invite invites a person and returns the id of the invitation and the token of its link.
func (h *harness) invite(by testUser, email string, roles ...string) (id, token string) {
	h.t.Helper()
	id = h.call(by.token, "POST", "/v1/invitations", invitation(email, roles...)).want(h.t, 201, "").text("id")
	return id, h.outbox.last(email).Code
}

func (h *harness) accept(token string) reply {
	h.t.Helper()
	return h.call("", "POST", "/v1/invitations/accept", map[string]string{"token": token, "password": chosen})
}

func TestInvite_CreatesTheUserWithTheChosenPassword(t *testing.T) {
	h := newHarness(t)
	admin := h.admin()
	r := h.call(admin.token, "POST", "/v1/invitations", invitation("Anna@Bank.example", "Advisor", access.Customer)).want(t, 201, "")
	if r.text("status") != "open" || r.text("created_by") != admin.id || strings.Contains(r.Text, "digest") {
		t.Errorf("got %s", r.Text)
	}
	m := h.outbox.last(r.text("email"))
	if m.Purpose != "invitation" || m.Language != "de" || m.Minutes != 7*24*60 || strings.Contains(r.Text, m.Code) {
		t.Fatalf("sent %+v", m)
	}
	view := h.call("", "POST", "/v1/invitations/view", map[string]string{"token": m.Code}).want(t, 200, "")
	if view.text("email") != r.text("email") || view.text("display_name") != "Anna Keller" {
		t.Errorf("got %s", view.Text)
	}
	accepted := h.accept(m.Code).want(t, 200, "")
	id := accepted.text("user_id")
	if h.auth.passwords[id] == "" || accepted.text("email") != r.text("email") {
		t.Errorf("got %s", accepted.Text)
	}
	user := h.call(admin.token, "GET", "/v1/users/"+id, nil).want(t, 200, "")
	if user.text("status") != "active" || user.text("language") != "de" || len(user.Body["roles"].([]any)) != 2 {
		t.Errorf("got %s", user.Text)
	}
	credentials := h.call(admin.token, "GET", "/v1/users/"+id+"/credentials", nil).want(t, 200, "")
	if !strings.Contains(credentials.Text, `"validated":true`) {
		t.Errorf("got %s", credentials.Text)
	}
	if h.audited("users.invite", r.text("id")) != 1 || h.audited("users.invite_accept", id) != 1 {
		t.Error("the audit trail lacks the invitation or its acceptance")
	}
	h.accept(m.Code).want(t, 404, "users.invitation_invalid") // once
	if page := h.call(admin.token, "GET", "/v1/invitations", nil).want(t, 200, ""); page.Body["total"] != 0.0 {
		t.Errorf("an accepted invitation is open: %s", page.Text)
	}
}

// Only a keyed digest of the link is stored, over all that it gives: a row that was changed in the database is void.
func TestInvite_StoresADigestOnly(t *testing.T) {
	h := newHarness(t)
	_, token := h.invite(h.admin(), email(1), "Customer")
	_, secret, _ := strings.Cut(token, ".")
	var row string
	if err := h.db.QueryRow(t.Context(), `SELECT digest || roles || email FROM invitations`).Scan(&row); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(row, secret) {
		t.Error("the secret is stored")
	}
	h.exec(func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE invitations SET roles = $1`, access.Administrator)
		return err
	})
	h.accept(token).want(t, 404, "users.invitation_invalid")
}

func TestInvite_ExpiresAndIsSentAgain(t *testing.T) {
	h := newHarness(t)
	admin := h.admin()
	id, first := h.invite(admin, email(1), "Customer")
	h.clock.Advance(7*24*time.Hour + time.Second)
	h.accept(first).want(t, 404, "users.invitation_invalid")
	if page := h.call(admin.token, "GET", "/v1/invitations", nil).want(t, 200, ""); !strings.Contains(page.Text, `"status":"expired"`) {
		t.Errorf("got %s", page.Text)
	}
	h.call(admin.token, "POST", "/v1/invitations/"+id+"/resend", nil).want(t, 200, "")
	second := h.outbox.last(email(1)).Code
	h.accept(first).want(t, 404, "users.invitation_invalid")
	h.accept(second).want(t, 200, "")
	h.call(admin.token, "POST", "/v1/invitations/"+id+"/resend", nil).want(t, 404, "users.invitation_not_found")

	h.invite(admin, email(2), "Customer")
	h.clock.Advance(38 * 24 * time.Hour)
	if err := h.service.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	if page := h.call(admin.token, "GET", "/v1/invitations", nil).want(t, 200, ""); page.Body["total"] != 0.0 {
		t.Errorf("an invitation stays for ever: %s", page.Text)
	}
}

func TestInvite_IsWithdrawn(t *testing.T) {
	h := newHarness(t)
	admin := h.admin()
	id, token := h.invite(admin, email(1), "Customer")
	h.call(admin.token, "DELETE", "/v1/invitations/"+id, nil).want(t, 200, "")
	h.accept(token).want(t, 404, "users.invitation_invalid")
	h.call("", "POST", "/v1/invitations/view", map[string]string{"token": token}).want(t, 404, "users.invitation_invalid")
	h.call(admin.token, "DELETE", "/v1/invitations/"+id, nil).want(t, 404, "users.invitation_not_found")
	if h.audited("users.invite_withdraw", id) != 1 {
		t.Error("the audit trail lacks the withdrawal")
	}
}

// Users without the right cannot invite, and inviters cannot give a role that they do not hold.
func TestInvite_GivesOnlyRolesThatTheInviterHolds(t *testing.T) {
	h := newHarness(t)
	admin, clerk, member := h.admin(), h.recruiter(), h.customer(email(1))
	h.call(member.token, "POST", "/v1/invitations", invitation(email(2), "Customer")).want(t, 403, "common.rbac_no_rec_access")
	h.call("", "POST", "/v1/invitations", invitation(email(2), "Customer")).want(t, 401, "common.unauthorized")
	h.call(clerk.token, "POST", "/v1/invitations", invitation(email(2), "Administrator")).want(t, 403, "rbac.grant_not_held")
	h.call(clerk.token, "POST", "/v1/invitations", invitation(email(2), "Advisor", "Customer")).want(t, 403, "rbac.grant_not_held")
	if h.outbox.count(email(2)) != 0 {
		t.Error("a rejected invitation was sent")
	}
	own, _ := h.invite(clerk, email(2), "Advisor")
	foreign, _ := h.invite(admin, email(3), "Administrator")
	if page := h.call(clerk.token, "GET", "/v1/invitations", nil).want(t, 200, ""); page.Body["total"] != 1.0 || !strings.Contains(page.Text, own) {
		t.Errorf("got %s", page.Text)
	}
	h.call(clerk.token, "POST", "/v1/invitations/"+foreign+"/resend", nil).want(t, 404, "users.invitation_not_found")
	h.call(clerk.token, "DELETE", "/v1/invitations/"+foreign, nil).want(t, 404, "users.invitation_not_found")
}

// Rights are checked again when the invitation is accepted: one of a former administrator, or of a disabled user, is void.
func TestInvite_EndsWithTheRightsOfTheInviter(t *testing.T) {
	h := newHarness(t)
	admin, other := h.admin(), h.staff("second@bank.example", "Administrator")
	_, administrator := h.invite(other, email(1), "Administrator")
	_, customer := h.invite(other, email(2), "Advisor")
	h.call(admin.token, "PUT", other.path("/roles"), roles("Advisor")).want(t, 200, "")
	h.accept(administrator).want(t, 404, "users.invitation_invalid")
	h.call(admin.token, "PATCH", other.path(""), map[string]string{"status": "disabled"}).want(t, 200, "")
	h.accept(customer).want(t, 404, "users.invitation_invalid")
}

// An inviter who may not read users does not learn whether an address has an account; its owner gets a message without a link.
func TestInvite_DoesNotRevealAccounts(t *testing.T) {
	h := newHarness(t)
	admin, clerk := h.admin(), h.recruiter()
	h.customer(email(1))
	h.call(admin.token, "POST", "/v1/invitations", invitation(email(1), "Customer")).want(t, 409, "users.credential_exists")
	h.call(clerk.token, "POST", "/v1/invitations", invitation(email(1), "Advisor")).want(t, 201, "")
	if m := h.outbox.last(email(1)); m.Purpose != "taken" {
		t.Errorf("sent %+v", m)
	}
}

// A registration that was not validated does not keep the invited person out.
func TestInvite_ReplacesAClaim(t *testing.T) {
	h := newHarness(t)
	_, token := h.invite(h.admin(), email(1), "Customer")
	squatter := h.registrant(email(1))
	h.accept(token).want(t, 200, "")
	h.call(squatter.token, "PUT", squatter.path("/credentials/"+squatter.credential+"/validate"), map[string]string{"otp": "123456"})
	_, second := h.invite(h.staff("third@bank.example", "Administrator"), email(2), "Customer")
	h.customer(email(2))
	h.accept(second).want(t, 404, "users.invitation_invalid")
}

func TestInvite_RejectsInvalidInput(t *testing.T) {
	h := newHarness(t)
	admin := h.admin()
	for _, body := range []map[string]any{
		{}, invitation("nobody", "Customer"), invitation("+41446681800", "Customer"), invitation(email(1)), invitation(email(1), "Emperor"),
		{"email": email(1), "roles": []string{"Customer"}, "language": "xx"}, {"email": email(1), "roles": []string{"Customer"}, "display_name": strings.Repeat("x", 101)},
	} {
		h.call(admin.token, "POST", "/v1/invitations", body).want(t, 400, "common.invalid_input")
	}
	_, token := h.invite(admin, email(1), "Customer")
	for _, body := range []map[string]string{{}, {"token": token, "password": "short"}, {"token": token, "password": email(1)}} {
		h.call("", "POST", "/v1/invitations/accept", body).want(t, 400, "common.invalid_input")
	}
	for _, wrong := range []string{"x", token + "x", token[:36] + ".", strings.Repeat("a", 10_000), store.NewID() + "." + token[37:]} {
		h.accept(wrong).want(t, 404, "users.invitation_invalid")
	}
	h.accept(token).want(t, 200, "")
}

// Messages to one address, and of one inviter, are limited.
func TestInvite_IsLimited(t *testing.T) {
	h := newHarness(t)
	admin := h.admin()
	for range 3 {
		h.invite(admin, email(1), "Customer")
	}
	if r := h.call(admin.token, "POST", "/v1/invitations", invitation(email(1), "Customer")).want(t, 429, "users.otp_send_limited"); r.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
}

// Of concurrent acceptances one creates a user.
func TestInvite_IsAcceptedOnce(t *testing.T) {
	h := newHarness(t)
	_, token := h.invite(h.admin(), email(1), "Customer")
	statuses := make([]int, 8)
	var all sync.WaitGroup
	for i := range statuses {
		all.Go(func() { statuses[i] = h.accept(token).Status })
	}
	all.Wait()
	created := 0
	for _, status := range statuses {
		if status == 200 {
			created++
		} else if status != 404 {
			t.Errorf("status %d", status)
		}
	}
	if created != 1 {
		t.Errorf("%d users were created", created)
	}
}

func TestList_OfARole(t *testing.T) {
	h := newHarness(t)
	admin := h.admin()
	advisor := h.staff("advisor@bank.example", "Advisor")
	h.customer(email(1))
	for _, role := range []string{"advisor", access.Advisor} {
		page := h.call(admin.token, "GET", "/v1/users?role="+role, nil).want(t, 200, "")
		if page.Body["total"] != 1.0 || !strings.Contains(page.Text, advisor.id) {
			t.Errorf("%s: %s", role, page.Text)
		}
	}
	h.call(admin.token, "GET", "/v1/users?role=Emperor", nil).want(t, 400, "common.invalid_input")
	h.call(admin.token, "PUT", advisor.path("/roles"), roles("Customer")).want(t, 200, "")
	if page := h.call(admin.token, "GET", "/v1/users?role=Advisor", nil).want(t, 200, ""); page.Body["total"] != 0.0 {
		t.Errorf("after the change: %s", page.Text)
	}
}
