package customers

import (
	"net/http"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
)

// Endpoints are the rows of the module.
func (s *Service) Endpoints() []endpoint.Endpoint {
	staff, all := []string{access.Advisor}, []string{access.Advisor, access.Customer}
	rows := []endpoint.Endpoint{
		{Name: "customers.create", Method: http.MethodPost, Path: "/v1/customers", Roles: all,
			Access: access.On(access.Customers, access.Create), Summary: "Enter a customer.",
			Handle: endpoint.JSON(http.StatusCreated, s.Create)},
		{Name: "customers.list", Method: http.MethodGet, Path: "/v1/customers", Roles: all,
			Access: access.On(access.Customers, access.Read), Summary: "List the customers that the caller may see.",
			Doc:    endpoint.Doc{Search: customerList.Search()},
			Handle: endpoint.JSON(http.StatusOK, s.List)},
		{Name: "customers.get", Method: http.MethodGet, Path: "/v1/customers/{id}", Roles: all,
			Access: access.On(access.Customers, access.Read), Summary: "Give one customer.",
			Faults: []apierr.Kind{apierr.CustomerNotFound}, Handle: endpoint.JSON(http.StatusOK, s.Get)},
		{Name: "customers.update", Method: http.MethodPut, Path: "/v1/customers/{id}", Roles: all,
			Access: access.On(access.Customers, access.Update), Summary: "Replace the given data of a customer.",
			Faults: []apierr.Kind{apierr.CustomerNotFound, apierr.SelfVerification, apierr.PreconditionFailed}, Handle: endpoint.JSON(http.StatusOK, s.Update)},
		{Name: "customers.kyc", Method: http.MethodGet, Path: "/v1/customers/{id}/kyc", Roles: all,
			Access: access.On(access.Customers, access.Read), Summary: "Tell how far the verification of a customer has come.",
			Faults: []apierr.Kind{apierr.CustomerNotFound}, Handle: endpoint.JSON(http.StatusOK, s.GetKYC)},
		{Name: "customers.kyc_submit", Method: http.MethodPut, Path: "/v1/customers/{id}/kyc", Roles: all,
			Access: access.On(access.Customers, access.Update), Summary: "Add documents to a customer; a reviewer may verify him with it.",
			Faults: []apierr.Kind{apierr.CustomerNotFound, apierr.InvalidKYCTransition, apierr.SelfVerification, apierr.PreconditionFailed},
			Handle: endpoint.JSON(http.StatusOK, s.SubmitKYC)},
		{Name: "customers.kyc_decide", Method: http.MethodPatch, Path: "/v1/customers/{id}/kyc/status", Roles: staff,
			Access: access.On(access.Customers, access.Update), Summary: "Decide about the verification of a customer.",
			Faults: []apierr.Kind{apierr.CustomerNotFound, apierr.InvalidKYCTransition, apierr.SelfVerification, apierr.PreconditionFailed},
			Handle: endpoint.JSON(http.StatusOK, s.Decide)},
	}
	for i := range rows {
		if m := rows[i].Method; m == http.MethodPost || m == http.MethodPut { // these can add to what the owner stores
			rows[i].Faults = append(rows[i].Faults, apierr.QuotaExceeded)
		}
		rows[i].Tag, rows[i].Limit = "Customers", ratelimit.Private
	}
	return rows
}
