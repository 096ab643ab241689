package server

import (
	"net/http"

	"github.com/google/uuid"

	"kontor/server/apierr"
	"kontor/server/endpoint"
)

// failedSignIns maps the errors for wrong secrets to the action of the audit trail. Handlers that know more about a failure
// report it themselves.
var failedSignIns = map[string]string{
	apierr.InvalidRefresh.Code:      "auth.refresh_refused",
	apierr.ChallengeExpired.Code:    "auth.challenge_refused",
	apierr.InvalidOTP.Code:          "users.otp_refused",
	apierr.OTPExpired.Code:          "users.otp_refused",
	apierr.OTPAttemptsExceeded.Code: "users.otp_refused",
}

// reportEvents reports the security events of a request: those of the handler, that of the row for a success, and rejections.
func (s *Server) reportEvents(r *call, status int) {
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
	case len(reported) > 0: // the handler reported the cause
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

// report completes an event with time, actor, origin and record, and passes it on.
func (s *Server) report(r *call, e endpoint.Event) {
	e.At, e.RequestID, e.Endpoint = r.Now, r.AuditID, r.row.key
	e.Network, e.Session = endpoint.AuditNetwork(r.Address), r.Caller.SessionID
	if e.Actor = r.Caller.UserID; e.Actor == "" {
		e.Actor = r.Caller.KeyID
	}
	if t, _, ok := r.row.Access.Record(); ok && e.RecType == "" {
		e.RecType = t.Name
	}
	if e.RecID == "" && len(r.request.Params) > 0 {
		if id, err := uuid.Parse(r.request.Params[len(r.request.Params)-1]); err == nil { // other values may be anything that a client sent
			e.RecID = id.String()
		}
	}
	s.Observe(e)
}
