package server

import (
	"net/http"
)

// callHandler decodes the input, calls the service behind the row and writes its result.
func (s *Server) callHandler(r *call) error {
	// Answers of public POST requests, such as tokens, must not be cached either (RFC 6749, section 5.1).
	if !r.row.Access.IsPublic() || r.row.Method == http.MethodPost {
		r.fiber.Response().Header.SetCanonical(nameCacheControl, valueNoStore)
	}
	if r.row.Access.IsPublic() {
		r.DeviceToken = string(r.fiber.Request().Header.Peek("X-Device-Token"))
	}
	ctx, err := s.withIdempotency(r)
	if err != nil {
		return err
	}
	r.request.Row = &r.row.Endpoint
	if wanted, mark := wantsCSV(r); wanted {
		return s.answerCSV(ctx, r, mark)
	}
	s.beginExplanation(r)
	result, err := r.row.Handle.Serve(ctx, &r.request)
	s.answerExplanation(r)
	if err != nil || result.Sent {
		return err
	}
	return s.answer(r, result)
}
