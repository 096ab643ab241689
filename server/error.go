package server

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/gofiber/fiber/v2"

	"kontor/server/apierr"
	"kontor/server/endpoint"
)

// envelope is the body of every error.
type envelope struct {
	Status    int            `json:"status"`
	Message   string         `json:"message"`
	Code      string         `json:"code"`
	Class     string         `json:"class"`
	Retryable bool           `json:"retryable,omitzero"`
	Details   map[string]any `json:"details,omitzero"`
}

// retryUnavailable is the Retry-After of a busy service when nothing better is known, in seconds.
const retryUnavailable = "1"

// fail writes the answer of a request that ended with an error; no other place writes errors. The client gets the code and a
// text in its language, the log gets the cause of errors of the service. An error may also carry the stored answer of an
// earlier request.
func (s *Server) fail(r *call, err error) {
	if stored, ok := s.stored(err); ok {
		if !stored.Mismatch {
			s.repeat(r, stored)
			return
		}
		err = apierr.IdempotencyMismatch.Wrap(err)
	}
	if s.Translate != nil {
		err = s.Translate(err)
	}
	e := apierr.Of(expired(err))
	r.refused, r.refusal = e.Code, e
	// Errors without a cause are no failures of the service: a request was rejected under load, or a field cannot be searched.
	// The request's own log line is enough, and a flood must not fill the log.
	if e.Status >= http.StatusInternalServerError && hasCause(e) {
		s.Log.Error("request failed", "request_id", r.RequestID, "code", e.Code, "cause", e.Error())
	}
	s.setErrorHeaders(r, e)
	if r.row != nil && r.row.AuthZEN {
		s.failAuthZEN(r, e)
		return
	}
	body, err := json.Marshal(s.envelopeOf(r.Language, e), json.Deterministic(true))
	if err != nil {
		s.Log.Error("error could not be encoded", "request_id", r.RequestID, "code", e.Code, "cause", err)
		body = []byte(`{}`)
	}
	s.writeJSON(r, e.Status, body)
}

// hasCause reports whether an error has a cause. A bare kind is its own cause.
func hasCause(e *apierr.Error) bool { return e.Cause != nil && e.Cause.Error() != e.Code }

func (s *Server) setErrorHeaders(r *call, e *apierr.Error) {
	header := &r.fiber.Response().Header
	header.Set(fiber.HeaderCacheControl, "no-store")
	header.Del(fiber.HeaderETag)
	switch {
	case e.Retry > 0:
		header.Set(fiber.HeaderRetryAfter, strconv.Itoa(wholeSeconds(e.Retry)))
	case e.Status == http.StatusServiceUnavailable || e.Status == http.StatusTooManyRequests:
		header.Set(fiber.HeaderRetryAfter, retryUnavailable)
	}
	if e.Status == http.StatusUnauthorized {
		header.Set(fiber.HeaderWWWAuthenticate, challenge(r, e))
	}
}

// challenge returns the header WWW-Authenticate of a 401.
func challenge(r *call, e *apierr.Error) string {
	const realm = `Bearer realm="kontor"`
	switch {
	case e.Kind == apierr.StaleSession: // RFC 9470, section 3
		text := realm + `, error="insufficient_user_authentication"`
		if age, ok := e.Details["max_age"].(int); ok {
			text += `, max_age="` + strconv.Itoa(age) + `"`
		}
		if levels, ok := e.Details["acr_values"].([]string); ok {
			text += `, acr_values="` + strings.Join(levels, " ") + `"`
		}
		return text
	case r.row != nil && r.row.Access.TakesBearer() && endpoint.BearerToken(r.fiber) != "":
		return realm + `, error="invalid_token"` // RFC 6750, section 3.1
	}
	return realm
}

// envelopeOf returns the body of an error in a language.
func (s *Server) envelopeOf(lang string, e *apierr.Error) envelope {
	text := "error." + e.Code
	if e.Reason != "" {
		text += "." + e.Reason
	}
	body := envelope{
		Status: e.Status, Code: e.Code, Class: "business",
		Message: s.Texts.Text(lang, text, e.Args),
		Details: e.Details,
	}
	if e.Temporary() {
		body.Class, body.Retryable = "temporary", true
	}
	if !e.Fields.Empty() {
		details := map[string]any{}
		for name, value := range e.Details {
			details[name] = value
		}
		for field, text := range e.Fields.All {
			details[field] = s.Texts.Text(lang, text.Key, text.Args)
		}
		body.Details = details
	}
	return body
}
