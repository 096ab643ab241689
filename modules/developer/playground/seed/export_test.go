package seed_test

import (
	"net/http"
	"strings"
	"testing"

	"kontor/modules/developer/playground/seed"
	"kontor/server/servertest"
)

// busyBank has what an export takes: a role with a grant, people, a customer who made their own record, one with a decision, a payer, a
// task with an assignee, and a chat. A text looks like a reference.
const busyBank = `
  - {id: role, request: POST /v1/rbac/roles, body: {name: Auditor}}
  - {request: POST /v1/rbac/grants, body: {role_id: "${role.id}", rec_type: customers, permissions: [read_all]}}
  - {request: POST /v1/rbac/grants, body: {user_id: "${anna.user_id}", rec_type: customers, rec_id: "${customer.id}", permissions: [read]}}
  - {id: persona, request: POST /v1/personas, body: {first_name: Vreni, last_name: Frei, date_of_birth: "1980-02-29"}}
  - id: verified
    request: POST /v1/customers
    body: {first_name: Vera, last_name: Frei, email: vera@example.ch, date_of_birth: "1980-02-29", nationality: CHE, address: {street: Weg 1, postal_code: "3000", city: Bern, country: CH}, metadata: {n: 12, text: "$${x}"}}
  - {request: "PUT /v1/customers/${verified.id}/kyc", body: {documents: [{type: passport, number: X1, expiry_date: "${today+900d}", country: CHE}]}}
  - {as: anna, request: "PATCH /v1/customers/${verified.id}/kyc/status", body: {kyc_status: in_review}}
  - {as: anna, request: "PATCH /v1/customers/${verified.id}/kyc/status", body: {kyc_status: verified, reason: "Seen ${verified.id}."}}
  - {request: POST /v1/payers, body: {customer_id: "${verified.id}", company: Frei AG, country: CHE}}
  - {request: "POST /v1/customers/${verified.id}/tasks", body: {title: Sign, category: sign, assignees: [{user_id: "${anna.user_id}"}]}}
  - {id: me, request: GET /v1/users/me}
  - {id: chat, as: anna, request: POST /v1/chats, body: {participants: ["${me.id}"]}}
  - {as: anna, request: "POST /v1/chats/${chat.id}/messages", body: {content: Good morning}}
  - {id: account, request: POST /v1/service-accounts, body: {name: Back office, roles: [Advisor]}}
  - {request: POST /v1/webhooks, body: {account_id: "${account.id}", url: "https://hooks.example/kontor"}}
`

// The exported state makes a bank with the same records, whose export is the same again. It has no secret.
func TestExport_MakesTheSameBank(t *testing.T) {
	s := servertest.StartSandbox(t, false)
	play(s, s.Admin(), bank+busyBank).Expect(t, http.StatusOK)
	first := exported(t, s)
	for _, want := range []string{"name: Auditor", "permissions:\n        - read_all", "email: anna@example.ch", "last_name: Frei", "$${x}", "as: user1", "kyc_status: verified",
		"company: Frei AG", "${user1.user_id}", "content: Good morning", "participants:\n        - ${user1.user_id}", "account_id: ${service1.id}", "rec_id: ${customer1.id}"} {
		if !strings.Contains(first, want) {
			t.Errorf("%q is missing in\n%s", want, first)
		}
	}
	if strings.Contains(first, "a long enough password") {
		t.Error("the file has a password of the bank")
	}
	again := servertest.StartSandbox(t, false)
	play(again, again.Admin(), first).Expect(t, http.StatusOK)
	if second := exported(t, again); withoutHead(second) != withoutHead(first) {
		t.Errorf("the second export is\n%s\nand the first one\n%s", second, first)
	}
}

func exported(t *testing.T, s *servertest.Server) string {
	t.Helper()
	file, err := s.Seed.Export(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := seed.Parse(file); err != nil {
		t.Fatal(err)
	}
	return string(file)
}

func withoutHead(file string) string { return file[strings.Index(file, "values:"):] }
