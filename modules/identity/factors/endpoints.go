package factors

import (
	"net/http"

	"kontor/modules/kit/signin"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
)

// Endpoints returns the endpoints of the module. Users whose role requires a second factor may call all of them without one, for
// their own factors.
func (s *Service) Endpoints() []endpoint.Endpoint {
	rows := []endpoint.Endpoint{
		{Name: "factors.list", Method: http.MethodGet, Path: "/v1/users/{id}/factors",
			Access: access.On(access.Factors, access.Read), Summary: "List the second factors of a user.",
			Faults: []apierr.Kind{apierr.UserNotFound}, Doc: endpoint.Doc{Search: factorList.Search()},
			Handle: endpoint.JSON(http.StatusOK, s.list)},
		{Name: "factors.enrol", Method: http.MethodPost, Path: "/v1/users/{id}/factors", Subject: access.SelfIn("id"),
			// Users enrol factors of their own without a grant on the type, which a rule for creation would require.
			Access: access.SignedIn, Assurance: endpoint.SecondFactor, Summary: "Enrol a second factor, or replace the recovery codes.",
			MaxBody: signin.MaxBody, Doc: endpoint.Doc{Headers: []string{endpoint.DeviceHeader}},
			Faults: []apierr.Kind{apierr.UserNotFound, apierr.FactorNameExists, apierr.TooManyFactors, apierr.PasskeysUnavailable, apierr.NoSecondFactor,
				apierr.ProofRequired, apierr.MethodOnTrial, apierr.OlderMethodKept, apierr.LockedOut},
			Handle: endpoint.JSON(http.StatusCreated, s.enrol)},
		{Name: "factors.confirm", Method: http.MethodPost, Path: "/v1/users/{id}/factors/{factor_id}/confirm", Subject: access.SelfIn("id"),
			Access: access.On(access.Factors, access.Update), Assurance: endpoint.SecondFactor, Summary: "Confirm the enrolment of a second factor.",
			MaxBody: signin.MaxBody, Doc: endpoint.Doc{Headers: []string{endpoint.DeviceHeader}},
			Faults: []apierr.Kind{apierr.UserNotFound, apierr.FactorNotFound, apierr.FactorActive, apierr.EnrolmentOver, apierr.PasskeyExists,
				apierr.PasskeysUnavailable},
			Handle: endpoint.JSON(http.StatusOK, s.confirm)},
		{Name: "factors.rename", Method: http.MethodPatch, Path: "/v1/users/{id}/factors/{factor_id}", Subject: access.SelfIn("id"),
			Access: access.On(access.Factors, access.Update), Assurance: endpoint.SecondFactor, Summary: "Rename a second factor.",
			Faults: []apierr.Kind{apierr.UserNotFound, apierr.FactorNotFound, apierr.FactorNameExists, apierr.PreconditionFailed},
			Handle: endpoint.JSON(http.StatusOK, s.rename)},
		{Name: "factors.remove", Method: http.MethodDelete, Path: "/v1/users/{id}/factors/{factor_id}", Subject: access.UserIn("id"),
			Access: access.On(access.Factors, access.Delete), Assurance: endpoint.SecondFactor, Summary: "Remove a second factor.", MaxBody: signin.MaxBody,
			Faults: []apierr.Kind{apierr.UserNotFound, apierr.FactorNotFound, apierr.OlderMethodKept, apierr.PreconditionFailed,
				apierr.ProofRequired, apierr.MethodOnTrial, apierr.LockedOut},
			Handle: endpoint.JSON(http.StatusOK, s.remove)},
	}
	for i := range rows {
		rows[i].Tag, rows[i].Limit, rows[i].WithoutFactor = "Second factors", ratelimit.Private, true
		rows[i].Roles = []string{access.Advisor, access.Customer}
		rows[i].Faults = append(rows[i].Faults, apierr.FactorRequired) // for the factors of other users
	}
	return rows
}
