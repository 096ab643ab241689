package server

import (
	"net/http"

	"github.com/google/uuid"

	"kontor/server/apierr"
	"kontor/server/endpoint"
)

// failedSignIns are the errors that a wrong secret is answered with, with the action that the audit trail names.
// Handlers that know more about it report it themselves.
var failedSignIns = map[string]string{
	apierr.InvalidRefresh.Code:      "auth.refresh_refused",
	apierr.InvalidOTP.Code:          "users.otp_refused",
	apierr.OTPExpired.Code:          "users.otp_refused",
	apierr.OTPAttemptsExceeded.Code: "users.otp_refused",
}

// observe hands over what the request means for the security of the service: what the handler reported, what the row says
// of a success, and refusals.
func (s *Server) observe(r *call, status int) {
	if s.Observe == nil || r.row == nil {
		return
	}
	reported := r.Events()
	for _, e := range reported {
		s.report(r, e)
	}
	switch {
	case status < http.StatusBadRequest:
		if r.row.Reports.Action != "" {
			s.report(r, r.row.Reports)
		}
	case len(reported) > 0: // the handler knew better
	case failedSignIns[r.refused] != "":
		s.report(r, endpoint.Event{Kind: endpoint.FailedSignIn, Action: failedSignIns[r.refused]})
	case status == http.StatusForbidden:
		s.report(r, endpoint.Event{Kind: endpoint.Denial, Action: "access.denied"})
	case status == http.StatusTooManyRequests:
		s.report(r, endpoint.Event{Kind: endpoint.Throttling, Action: "access.throttled"})
	case status == http.StatusUnauthorized && r.row.Access.TakesAPIKey() && len(r.fiber.Request().Header.Peek(apiKeyHeader)) > 0:
		s.report(r, endpoint.Event{Kind: endpoint.FailedSignIn, Action: "api_keys.refused"})
	}
}

// report completes an event with who, where and what, and hands it over.
func (s *Server) report(r *call, e endpoint.Event) {
	e.At, e.RequestID, e.Endpoint = r.Context.Now, r.RequestID, r.row.key
	e.Network, e.Session = endpoint.AuditNetwork(r.Address), r.Caller.SessionID
	if e.Actor = r.Caller.UserID; e.Actor == "" {
		e.Actor = r.Caller.KeyID
	}
	if t, _, ok := r.row.Access.Record(); ok && e.RecType == "" {
		e.RecType = t.Name
	}
	if e.RecID == "" && len(r.params) > 0 {
		if id, err := uuid.Parse(r.params[len(r.params)-1]); err == nil { // anything else is what the client made up
			e.RecID = id.String()
		}
	}
	s.Observe(e)
}
