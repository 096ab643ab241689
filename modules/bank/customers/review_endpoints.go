package customers

import (
	"net/http"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
)

// reviewEndpoints returns the endpoints for reviewers: the queue, and decisions that wait for a second person.
func (s *Service) reviewEndpoints(staff []string) []endpoint.Endpoint {
	second := []apierr.Kind{apierr.CustomerNotFound, apierr.DecisionNotFound, apierr.DecisionNotPending, apierr.SecondPersonRequired,
		apierr.SelfVerification, apierr.PreconditionFailed, apierr.RecordErased}
	update := access.On(access.Customers, access.Update)
	return []endpoint.Endpoint{
		{Name: "customers.cases", Method: http.MethodGet, Path: "/v1/kyc/cases", Roles: staff, Access: update,
			Summary: "List the open cases of the verification. sort=opened_at lists the oldest first.",
			Doc:     endpoint.Doc{Search: caseList.Search()},
			Handle:  endpoint.JSON(http.StatusOK, s.Cases)},
		{Name: "customers.take_cases", Method: http.MethodPost, Path: "/v1/kyc/cases/take", Roles: staff, Access: update,
			Summary:   "Take cases into review and assign them to the caller.",
			Assurance: endpoint.Fresh,
			Handle:    endpoint.JSON(http.StatusOK, s.Take)},
		{Name: "customers.give_back_cases", Method: http.MethodPost, Path: "/v1/kyc/cases/give-back", Roles: staff, Access: update,
			Summary: "Give assigned cases back.",
			Handle:  endpoint.JSON(http.StatusOK, s.GiveBack)},
		{Name: "customers.kyc_reasons", Method: http.MethodGet, Path: "/v1/kyc/reasons", Roles: staff, Access: update,
			Summary: "List templates for the reasons of decisions, in all languages.",
			Handle:  endpoint.JSON(http.StatusOK, s.Reasons)},
		{Name: "customers.kyc_confirm", Method: http.MethodPost, Path: "/v1/customers/{id}/kyc/decisions/{decision_id}/confirm", Roles: staff,
			Access: update, Summary: "Confirm a decision as the second person.", Assurance: endpoint.Fresh,
			Faults: append([]apierr.Kind{apierr.MembersMissing, apierr.ScreeningOpen, apierr.Unavailable}, second...), Handle: endpoint.JSON(http.StatusOK, s.Confirm)},
		{Name: "customers.kyc_refuse", Method: http.MethodPost, Path: "/v1/customers/{id}/kyc/decisions/{decision_id}/reject", Roles: staff,
			Access: update, Summary: "Reject a decision as the second person.", Assurance: endpoint.Fresh, Faults: second,
			Handle: endpoint.JSON(http.StatusOK, s.RejectDecision)},
		{Name: "customers.kyc_withdraw", Method: http.MethodPost, Path: "/v1/customers/{id}/kyc/decisions/{decision_id}/withdraw", Roles: staff,
			Access: update, Summary: "Withdraw a decision that the caller proposed.",
			Faults: []apierr.Kind{apierr.CustomerNotFound, apierr.DecisionNotFound, apierr.DecisionNotPending, apierr.PreconditionFailed, apierr.RecordErased},
			Handle: endpoint.JSON(http.StatusOK, s.Withdraw)},
	}
}
