package app

import (
	"context"

	"kontor/modules/kit/find"
	"kontor/modules/reach/search"
	"kontor/server/access"
)

// newSearch builds the search over the records of all types.
func newSearch(m *Modules) *search.Service {
	types := []search.Type{{Of: access.Customers, Get: "GET /v1/customers/{id}", Module: m.Customers}}
	for _, module := range offering[declared](m) {
		types = append(types, search.Type{Of: module.RecordType(), Get: module.Shown(), Module: module})
	}
	return search.New(m.DB, m.Log, append(types,
		search.Type{Of: access.Tasks, Get: "GET /v1/customers/{customer_id}/tasks/{id}", Module: m.Tasks},
		search.Type{Of: access.Chats, Get: "GET /v1/chats/{id}", Module: m.Chats},
		search.Type{Of: access.Users, Get: "GET /v1/users/{id}", Module: m.Users}))
}

// declared is a module whose records have a declaration, see package recordtype.
type declared interface {
	access.Records
	find.Module
	Shown() (endpoint string)
	ReadRecord(ctx context.Context, id string) (any, error)
}
