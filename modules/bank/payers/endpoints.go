package payers

import (
	"net/http"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
)

// Endpoints returns the endpoints of the module.
func (s *Service) Endpoints() []endpoint.Endpoint {
	rows := []endpoint.Endpoint{
		{Name: "payers.create", Method: http.MethodPost, Path: "/v1/payers",
			Access: access.On(access.Payers, access.Create), Summary: "Create a payer of a customer that the caller may update.",
			Faults: []apierr.Kind{apierr.CustomerNotFound}, Handle: endpoint.JSON(http.StatusCreated, s.Create)},
		{Name: "payers.list", Method: http.MethodGet, Path: "/v1/payers",
			Access: access.On(access.Payers, access.Read), Summary: "List payers, newest first.",
			Handle: endpoint.JSON(http.StatusOK, s.List)},
		{Name: "payers.get", Method: http.MethodGet, Path: "/v1/payers/{id}",
			Access: access.On(access.Payers, access.Read), Summary: "Get a payer.",
			Faults: []apierr.Kind{apierr.PayerNotFound}, Handle: endpoint.JSON(http.StatusOK, s.Get)},
		{Name: "payers.update", Method: http.MethodPut, Path: "/v1/payers/{id}",
			Access: access.On(access.Payers, access.Update), Summary: "Update a payer. Members that the body leaves out keep their values.",
			Faults: []apierr.Kind{apierr.PayerNotFound, apierr.PreconditionFailed}, Handle: endpoint.JSON(http.StatusOK, s.Update)},
		{Name: "payers.delete", Method: http.MethodDelete, Path: "/v1/payers/{id}",
			Access: access.On(access.Payers, access.Delete), Summary: "Archive a payer: it becomes inactive and stays readable. An update with active: true reactivates it.",
			Faults: []apierr.Kind{apierr.PayerNotFound, apierr.PreconditionFailed}, Handle: endpoint.JSON(http.StatusOK, s.Archive)},
	}
	for i := range rows {
		if rows[i].Method != http.MethodGet {
			rows[i].Faults = append(rows[i].Faults, apierr.RecordErased)
		}
		if m := rows[i].Method; m == http.MethodPost || m == http.MethodPut { // these may exceed the owner's quota
			rows[i].Faults = append(rows[i].Faults, apierr.QuotaExceeded)
		}
		rows[i].Tag, rows[i].Limit, rows[i].Roles = "Payers", ratelimit.Private, []string{access.Advisor, access.Customer}
	}
	return rows
}
