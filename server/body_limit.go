package server

import (
	"bytes"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"kontor/server/endpoint"
)

// headerReceived bounds the time for the beginning of a body; [Server.readBody] bounds that for the rest. When a body is too
// long for every row, headerReceived makes the engine call [Server.expect], as for clients that send Expect: the engine would
// wait for the beginning of the body otherwise.
func (s *Server) headerReceived(header *fasthttp.RequestHeader) fasthttp.RequestConfig {
	if header.ContentLength() > s.routes.maxBody {
		header.Set(fiber.HeaderExpect, "100-continue")
	}
	const lengthNone = -2 // as the engine reports it
	if header.ContentLength() == lengthNone || header.ContentLength() == 0 {
		return fasthttp.RequestConfig{}
	}
	return fasthttp.RequestConfig{ReadTimeout: readTimeout}
}

// expect rejects a body that is too long before the client sends it, and asks other clients to send theirs (RFC 9110, section
// 10.1.1). It keeps the route for [Server.findRoute]. The checks before the body come first: errors of authorization take
// precedence over 413. A row that reads no body has no limit: [Server.discardUnreadBody] ends the connection.
func (s *Server) expect(ctx *fasthttp.RequestCtx) int {
	s.extendWriting(ctx)
	hideUnknownMethod(&ctx.Request.Header)
	limit := endpoint.DefaultMaxBody
	path, _, _ := bytes.Cut(ctx.Request.Header.RequestURI(), []byte{'?'})
	row, params, _ := s.lookUp(ctx, string(ctx.Method()), path, nil)
	if row != nil {
		limit = row.BodyLimit()
		ctx.SetUserValue(foundKey{}, found{row, params})
	}
	if ctx.Request.Header.ContentLength() <= limit || row != nil && !row.Handle.ReadsBody() {
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
