package customers

import (
	"net/http"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
)

const duplicatesNotes = "Send the members of a creation before it. Customers are found by their names in any order, alphabet and spelling, by the date of " +
	"birth, the e-mail address, the phone number and the external id. Only customers that the caller may read are compared. Nothing is stored. See " +
	"`POST /v1/customers/{id}/duplicates/{other}/dismiss` for those who are another person."

// Endpoints returns the endpoints of the module.
func (s *Service) Endpoints() []endpoint.Endpoint {
	waits := endpoint.Doc{Answers: []endpoint.Answer{
		{Status: http.StatusOK, Body: Customer{}},
		{Status: http.StatusAccepted, Says: "The decision waits for a second person; the customer is as before.", Body: Decision{}},
	}}
	staff, all := []string{access.Advisor}, []string{access.Advisor, access.Customer}
	rows := []endpoint.Endpoint{
		{Name: "customers.create", Method: http.MethodPost, Path: "/v1/customers", Roles: all,
			Access: access.On(access.Customers, access.Create), Summary: "Create a customer.",
			Handle: endpoint.JSON(http.StatusCreated, s.Create)},
		{Name: "customers.list", Method: http.MethodGet, Path: "/v1/customers", Roles: all,
			Access: access.On(access.Customers, access.Read), Summary: "List customers.",
			Doc:    endpoint.Doc{Search: customerList.Search()},
			Handle: endpoint.JSONEncoded(http.StatusOK, s.List, s.listEncoded)},
		{Name: "customers.get", Method: http.MethodGet, Path: "/v1/customers/{id}", Roles: all,
			Access: access.On(access.Customers, access.Read), Summary: "Get a customer.",
			Faults: []apierr.Kind{apierr.CustomerNotFound}, Handle: endpoint.JSONEncoded(http.StatusOK, s.Get, s.getEncoded)},
		{Name: "customers.update", Method: http.MethodPut, Path: "/v1/customers/{id}", Roles: all,
			Access: access.On(access.Customers, access.Update), Summary: "Update a customer. Members that the body leaves out keep their values.",
			Faults: []apierr.Kind{apierr.CustomerNotFound, apierr.SelfVerification, apierr.PreconditionFailed}, Handle: endpoint.JSON(http.StatusOK, s.Update)},
		{Name: "customers.notify", Method: http.MethodPost, Path: "/v1/customers/{id}/notify", Subject: access.NoSubject("a message gives no right"), Roles: staff,
			Access: access.On(access.Customers, access.Update), Summary: "Send users a notification about a customer.",
			Faults: []apierr.Kind{apierr.CustomerNotFound}, Handle: endpoint.JSON(http.StatusOK, s.NotifyUsers)},
		{Name: "customers.duplicates", Method: http.MethodPost, Path: "/v1/customers/duplicates", Roles: staff,
			Access: access.On(access.Customers, access.Create), Summary: "Find customers who may be the same person as a new one.",
			Doc: endpoint.Doc{Description: duplicatesNotes}, Faults: []apierr.Kind{apierr.CustomerNotFound}, Handle: endpoint.JSON(http.StatusOK, s.Duplicates)},
		{Name: "customers.dismiss_duplicate", Method: http.MethodPost, Path: "/v1/customers/{id}/duplicates/{other}/dismiss", Roles: staff,
			Access: access.On(access.Customers, access.Update), Summary: "Remember that two customers are two persons.",
			Faults: []apierr.Kind{apierr.CustomerNotFound, apierr.RecordErased}, Handle: endpoint.JSON(http.StatusOK, s.Dismiss)},
		{Name: "customers.kyc", Method: http.MethodGet, Path: "/v1/customers/{id}/kyc", Roles: all,
			Access: access.On(access.Customers, access.Read), Summary: "Get the verification state, documents and history of a customer.",
			Faults: []apierr.Kind{apierr.CustomerNotFound}, Handle: endpoint.JSON(http.StatusOK, s.GetKYC)},
		{Name: "customers.kyc_submit", Method: http.MethodPut, Path: "/v1/customers/{id}/kyc", Roles: all,
			Access: access.On(access.Customers, access.Update), Summary: "Submit documents of a customer. With verified_at, a reviewer also verifies the customer.",
			Assurance: endpoint.Decision.When("the request verifies the customer"),
			Faults:    []apierr.Kind{apierr.CustomerNotFound, apierr.InvalidKYCTransition, apierr.MembersMissing, apierr.SelfVerification, apierr.DecisionWaits, apierr.ScreeningOpen, apierr.Unavailable, apierr.PreconditionFailed},
			Doc:       waits, Handle: endpoint.JSON(http.StatusOK, s.SubmitKYC)},
		{Name: "customers.kyc_decide", Method: http.MethodPatch, Path: "/v1/customers/{id}/kyc/status", Roles: staff,
			Access: access.On(access.Customers, access.Update), Summary: "Decide on the verification of a customer.",
			Assurance: endpoint.Decision, Find: s.findReviewed,
			Faults: []apierr.Kind{apierr.CustomerNotFound, apierr.InvalidKYCTransition, apierr.MembersMissing, apierr.SelfVerification, apierr.DecisionWaits, apierr.ScreeningOpen, apierr.Unavailable, apierr.PreconditionFailed},
			Doc:    waits, Handle: endpoint.JSON(http.StatusOK, s.Decide)},
	}
	rows = append(rows, s.reviewEndpoints(staff)...)
	for i := range rows {
		if m := rows[i].Method; m == http.MethodPut || m == http.MethodPatch {
			rows[i].Faults = append(rows[i].Faults, apierr.RecordErased)
		}
		if m := rows[i].Method; m == http.MethodPut || rows[i].Name == "customers.create" { // these may exceed the owner's quota
			rows[i].Faults = append(rows[i].Faults, apierr.QuotaExceeded)
		}
		rows[i].Tag, rows[i].Limit = "Customers", ratelimit.Private
	}
	return rows
}

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
			Assurance: endpoint.Decision,
			Handle:    endpoint.JSON(http.StatusOK, s.Take)},
		{Name: "customers.give_back_cases", Method: http.MethodPost, Path: "/v1/kyc/cases/give-back", Roles: staff, Access: update,
			Summary: "Give assigned cases back.",
			Handle:  endpoint.JSON(http.StatusOK, s.GiveBack)},
		{Name: "customers.kyc_reasons", Method: http.MethodGet, Path: "/v1/kyc/reasons", Roles: staff, Access: update,
			Summary: "List templates for the reasons of decisions, in all languages.",
			Handle:  endpoint.JSON(http.StatusOK, s.Reasons)},
		{Name: "customers.kyc_confirm", Method: http.MethodPost, Path: "/v1/customers/{id}/kyc/decisions/{decision_id}/confirm", Roles: staff,
			Access: update, Summary: "Confirm a decision as the second person.", Assurance: endpoint.Decision, Find: s.findDecision,
			Faults: append([]apierr.Kind{apierr.DecisionOutdated, apierr.MembersMissing, apierr.ScreeningOpen, apierr.Unavailable}, second...),
			Handle: endpoint.JSON(http.StatusOK, s.Confirm)},
		{Name: "customers.kyc_refuse", Method: http.MethodPost, Path: "/v1/customers/{id}/kyc/decisions/{decision_id}/reject", Roles: staff,
			Access: update, Summary: "Reject a decision as the second person.",
			Assurance: endpoint.Decision, Find: s.findDecision, Faults: second,
			Handle: endpoint.JSON(http.StatusOK, s.RejectDecision)},
		{Name: "customers.kyc_withdraw", Method: http.MethodPost, Path: "/v1/customers/{id}/kyc/decisions/{decision_id}/withdraw", Roles: staff,
			Access: update, Summary: "Withdraw a decision that the caller proposed.",
			Faults: []apierr.Kind{apierr.CustomerNotFound, apierr.DecisionNotFound, apierr.DecisionNotPending, apierr.PreconditionFailed, apierr.RecordErased},
			Handle: endpoint.JSON(http.StatusOK, s.Withdraw)},
	}
}
