package server

import (
	"errors"
	"fmt"
	"log/slog"
	"net"

	"github.com/gofiber/fiber/v2"
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
	s.reject(ctx, kind.Wrap(err))
}

// reject answers a request that does not enter the pipeline, and closes its connection.
func (s *Server) reject(ctx *fasthttp.RequestCtx, err error) {
	ctx.Response.Reset()
	ctx.SetConnectionClose()
	c := s.app.AcquireCtx(ctx)
	defer s.app.ReleaseCtx(c)
	s.answerError(c, err)
}

// unexpected answers an error that Fiber itself returns. The pipeline returns none.
func (s *Server) unexpected(c *fiber.Ctx, err error) error {
	s.answerError(c, apierr.ServerError.Wrap(err))
	return nil
}

// answerError answers with an error outside the pipeline.
func (s *Server) answerError(c *fiber.Ctx, err error) {
	r := s.newCall(c)
	defer r.context.end()
	s.identify(r)
	s.fail(r, err)
}

// knownMethods hides methods that Fiber does not know, which it would answer with a text of its own, and rejects other
// versions of HTTP than 1.0 and 1.1.
func (s *Server) knownMethods(next fasthttp.RequestHandler) fasthttp.RequestHandler {
	known := map[string]bool{}
	for _, method := range fiber.DefaultMethods {
		known[method] = true
	}
	return func(ctx *fasthttp.RequestCtx) {
		if version := string(ctx.Request.Header.Protocol()); version != "HTTP/1.1" && version != "HTTP/1.0" {
			s.reject(ctx, apierr.MalformedRequest) // the engine accepts any version
			return
		}
		if wantsClose(&ctx.Request.Header) {
			ctx.SetConnectionClose()
		}
		if !known[string(ctx.Method())] {
			ctx.Request.Header.SetMethod(fiber.MethodTrace) // no row has it: findRoute answers 404 or 405
		}
		next(ctx)
	}
}

// engineLog writes the engine's own messages to the log without their arguments, which may quote a request.
type engineLog struct{ log *slog.Logger }

func (l engineLog) Printf(format string, _ ...any) {
	l.log.Debug("http engine", "message", fmt.Sprintf("%.80s", format))
}
