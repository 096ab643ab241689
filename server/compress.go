package server

import (
	"bytes"
	"math/rand/v2"

	"github.com/gofiber/fiber/v2"

	"kontor/server/accept"
	"kontor/server/compression"
	"kontor/server/etag"
)

const (
	// minCompressed is the smallest JSON that is compressed, in bytes. A smaller one is a single packet anyway.
	minCompressed = 1 << 10
	// maxPadding is the greatest length of the header that hides the exact length of a compressed answer, in bytes.
	maxPadding = 64
)

// coding returns the content coding of an answer of a size. Rows whose answers may hold secrets have none, see
// [endpoint.Compression].
func (s *Server) coding(r *call, size int) string {
	if !r.row.compressible {
		return accept.Identity
	}
	response, lines := r.fiber.Response(), r.fiber.Request().Header.PeekCanonical(nameAcceptEncoding)
	if size >= minCompressed {
		response.Header.Add(fiber.HeaderVary, fiber.HeaderAcceptEncoding)
	}
	if len(lines) == 0 {
		return accept.Identity
	}
	coding, forced := accept.Coding(listHeader(&r.fiber.Request().Header, fiber.HeaderAcceptEncoding), compression.Offered...)
	if size < minCompressed && !forced {
		return accept.Identity
	}
	return coding
}

// writeCompressed writes the body of an answer in a coding. The tag of a record becomes that of the form.
func writeCompressed(r *call, coding string, body []byte) {
	response := r.fiber.Response()
	compression.Encode(coding, body, func(compressed []byte) { response.SetBody(compressed) })
	response.Header.Set(fiber.HeaderContentEncoding, coding)
	if tag := bytes.Trim(response.Header.Peek(fiber.HeaderETag), `"`); len(tag) > 0 {
		setETag(&response.Header, etag.ForCoding(string(tag), coding))
	}
	response.Header.SetBytesV("X-Padding", padding[:1+rand.IntN(maxPadding)]) //nolint:gosec // The generator is seeded by the system, and hides no secret itself.
}

// padding is what the header X-Padding has a part of.
var padding = bytes.Repeat([]byte{'-'}, maxPadding)
