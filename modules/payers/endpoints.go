package payers

import (
	"net/http"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
)

// Endpoints are the rows of the module.
func (s *Service) Endpoints() []endpoint.Endpoint {
	rows := []endpoint.Endpoint{
		{Name: "payers.create", Method: http.MethodPost, Path: "/v1/payers",
			Access: access.On(access.Payers, access.Create), Summary: "Add a payer to a customer that the caller may change.",
			Faults: []apierr.Kind{apierr.CustomerNotFound}, Handle: endpoint.JSON(http.StatusCreated, s.Create)},
		{Name: "payers.list", Method: http.MethodGet, Path: "/v1/payers",
			Access: access.On(access.Payers, access.Read), Summary: "List the payers that the caller may see, newest first.",
			Handle: endpoint.JSON(http.StatusOK, s.List)},
		{Name: "payers.get", Method: http.MethodGet, Path: "/v1/payers/{id}",
			Access: access.On(access.Payers, access.Read), Summary: "Give one payer.",
			Faults: []apierr.Kind{apierr.PayerNotFound}, Handle: endpoint.JSON(http.StatusOK, s.Get)},
		{Name: "payers.update", Method: http.MethodPut, Path: "/v1/payers/{id}",
			Access: access.On(access.Payers, access.Update), Summary: "Replace the given data of a payer.",
			Faults: []apierr.Kind{apierr.PayerNotFound, apierr.PreconditionFailed}, Handle: endpoint.JSON(http.StatusOK, s.Update)},
		{Name: "payers.delete", Method: http.MethodDelete, Path: "/v1/payers/{id}",
			Access: access.On(access.Payers, access.Delete), Summary: "Make a payer inactive.",
			Faults: []apierr.Kind{apierr.PayerNotFound, apierr.PreconditionFailed}, Handle: endpoint.JSON(http.StatusOK, s.Archive)},
	}
	for i := range rows {
		if m := rows[i].Method; m == http.MethodPost || m == http.MethodPut { // these can add to what the owner stores
			rows[i].Faults = append(rows[i].Faults, apierr.QuotaExceeded)
		}
		rows[i].Tag, rows[i].Limit, rows[i].Roles = "Payers", ratelimit.Private, []string{access.Advisor, access.Customer}
	}
	return rows
}
