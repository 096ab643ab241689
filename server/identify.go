package server

import (
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/utils"
	"github.com/google/uuid"

	"kontor/locales"
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
	r.Language = locales.Match(r.list(fiber.HeaderAcceptLanguage))
	r.Address = s.clientAddress(r.fiber.Context())
	r.IfMatch = r.list(fiber.HeaderIfMatch)
	r.Cookie = string(header.PeekCanonical(nameCookie))
	r.Now = s.Options.Now()

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
