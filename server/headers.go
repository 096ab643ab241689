package server

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/utils"
	"github.com/google/uuid"
	"github.com/valyala/fasthttp"

	"kontor/locales"
	"kontor/server/apierr"
	"kontor/server/endpoint"
)

// strictTransport keeps browsers from plain HTTP for a year. It does not cover subdomains, which others may own.
const strictTransport = "max-age=31536000"

// identify sets the id, the language and the client's address of a request, and the headers of every answer. It also closes the
// connection if the client wants that.
func (s *Server) identify(r *call) {
	header := &r.fiber.Request().Header
	r.initials = initialsOf(header.RawHeaders())
	if r.wantsClose() {
		r.fiber.Context().SetConnectionClose()
	}
	r.RequestID, r.AuditID = requestIDs(header.PeekCanonical(nameRequestID), r.began)
	languages := r.list(fiber.HeaderAcceptLanguage)
	r.Language, r.AsksLanguage = locales.Match(languages), languages != "" && languages[0] != '*'
	r.Address = s.clientAddress(r.fiber.Context())
	r.IfMatch = r.list(fiber.HeaderIfMatch)
	r.Cookie = string(header.PeekCanonical(nameCookie))
	r.Now, r.DecisionFor = s.Options.Now(), s.DecisionFor

	answer := &r.fiber.Response().Header
	answer.SetCanonical(nameRequestID, utils.UnsafeBytes(r.RequestID))
	answer.SetCanonical(nameContentLanguage, utils.UnsafeBytes(r.Language))
	answer.SetCanonical(nameTypeOptions, valueNoSniff)
	answer.SetCanonical(nameReferrerPolicy, valueNoReferrer)
	if s.overTLS(r.fiber.Context()) {
		answer.Set(fiber.HeaderStrictTransportSecurity, strictTransport)
	}
}

// requestIDs returns the id of a request, and its id in the audit trail.
func requestIDs(sent []byte, now time.Time) (id, auditID string) {
	if id = requestID(sent, now); id != string(sent) {
		return id, id
	}
	return id, auditRequestID(id, now)
}

// requestID returns the client's request id if it is short and of harmless characters, otherwise a new one.
func requestID(sent []byte, now time.Time) string {
	const maxLength = 128
	if len(sent) == 0 || len(sent) > maxLength {
		return newRequestID(now)
	}
	for _, b := range sent {
		letter := b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
		if !letter && (b < '0' || b > '9') && !strings.ContainsRune("-_.:", rune(b)) {
			return newRequestID(now)
		}
	}
	return string(sent)
}

// auditRequestID returns the id of a request for the audit trail, which is kept for ever. An id of the client that is no random
// number may be a name or a telephone number; the trail gets a new one then.
func auditRequestID(id string, now time.Time) string {
	const least, most = 16, 64 // a telephone number has at most 15 digits
	digits := 0
	for _, b := range id {
		switch {
		case b >= '0' && b <= '9' || b >= 'a' && b <= 'f' || b >= 'A' && b <= 'F':
			digits++
		case b != '-':
			return newRequestID(now)
		}
	}
	if digits < least || len(id) > most {
		return newRequestID(now)
	}
	return id
}

// newRequestID returns a UUID of version 7. It is unique and no secret: the client receives it.
func newRequestID(now time.Time) string {
	var id uuid.UUID
	binary.BigEndian.PutUint64(id[:8], uint64(now.UnixMilli())<<16|0x7000|rand.Uint64()&0x0fff) //nolint:gosec // The generator is seeded by the system.
	binary.BigEndian.PutUint64(id[8:], 1<<63|rand.Uint64()&(1<<62-1))                           //nolint:gosec // likewise
	return id.String()
}

// initials are the first letters of the names of a request's headers, one bit for each. Most of the headers that are asked for are not
// sent, and their letters tell so without a comparison of all names.
type initials uint32

// initialsOf returns the initials of the lines of a head without its first line.
func initialsOf(raw []byte) (found initials) {
	for len(raw) > 0 {
		found |= 1 << (raw[0] & 31) // the same for both cases
		end := bytes.IndexByte(raw, '\n')
		if end < 0 {
			break
		}
		raw = raw[end+1:]
	}
	return found
}

// may reports whether a header with the name may have been sent.
func (i initials) may(name string) bool { return i&(1<<(name[0]&31)) != 0 }

// list returns the value of a header of the request that is a list, see [listHeader].
func (r *call) list(name string) string {
	if !r.initials.may(name) {
		return ""
	}
	return listHeader(&r.fiber.Request().Header, name)
}

// listHeader returns the value of a header that is a list. Several lines of it are one list (RFC 9110, section 5.3).
func listHeader(header *fasthttp.RequestHeader, name string) string {
	lines := header.PeekAll(name)
	if len(lines) == 1 {
		return string(lines[0])
	}
	return strings.TrimSpace(string(bytes.Join(lines, []byte(", "))))
}

// repeated reports whether a header has more than one line.
func repeated(header *fasthttp.RequestHeader, name string) bool { return len(header.PeekAll(name)) > 1 }

// checkSingle rejects a second line of a header that has one value: a proxy may have used the other line (RFC 9110,
// section 5.3; RFC 6750, section 3.1).
func checkSingle(header *fasthttp.RequestHeader, name string) error {
	if repeated(header, name) {
		return apierr.Invalid(name, "invalid.header_twice")
	}
	return nil
}

// wantsClose reports whether the client wants the connection closed. The engine recognizes the option only when it is the
// only one and in lower case; clients may write it otherwise (RFC 9110, section 7.6.1).
func (r *call) wantsClose() bool {
	if r.fiber.Request().Header.ConnectionClose() {
		return true
	}
	for option := range strings.SplitSeq(r.list(fasthttp.HeaderConnection), ",") {
		if strings.EqualFold(strings.TrimSpace(option), "close") {
			return true
		}
	}
	return false
}

// countLines counts the lines of a header of which the engine keeps only the last, or none.
func countLines(raw []byte, name string) int {
	count := 0
	for len(raw) > 0 {
		end := bytes.IndexByte(raw, '\n')
		if end < 0 {
			end = len(raw) - 1
		}
		if len(raw) > len(name) && raw[len(name)] == ':' && strings.EqualFold(string(raw[:len(name)]), name) {
			count++
		}
		raw = raw[end+1:]
	}
	return count
}

// visibleASCII reports whether a text is not empty and consists of visible ASCII characters.
func visibleASCII(text string) bool {
	for i := range len(text) {
		if text[i] < 0x21 || text[i] > 0x7e {
			return false
		}
	}
	return text != ""
}

// Names of headers that every request has or may have, as the engine stores them: it need not convert these again.
var (
	nameAcceptEncoding  = canonical(fiber.HeaderAcceptEncoding)
	nameAuthorization   = canonical(fiber.HeaderAuthorization)
	nameAPIKey          = canonical(apiKeyHeader)
	nameCacheControl    = canonical(fiber.HeaderCacheControl)
	nameContentLanguage = canonical(fiber.HeaderContentLanguage)
	nameCookie          = canonical(fiber.HeaderCookie)
	nameETag            = canonical(fiber.HeaderETag)
	nameOrigin          = canonical(fiber.HeaderOrigin)
	nameReferrerPolicy  = canonical(fiber.HeaderReferrerPolicy)
	nameRequestID       = canonical(fiber.HeaderXRequestID)
	nameTypeOptions     = canonical(fiber.HeaderXContentTypeOptions)
	valueNoReferrer     = []byte("no-referrer")
	valueNoSniff        = []byte("nosniff")
	valueNoStore        = []byte("no-store")
	valueJSON           = []byte(fiber.MIMEApplicationJSON)
)

func canonical(name string) []byte { return fasthttp.AppendNormalizedHeaderKey(nil, name) }

const (
	corsMethods = "GET, HEAD, POST, PUT, PATCH, DELETE"
	corsHeaders = "Authorization, Content-Type, Accept-Language, X-API-Key, X-Device-ID, X-Device-Token, X-Request-ID, Idempotency-Key, " +
		"If-Match, If-None-Match, Last-Event-ID"
	corsExposed = "ETag, Link, Content-Language, X-Request-ID, Retry-After, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, " +
		"Idempotency-Replayed, " + endpoint.IgnoredHeader
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
