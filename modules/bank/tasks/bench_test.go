package tasks_test

import (
	"fmt"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/store"
)

// fill writes tasks of a customer directly and returns the id of the last. With users, each task is assigned to one of them.
func fill(b *testing.B, s *servertest.Server, customerID, creator string, users []string, n int) (id string) {
	b.Helper()
	const group = 2000
	states := []string{"pending", "in_progress", "completed", "canceled"}
	for from := 0; from < n; from += group {
		err := s.DB.InTx(b.Context(), func(tx *store.Tx) error {
			for i := from; i < min(n, from+group); i++ {
				id = store.NewID()
				members, assignees := []string{creator}, "[]"
				if len(users) > 0 {
					user := users[i%len(users)]
					members = append(members, user)
					assignees = fmt.Sprintf(`[{"id":"%s","name":"A. Muster","task_id":"%s","user_id":"%s","status":"assigned","weight":2,"task_completed":false,"assigned_at":"%s"}]`,
						store.NewID(), id, user, tx.Now())
				}
				if _, err := tx.Exec(b.Context(), `INSERT INTO tasks (id, customer_id, title, title_key, category, description, is_urgent, status,
						given_weight, weight, performed_weight, assignees, metadata, created_at, created_by, updated_at, updated_by)
					VALUES ($1, $2, 'Vertrag', 'vertrag', 'sign', '', FALSE, $3, 1, 2, 0, $4, '{"actions":{},"logs":[]}', $5, $6, $5, $6)`,
					id, customerID, states[i%len(states)], assignees, tx.Now(), creator); err != nil {
					return err
				}
				for _, member := range members {
					if _, err := tx.Exec(b.Context(), `INSERT INTO task_members (task_id, user_id, created_at) VALUES ($1, $2, $3)`, id, member, tx.Now()); err != nil {
						return err
					}
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	return id
}

// BenchmarkBesideCustomers compares reading a task and ten tasks with reading a customer and ten customers, in turn on
// the same server with 10,000 tasks. The customers have a name and an e-mail address. The tasks have no assignee, or one, which
// doubles their size.
func BenchmarkBesideCustomers(b *testing.B) {
	s := servertest.Start(b)
	advisor, assigned := s.User(access.Advisor), s.User(access.Customer)
	var customer string
	for i := range 100 {
		customer = advisor.Create("/v1/customers", body{"first_name": "Ada", "last_name": fmt.Sprint("Muster ", i), "email": "ada@example.ch"})
	}
	others := make([]string, 10)
	for i := range others {
		others[i] = s.User(access.Customer).UserID
	}
	fill(b, s, newCustomer(advisor), advisor.UserID, append(others, assigned.UserID), 10_000)
	const tenCustomers = "/v1/customers?search.kyc_status=not_started&sort=-created_at&limit=10"
	compare := func(name string, as *servertest.Client, path, base string) {
		b.Run(name, func(b *testing.B) {
			servertest.Compare(b, s, 4000, 200, as.Request("GET", path, ""), advisor.Request("GET", base, ""))
		})
	}
	for name, assignees := range map[string][]string{"bare": nil, "assigned": others} {
		id := fill(b, s, customer, advisor.UserID, assignees, 100)
		tasks := "/v1/customers/" + customer + "/tasks"
		compare(name+"/get", advisor, tasks+"/"+id, "/v1/customers/"+customer)
		compare(name+"/list", advisor, tasks+"?search.status=pending&sort=-created_at&limit=10", tenCustomers)
		compare(name+"/made", advisor, "/v1/tasks?limit=10", tenCustomers)
	}
	compare("mine", assigned, "/v1/tasks?limit=10", tenCustomers)
}
