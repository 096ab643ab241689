package server

import (
	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"kontor/server/endpoint"
)

// headerReceived bounds the time for a body before a byte of it is read. When a body is too long, it makes the engine call
// [Server.expect], as for clients that send Expect (RFC 9110, section 10.1.1): the engine would wait for the beginning of the
// body otherwise. Short bodies need no limit of their row here: the engine has read them anyway.
func (s *Server) headerReceived(header *fasthttp.RequestHeader) fasthttp.RequestConfig {
	length := header.ContentLength()
	if length <= firstRead && length != lengthChunked {
		return fasthttp.RequestConfig{ReadTimeout: readTimeout}
	}
	limit := s.bodyLimit(header)
	if length > limit {
		header.Set(fiber.HeaderExpect, "100-continue")
	}
	if limit > endpoint.DefaultMaxBody {
		return fasthttp.RequestConfig{ReadTimeout: uploadTimeout}
	}
	return fasthttp.RequestConfig{ReadTimeout: readTimeout}
}

func (s *Server) bodyLimit(header *fasthttp.RequestHeader) int {
	if row := s.routes.peek(header.Method(), header.RequestURI()); row != nil {
		return row.BodyLimit()
	}
	return endpoint.DefaultMaxBody
}

// expect rejects a body that is too long before the client sends it, and lets other clients send theirs. The checks
// before the body come first: errors of authorization take precedence over 413.
func (s *Server) expect(ctx *fasthttp.RequestCtx) int {
	limit := s.bodyLimit(&ctx.Request.Header)
	if ctx.Request.Header.ContentLength() <= limit {
		return fasthttp.StatusContinue
	}
	ctx.Response.Reset()
	ctx.SetConnectionClose()
	c := s.app.AcquireCtx(ctx)
	defer s.app.ReleaseCtx(c)
	s.handle(c, func(r *call) error {
		if err := s.run(r, checksBeforeBody[:]); err != nil {
			return err
		}
		return tooLarge(limit)
	})
	discard(ctx.Conn(), ctx.Conn())
	return ctx.Response.StatusCode()
}
