package seed_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"kontor/server/servertest"
)

const (
	seedPath = "/v1/sandbox/seed"
	yamlType = "application/yaml"
)

// bank is a file with people, a customer and a task. Anna gets her account by an invitation: the code of its link is read in the
// message.
const bank = `
values:
  town: Bern
steps:
  - id: invitation
    request: POST /v1/invitations
    body: {email: anna@example.ch, display_name: Anna Keller, roles: [Advisor]}
    expect: {status: 201, body: {status: open, roles: [Advisor]}}
  - id: mail
    request: GET /v1/notifications/deliveries
    query: {limit: 1, search.to: anna@example.ch}
    match: {code: "/invitation#([A-Za-z0-9._-]+)"}
  - id: anna
    as: anonymous
    request: POST /v1/invitations/accept
    body: {token: "${mail.code}", password: a long enough password 42}
  - id: customer
    as: anna
    request: POST /v1/customers
    body:
      first_name: Beat
      last_name: Keller
      email: beat@example.ch
      date_of_birth: "1990-04-12"
      address: &home {city: "${town}", country: CH}
      metadata: {again: *home, price: 1.5, count: 3, literal: "$${x}"}
  - id: task
    as: anna@example.ch
    request: POST /v1/customers/${customer.id}/tasks
    body: {title: "Call ${customer.first_name} in ${customer.address.city}", category: sign, due_on: "${today+30d}"}
  - as: Advisor
    request: GET /v1/customers
    query: {search.last_name: keller}
    expect: {status: 200, body: {total: 1}}
`

func play(s *servertest.Server, as *servertest.Client, file string) servertest.Response {
	return as.With("Content-Type", yamlType).Do(http.MethodPost, seedPath, file)
}

func TestSeed_PlaysAFile(t *testing.T) {
	s := servertest.StartSandbox(t, false)
	var played struct {
		Run   int64
		Steps []struct {
			ID, Request string
			Line        int
			Status      int
			RecordID    string `json:"record_id"`
		}
	}
	answer := play(s, s.Admin(), bank).Expect(t, http.StatusOK)
	answer.Into(t, &played)
	if played.Run != 1 || len(played.Steps) != 6 || played.Steps[4].Request != "POST /v1/customers/${customer.id}/tasks" || played.Steps[4].RecordID == "" {
		t.Fatalf("%+v", played)
	}
	task := s.Admin().Do(http.MethodGet, "/v1/customers/"+played.Steps[3].RecordID+"/tasks/"+played.Steps[4].RecordID, nil).Expect(t, http.StatusOK)
	if due := s.Clock.Now().UTC().AddDate(0, 0, 30).Format("2006-01-02"); !strings.Contains(task.Body, "Call Beat in Bern") || !strings.Contains(task.Body, due) {
		t.Error(task.Body)
	}
	if customer := s.Admin().Do(http.MethodGet, "/v1/customers/"+played.Steps[3].RecordID, nil); !strings.Contains(customer.Body, `"literal":"${x}"`) {
		t.Error(customer.Body)
	}
}

// The example in docs/sandbox.md runs in a new sandbox, which has no user but the administrator.
func TestSeed_PlaysTheExampleOfTheDocument(t *testing.T) {
	document, err := os.ReadFile("../../../../docs/sandbox.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(document), "```yaml\nstart:")
	example, _, _ = strings.Cut("start:"+example, "```")
	s := servertest.StartSandbox(t, false)
	if answer := play(s, s.Admin(), example).Expect(t, http.StatusOK); !strings.Contains(answer.Body, `"now":"2030-01-07T08:01:01.000Z"`) {
		t.Errorf("it answers %s", answer.Body)
	}
}

// The same file in two empty banks makes the same records, with the same ids and times. In the same bank the ids are new.
func TestSeed_IsTheSameEachTime(t *testing.T) {
	file := "start: 2026-02-02T08:00:00Z\n" + bank
	var first []string
	for range 2 {
		s := servertest.StartSandbox(t, false)
		var all []string
		all = append(all, play(s, s.Admin(), file).Expect(t, http.StatusOK).Body)
		again := s.SignIn(servertest.AdminEmail, servertest.AdminPassword) // the clock has moved
		for _, path := range []string{"/v1/customers", "/v1/users?search.display_name=keller", "/v1/tasks?scope=all"} {
			body := again.Do(http.MethodGet, path, nil).Expect(t, http.StatusOK).Body
			all = append(all, strings.ReplaceAll(body, again.UserID, "administrator")) // of the first start
		}
		if first == nil {
			first = all
			continue
		}
		for i := range all {
			if all[i] != first[i] {
				t.Errorf("the second bank answered\n%s\nand the first one\n%s", all[i], first[i])
			}
		}
		if !strings.Contains(all[1], `"created_at":"2026-02-02T08:01:03.000Z"`) {
			t.Errorf("the customer was created at another time: %s", all[1])
		}
	}
}

// A file may make more users than a person may invite in an hour.
func TestSeed_InvitesAnyNumberOfPeople(t *testing.T) {
	s := servertest.StartSandbox(t, false)
	var file strings.Builder
	for n := range 70 {
		fmt.Fprintf(&file, "- {request: POST /v1/invitations, body: {email: p%d@example.ch, display_name: Person, roles: [Customer]}}\n", n)
	}
	play(s, s.Admin(), file.String()).Expect(t, http.StatusOK)
}
