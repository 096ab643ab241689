package rbac_test

import (
	"context"
	"net/http"

	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
	"kontor/store"
)

// thing is a record of the type customers.
type thing struct {
	ID string `json:"id" format:"-"`
}

var things = &records.Table[thing]{
	Type: access.Customers, From: "things", Columns: "id", Relations: []records.Relation{records.Created}, Missing: apierr.CustomerNotFound,
	Scan: scanThing,
}

var thingList = list.New(list.Source[thing]{
	From: "things", Columns: "id", ID: "id", Tables: []string{"things"}, Scan: scanThing,
	Fields: list.Fields{{Name: "id", Type: list.UUID, Column: "id"}},
})

func scanThing(row list.Row) (thing, error) {
	var t thing
	err := row.Scan(&t.ID)
	return t, err
}

type thingRecords struct{ db *store.DB }

func (r thingRecords) Relations(ctx context.Context, userID string, ids []string) (map[string]access.Permission, error) {
	return things.RelationsOf(ctx, r.db, userID, ids)
}

// thingEndpoints returns endpoints that require each permission on one record, and one that creates a record.
func thingEndpoints(db *store.DB) []endpoint.Endpoint {
	type input struct {
		ID string `path:"id"`
	}
	all, missing := []string{access.Advisor, access.Customer}, []apierr.Kind{apierr.CustomerNotFound}
	get := func(p access.Permission) endpoint.Handler {
		return endpoint.JSON(http.StatusOK, func(ctx context.Context, in input) (thing, error) { return things.Get(ctx, db, in.ID, p) })
	}
	rows := []endpoint.Endpoint{
		{Name: "things.get", Method: "GET", Path: "/v1/customers/{id}", Access: access.On(access.Customers, access.Read), Roles: all, Handle: get(access.Read), Faults: missing},
		{Name: "things.update", Method: "PUT", Path: "/v1/customers/{id}", Access: access.On(access.Customers, access.Update), Roles: all, Handle: get(access.Update), Faults: missing},
		{Name: "things.delete", Method: "DELETE", Path: "/v1/customers/{id}", Access: access.On(access.Customers, access.Delete), Roles: all, Handle: get(access.Delete), Faults: missing},
		{Name: "things.create", Method: "POST", Path: "/v1/customers", Access: access.On(access.Customers, access.Create), Roles: all,
			Handle: endpoint.JSON(http.StatusOK, func(context.Context, endpoint.None) (thing, error) { return thing{}, nil })},
		{Name: "things.health", Method: "GET", Path: "/v1/health", Access: access.Public,
			Handle: endpoint.JSON(http.StatusOK, func(context.Context, endpoint.None) (thing, error) { return thing{}, nil })},
	}
	for i := range rows {
		rows[i].Tag, rows[i].Summary, rows[i].Limit = "Things", "Test.", ratelimit.Private
	}
	rows[len(rows)-1].Limit = ratelimit.None
	return rows
}
