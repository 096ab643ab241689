package server

import (
	"context"
	"crypto/sha256"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"kontor/locales"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
)

// call is one request on its way through the pipeline.
type call struct {
	endpoint.Context
	fiber  *fiber.Ctx
	row    *route // nil until found
	params []string
	began  time.Time

	refused string // code of the error that was answered

	deadline deadline
	uploaded int // bytes of the body that count against uploadBudget
}

// serve takes a request through all steps. Whatever happens, the client gets an answer of ours.
func (s *Server) serve(c *fiber.Ctx) error {
	s.handle(c, s.steps)
	return nil
}

// handle takes a request through some of the steps.
func (s *Server) handle(c *fiber.Ctx, steps func(r *call) error) {
	r := &call{fiber: c, began: time.Now()}
	r.Caller = &access.Caller{}
	s.begin(r)
	defer r.deadline.end()
	defer s.finish(r)
	defer s.leaveBody(r)
	defer s.release(r)
	defer func() {
		if cause := recover(); cause != nil {
			s.Log.Error("panic in a handler", "request_id", r.RequestID, "cause", cause, "stack", string(debug.Stack()))
			s.fail(r, apierr.ServerError)
		}
	}()
	s.identify(r)
	if err := steps(r); err != nil {
		s.fail(r, err)
	}
}

// identify gives the request its id, its language, its client's address and the headers that every answer has.
func (s *Server) identify(r *call) {
	header := &r.fiber.Request().Header
	r.RequestID = requestID(header.Peek(fiber.HeaderXRequestID))
	r.Language = locales.Match(listHeader(header, fiber.HeaderAcceptLanguage))
	r.Address = s.clientAddress(r.fiber.Context())
	r.DeviceID = string(header.Peek("X-Device-ID"))
	r.IfMatch = listHeader(header, fiber.HeaderIfMatch)
	r.Context.Now = s.Options.Now()

	answer := &r.fiber.Response().Header
	answer.Set(fiber.HeaderXRequestID, r.RequestID)
	answer.Set(fiber.HeaderContentLanguage, r.Language)
	answer.Set(fiber.HeaderXContentTypeOptions, "nosniff")
	answer.Set(fiber.HeaderReferrerPolicy, "no-referrer")
	if s.overTLS(r.fiber.Context()) {
		answer.Set(fiber.HeaderStrictTransportSecurity, strictTransport)
	}
}

// steps is the order of checks. Each may end the request with an error.
func (s *Server) steps(r *call) error {
	if answered, err := s.enter(r); answered || err != nil {
		return err
	}
	// What a public POST answers, such as tokens, is for nobody else either (RFC 6749, section 5.1).
	if !r.row.Access.IsPublic() || r.row.Method == http.MethodPost {
		r.fiber.Response().Header.Set(fiber.HeaderCacheControl, "no-store")
	}
	if r.row.Access.IsPublic() {
		r.DeviceToken = string(r.fiber.Request().Header.Peek("X-Device-Token"))
	}
	if err := s.readBody(r); err != nil {
		return err
	}
	if err := acceptsMedia(r); err != nil {
		return err
	}
	s.arrived(r)
	return s.run(r)
}

// enter is the order of checks up to the body: what can be told by the head of a request.
func (s *Server) enter(r *call) (answered bool, err error) {
	header := &r.fiber.Request().Header
	if ambiguous(header) {
		r.fiber.Context().SetConnectionClose()
		return false, apierr.MalformedRequest
	}
	if encoding := listHeader(header, fiber.HeaderContentEncoding); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return false, apierr.UnsupportedMediaType
	}
	if s.preflight(r) {
		return true, nil
	}
	s.allowOrigin(r)
	method, path := r.fiber.Method(), r.fiber.Request().URI().PathOriginal()
	var allowed []string
	if r.row, r.params, allowed = s.routes.match(method, path, make([]string, 0, 4)); r.row == nil {
		err := s.noRow(r, method, path, allowed)
		return err == nil, err
	}
	if s.draining.Load() && s.refuseDraining(r) {
		return true, nil
	}
	return false, s.admit(r)
}

// noRow answers for an address or a method that the table does not have.
func (s *Server) noRow(r *call, method string, path []byte, allowed []string) error {
	if allowed != nil {
		r.fiber.Response().Header.Set(fiber.HeaderAllow, strings.Join(allowed, ", "))
		return apierr.MethodNotAllowed
	}
	reading := method == http.MethodGet || method == http.MethodHead
	if reading && s.Fallback != nil && s.Fallback(r.fiber, string(path)) {
		return nil
	}
	return apierr.NotFound
}

// run decodes the input, calls the service and writes what it gives.
func (s *Server) run(r *call) error {
	ctx, err := s.beginOnce(r)
	if err != nil {
		return err
	}
	result, err := r.row.Handle.Serve(ctx, &endpoint.Request{Fiber: r.fiber, Params: r.params})
	if err != nil {
		return err
	}
	if result.Sent {
		return nil
	}
	if result.Status == 0 {
		result.Status = r.row.Handle.Status
	}
	return s.answer(r, result)
}

const (
	idempotencyHeader = "Idempotency-Key"
	maxIdempotencyKey = 255
)

// beginOnce binds a creating request with an Idempotency-Key to the answer that is or will be stored for it.
func (s *Server) beginOnce(r *call) (context.Context, error) {
	key := string(r.fiber.Request().Header.Peek(idempotencyHeader))
	if key == "" || r.row.Method != http.MethodPost || r.row.Handle.Status != http.StatusCreated || s.Replays == nil {
		return &r.Context, nil
	}
	if len(key) > maxIdempotencyKey || !printable(key) || repeated(&r.fiber.Request().Header, idempotencyHeader) {
		return nil, apierr.Invalid(idempotencyHeader, "invalid.header")
	}
	principal := r.Caller.UserID
	if r.Caller.KeyID != "" {
		principal = r.Caller.KeyID
	}
	return s.Replays.Begin(&r.Context, Claim{
		Key: key, Caller: principal,
		Endpoint: r.row.Method + " " + string(r.fiber.Request().URI().PathOriginal()),
		BodyHash: sha256.Sum256(r.fiber.Request().Body()),
	})
}

// acceptsMedia refuses a body of another type than the handler reads. Without a body there is nothing to refuse.
func acceptsMedia(r *call) error {
	handler := r.row.Handle
	if !handler.ReadsBody() || len(r.fiber.Request().Body()) == 0 {
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

// finish counts and logs the request. The log names the row, never the path as called, and nobody's data.
func (s *Server) finish(r *call) {
	took := time.Since(r.began)
	status := r.fiber.Response().StatusCode()
	s.metrics.count(r.row, status, took)
	s.observe(r, status)
	name := "-"
	if r.row != nil {
		name = r.row.key
	}
	s.logRequest(r, name, status, took)
}
