package server

import (
	"strings"

	"github.com/gofiber/fiber/v2"

	"kontor/server/apierr"
)

// checkContentEncoding rejects compressed bodies.
func (s *Server) checkContentEncoding(r *call) error {
	encoding := r.list(fiber.HeaderContentEncoding)
	if encoding != "" && !strings.EqualFold(encoding, "identity") {
		return apierr.UnsupportedMediaType
	}
	return nil
}

// checkMediaType rejects a body of a type that the handler does not read. A request without a body passes.
func (s *Server) checkMediaType(r *call) error {
	handler := r.row.Handle
	if !handler.ReadsBody() || !handler.Streams && len(r.fiber.Request().Body()) == 0 || handler.Streams && r.fiber.Request().Header.ContentLength() == 0 {
		return nil
	}
	header := &r.fiber.Request().Header
	if countLines(header.RawHeaders(), fiber.HeaderContentType) > 1 {
		return apierr.UnsupportedMediaType
	}
	sent, _, _ := strings.Cut(string(header.ContentType()), ";")
	for _, media := range handler.Media {
		if strings.EqualFold(strings.TrimSpace(sent), media) {
			return nil
		}
	}
	return apierr.UnsupportedMediaType
}
