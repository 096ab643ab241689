package server

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/utils"
	"github.com/valyala/fasthttp"

	"kontor/server/apierr"
)

// malformed answers requests that the HTTP engine could not read: broken HTTP, headers too large or too slow. The engine's own
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
	s.extendWriting(ctx)
	s.reject(ctx, kind.Wrap(err))
}

// extendWriting sets the deadline of writes for what the engine writes before a request is handled. The deadline of the former
// request may have passed.
func (s *Server) extendWriting(ctx *fasthttp.RequestCtx) {
	_ = ctx.Conn().SetWriteDeadline(time.Now().Add(s.WriteTimeout)) // fails for closed connections only
}

// reject answers a request that does not enter the pipeline, and closes its connection.
func (s *Server) reject(ctx *fasthttp.RequestCtx, err error) {
	ctx.Response.Reset()
	ctx.SetConnectionClose()
	c := s.app.AcquireCtx(ctx)
	defer s.app.ReleaseCtx(c)
	s.answerError(c, err)
}

// answerError answers with an error outside the pipeline.
func (s *Server) answerError(c *fiber.Ctx, err error) {
	r := s.newCall(c)
	defer r.context.end()
	s.identify(r)
	s.fail(r, err)
}

// enter takes a request into the pipeline, without Fiber's router: findRoute has its own. It rejects versions of HTTP other than
// 1.0 and 1.1; the engine accepts any.
func (s *Server) enter(ctx *fasthttp.RequestCtx) {
	if version := ctx.Request.Header.Protocol(); string(version) != "HTTP/1.1" && string(version) != "HTTP/1.0" {
		s.reject(ctx, apierr.MalformedRequest)
		return
	}
	hideUnknownMethod(&ctx.Request.Header)
	c := s.app.AcquireCtx(ctx)
	defer s.app.ReleaseCtx(c)
	s.serve(c)
}

// hideUnknownMethod replaces a method that Fiber does not know by TRACE, which no row has: findRoute answers 404 or 405. The log
// has the method of each request; the client's could be any text.
func hideUnknownMethod(header *fasthttp.RequestHeader) {
	if !slices.Contains(fiber.DefaultMethods, utils.UnsafeString(header.Method())) {
		header.SetMethod(fiber.MethodTrace)
	}
}

// engineLog writes the engine's own messages to the log without their arguments, which may quote a request.
type engineLog struct{ log *slog.Logger }

func (l engineLog) Printf(format string, _ ...any) {
	l.log.Debug("http engine", "message", fmt.Sprintf("%.80s", format))
}
