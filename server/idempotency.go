package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"kontor/server/apierr"
	"kontor/server/endpoint"
)

// Idempotency keeps the answers to requests with an Idempotency-Key.
type Idempotency interface {
	// Begin returns a context whose transactions store the first answer. Where there is one already, Begin returns an error that
	// [Options.Stored] recognizes.
	Begin(ctx context.Context, claim Claim) (context.Context, error)
}

// Claim identifies a request that must happen once.
type Claim struct {
	Key      string
	Caller   string
	Endpoint string // method and path as called
	BodyHash [32]byte
}

// Stored is the answer to an earlier request with the same claim.
type Stored struct {
	Status   int
	Body     []byte
	ETag     string
	Mismatch bool // the earlier request had another body
}

// Encoded is an answer in the forms in which it is digested and sent. It is the same type as that of the database, which
// calls the responder: neither imports the other, so that it has no name of its own.
type Encoded = struct {
	Status int
	Record []byte // JSON of the record alone
	Sent   []byte // JSON with the users whom the record names
	ETag   string
}

const (
	idempotencyHeader = "Idempotency-Key"
	maxIdempotencyKey = 255
)

// withIdempotency returns the context of the handler. In that of a creating request, transactions encode the answer; with an
// Idempotency-Key, they store it.
func (s *Server) withIdempotency(r *call) (context.Context, error) {
	if r.row.Method != http.MethodPost || r.row.Handle.Status != http.StatusCreated {
		return &r.context, nil
	}
	r.context.responder, r.context.responderKey = &r.responder, s.ResponderKey
	key := string(r.fiber.Request().Header.Peek(idempotencyHeader))
	if key == "" || s.Idempotency == nil {
		return &r.context, nil
	}
	if len(key) > maxIdempotencyKey || !visibleASCII(key) || repeated(&r.fiber.Request().Header, idempotencyHeader) {
		return nil, apierr.Invalid(idempotencyHeader, "invalid.header")
	}
	claim := Claim{
		Key: key, Caller: cmp.Or(r.Caller.KeyID, r.Caller.UserID),
		Endpoint: r.row.Method + " " + string(r.fiber.Request().URI().PathOriginal()),
	}
	switch handler := r.row.Handle; {
	case handler.Streams: // the body has not arrived yet
		claim.BodyHash = sha256.Sum256(headOfBody(&r.fiber.Request().Header))
	case handler.ReadsBody(): // a body that no handler reads is still unread
		claim.BodyHash = sha256.Sum256(r.fiber.Request().Body())
	}
	return s.Idempotency.Begin(&r.context, claim)
}

// headOfBody returns what the headers say about a streamed body: its length, name and digest. The type is missing, because the
// boundary of a form is another one in each attempt.
func headOfBody(header *fasthttp.RequestHeader) []byte {
	var head []byte
	for _, name := range []string{fiber.HeaderContentLength, fiber.HeaderContentDisposition, "Content-Digest", "Repr-Digest"} {
		head = append(append(head, header.Peek(name)...), '\n')
	}
	return head
}

// responder encodes the answer of a call, once for the client, for repetitions and for the digest in the audit trail. The
// context of a creating request has it under [Options.ResponderKey].
type responder struct {
	server *Server
	call   *call
}

// Encode encodes an answer. The status is that of the row, unless an [endpoint.Result] has one of its own.
func (r *responder) Encode(ctx context.Context, body any) (Encoded, error) {
	encoded := Encoded{Status: r.call.row.Handle.Status}
	if result, ok := body.(endpoint.Result); ok {
		body, encoded.Status = result.Body, cmp.Or(result.Status, encoded.Status)
	}
	if tagged, ok := body.(endpoint.Tagged); ok {
		encoded.ETag = tagged.ETag()
	}
	var err error
	if encoded.Record, err = json.Marshal(body, endpoint.Encoding); err != nil {
		return encoded, err
	}
	encoded.Sent = encoded.Record
	if people := r.server.peopleOf(ctx, body); people != nil {
		encoded.Sent = appendPeople(append(make([]byte, 0, len(encoded.Record)+len(people)+len(peopleMember)+1), encoded.Record...), people)
	}
	return encoded, nil
}

// Answered keeps the answer of the first transaction for the client. It may be called from any goroutine.
func (r *responder) Answered(e *Encoded) { r.call.answered.CompareAndSwap(nil, e) }

// repeat writes the stored answer of an earlier request with the same key.
func (s *Server) repeat(r *call, stored Stored) {
	header := &r.fiber.Response().Header
	header.Set("Idempotency-Replayed", "true")
	setETag(header, stored.ETag)
	s.writeJSON(r, stored.Status, stored.Body)
}

// stored returns the answer of an earlier request that an error carries.
func (s *Server) stored(err error) (Stored, bool) {
	if s.Stored == nil {
		return Stored{}, false
	}
	return s.Stored(err)
}
