package server

import "github.com/gofiber/fiber/v2"

const (
	corsMethods = "GET, HEAD, POST, PUT, PATCH, DELETE"
	corsHeaders = "Authorization, Content-Type, Accept-Language, X-API-Key, X-Device-ID, X-Device-Token, X-Request-ID, Idempotency-Key, " +
		"If-Match, If-None-Match, Last-Event-ID"
	corsExposed = "ETag, Link, Content-Language, X-Request-ID, Retry-After, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, " +
		"Idempotency-Replayed"
)

// checkOrigin answers CORS preflights, and lets pages of allowed origins read the answers of other requests. A request with
// the method OPTIONS but without Origin is no preflight: routing decides about it.
func (s *Server) checkOrigin(r *call) error {
	origin := string(r.fiber.Request().Header.PeekCanonical(nameOrigin))
	response := r.fiber.Response()
	if r.fiber.Method() == fiber.MethodOptions && origin != "" {
		response.Header.Add(fiber.HeaderVary, fiber.HeaderOrigin)
		s.answerPreflight(r, origin)
		return errAnswered
	}
	if len(s.origins) == 0 {
		return nil
	}
	response.Header.Add(fiber.HeaderVary, fiber.HeaderOrigin)
	if s.origins[origin] {
		response.Header.Set(fiber.HeaderAccessControlAllowOrigin, origin)
		response.Header.Set(fiber.HeaderAccessControlExposeHeaders, corsExposed)
	}
	return nil
}

// answerPreflight answers with 200 for an allowed origin and with 403 for any other, both without a body.
func (s *Server) answerPreflight(r *call, origin string) {
	response := r.fiber.Response()
	if !s.origins[origin] {
		response.SetStatusCode(fiber.StatusForbidden)
		return
	}
	response.Header.Set(fiber.HeaderAccessControlAllowOrigin, origin)
	response.Header.Set(fiber.HeaderAccessControlAllowMethods, corsMethods)
	response.Header.Set(fiber.HeaderAccessControlAllowHeaders, corsHeaders)
	response.Header.Set(fiber.HeaderAccessControlMaxAge, "600")
	response.SetStatusCode(fiber.StatusOK)
}
