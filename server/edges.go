package server

import (
	"context"
	"errors"
	"net"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/google/uuid"
	"github.com/valyala/fasthttp"

	"kontor/server/access"
	"kontor/server/apierr"
)

// malformed answers for requests that never became one: broken HTTP, headers too large or too slow. The engine's own
// text would quote the request.
func (s *Server) malformed(ctx *fasthttp.RequestCtx, err error) {
	kind := apierr.MalformedRequest
	var small *fasthttp.ErrSmallBuffer
	var timeout net.Error
	switch {
	case errors.As(err, &small):
		kind = apierr.HeadersTooLarge
	case errors.As(err, &timeout) && timeout.Timeout():
		kind = apierr.RequestTimeout
	}
	s.refuse(ctx, kind.Wrap(err))
}

// refuse answers for a request that does not come to the pipeline.
func (s *Server) refuse(ctx *fasthttp.RequestCtx, err error) {
	ctx.Response.Reset()
	ctx.SetConnectionClose()
	c := s.app.AcquireCtx(ctx)
	defer s.app.ReleaseCtx(c)
	r := &call{fiber: c}
	r.Context.Context, r.Caller = context.Background(), &access.Caller{}
	s.identify(r)
	s.fail(r, err)
}

// unexpected answers for an error that Fiber itself makes. The pipeline lets none pass; this is the net below it.
func (s *Server) unexpected(c *fiber.Ctx, err error) error {
	r := &call{fiber: c}
	r.Context.Context, r.Caller = context.Background(), &access.Caller{}
	s.identify(r)
	s.fail(r, apierr.ServerError.Wrap(err))
	return nil
}

// preflight answers a CORS preflight: 200 without a body for an allowed origin, 403 without one for any other. Without
// an Origin it is no preflight, and the row decides.
func (s *Server) preflight(r *call) bool {
	header := &r.fiber.Request().Header
	origin := string(header.Peek(fiber.HeaderOrigin))
	if r.fiber.Method() != fiber.MethodOptions || origin == "" {
		return false
	}
	response := r.fiber.Response()
	response.Header.Add(fiber.HeaderVary, fiber.HeaderOrigin)
	if !s.origins[origin] {
		response.SetStatusCode(fiber.StatusForbidden)
		return true
	}
	response.Header.Set(fiber.HeaderAccessControlAllowOrigin, origin)
	response.Header.Set(fiber.HeaderAccessControlAllowMethods, "GET, HEAD, POST, PUT, PATCH, DELETE")
	response.Header.Set(fiber.HeaderAccessControlAllowHeaders, "Authorization, Content-Type, Accept-Language, X-API-Key, "+
		"X-Device-ID, X-Device-Token, X-Request-ID, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID")
	response.Header.Set(fiber.HeaderAccessControlMaxAge, "600")
	response.SetStatusCode(fiber.StatusOK)
	return true
}

// allowOrigin lets a page of an allowed origin read the answer.
func (s *Server) allowOrigin(r *call) {
	if len(s.origins) == 0 {
		return
	}
	response := r.fiber.Response()
	response.Header.Add(fiber.HeaderVary, fiber.HeaderOrigin)
	if origin := string(r.fiber.Request().Header.Peek(fiber.HeaderOrigin)); s.origins[origin] {
		response.Header.Set(fiber.HeaderAccessControlAllowOrigin, origin)
		response.Header.Set(fiber.HeaderAccessControlExposeHeaders, "ETag, Link, Content-Language, X-Request-ID, Retry-After, "+
			"RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, Idempotency-Replayed")
	}
}

// requestID takes the client's request id if it is a sane one, else it makes one.
func requestID(sent []byte) string {
	const maxLength = 128
	if len(sent) > 0 && len(sent) <= maxLength {
		for _, b := range sent {
			letter := b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
			if !letter && (b < '0' || b > '9') && !strings.ContainsRune("-_.:", rune(b)) {
				return newRequestID()
			}
		}
		return string(sent)
	}
	return newRequestID()
}

func newRequestID() string { return uuid.Must(uuid.NewV7()).String() }

// printable reports whether a header's value is visible ASCII.
func printable(text string) bool {
	for i := range len(text) {
		if text[i] < 0x21 || text[i] > 0x7e {
			return false
		}
	}
	return text != ""
}
