package server

import (
	"github.com/valyala/fasthttp"

	"kontor/server/apierr"
)

// checkFraming rejects requests with an ambiguous head, and those whose end is ambiguous: with a length and chunks, or with an obsolete transfer coding. A proxy
// may see a body where this server sees a second request, or the other way round (RFC 9112, sections 6.1 and 11.2).
func (s *Server) checkFraming(r *call) error {
	header := &r.fiber.Request().Header
	if !obsolete(header.RawHeaders()) && !ambiguous(header) {
		return nil
	}
	r.fiber.Context().SetConnectionClose()
	return apierr.MalformedRequest
}

// obsolete reports whether a line of the head continues the one before, or ends without a carriage return. A recipient may accept both
// (RFC 9112, sections 2.2 and 5.2), but two recipients may then see different headers.
func obsolete(head []byte) bool {
	for i, c := range head {
		switch {
		case c != '\n':
		case i == 0 || head[i-1] != '\r':
			return true
		case i+1 < len(head) && (head[i+1] == ' ' || head[i+1] == '\t'):
			return true
		}
	}
	return len(head) > 0 && (head[0] == ' ' || head[0] == '\t')
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
