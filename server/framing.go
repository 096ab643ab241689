package server

import (
	"github.com/valyala/fasthttp"

	"kontor/server/apierr"
)

// checkFraming rejects requests whose end is ambiguous: with a length and chunks, or with an obsolete transfer coding. A proxy
// may see a body where this server sees a second request, or the other way round (RFC 9112, sections 6.1 and 11.2).
func (s *Server) checkFraming(r *call) error {
	if !ambiguous(&r.fiber.Request().Header) {
		return nil
	}
	r.fiber.Context().SetConnectionClose()
	return apierr.MalformedRequest
}

func ambiguous(header *fasthttp.RequestHeader) bool {
	if header.ContentLength() == lengthNone && (header.IsGet() || header.IsHead()) {
		return false // there is no body
	}
	raw := header.RawHeaders()
	if countLines(raw, fasthttp.HeaderTransferEncoding) == 0 {
		return false
	}
	return header.ContentLength() != lengthChunked || countLines(raw, fasthttp.HeaderContentLength) > 0
}

// Content lengths with a meaning of their own, as the engine reports them.
const (
	lengthChunked = -1
	lengthNone    = -2
)
