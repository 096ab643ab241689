package browser_test

import "net/http"

// customerViews creates the records of a customer, and returns the views of the screens that only customers have.
func (s *testServer) customerViews(me person) []view {
	s.t.Helper()
	token := s.token(me)
	customer := s.newCustomer(token, "Luca", "Bernasconi")
	staff := s.token(s.newPerson("Advisor"))
	s.call(staff, http.MethodPost, "/v1/customers/"+customer+"/tasks", map[string]any{"title": "Sign the contract", "category": "sign", "due_on": "2099-01-01",
		"assignees": []any{map[string]any{"user_id": me.id}}})
	s.call(staff, http.MethodPost, "/v1/payers", map[string]any{"customer_id": customer, "name": "Anna Müller", "company": "Müller AG", "country": "CHE"})
	s.call(staff, http.MethodPost, "/v1/chats", map[string]any{"participants": []any{me.id}})

	return []view{
		{name: "home", path: "/", drawn: `main a[href="/me/documents"]`},
		{name: "my data", path: "/me/data", drawn: "main .facts"},
		{name: "changing my data", path: "/me/data", steps: []step{press("home.edit")}, drawn: form},
		{name: "my documents", path: "/me/documents", drawn: "main .grid-main .card"},
		{name: "adding my document", path: "/me/documents", steps: []step{press("home.add_document")}, drawn: form},
		{name: "a task of mine", path: "/", steps: []step{see(`main .items a[href*="/tasks/"]`), tap(`main .items a[href*="/tasks/"]`)}, drawn: "main .timeline"},
	}
}
