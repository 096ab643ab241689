package app

import (
	"kontor/modules/search"
	"kontor/server/access"
)

// newSearch builds the search over the records of all types.
func newSearch(m *Modules) *search.Service {
	return search.New(m.DB, m.Log, []search.Type{
		{Of: access.Customers, Get: "GET /v1/customers/{id}", Module: m.Customers},
		{Of: access.Personas, Get: "GET /v1/personas/{persona_id}", Module: m.Personas},
		{Of: access.Payers, Get: "GET /v1/payers/{id}", Module: m.Payers},
		{Of: access.Tasks, Get: "GET /v1/customers/{customer_id}/tasks/{id}", Module: m.Tasks},
		{Of: access.Chats, Get: "GET /v1/chats/{id}", Module: m.Chats},
		{Of: access.Users, Get: "GET /v1/users/{id}", Module: m.Users},
	})
}
