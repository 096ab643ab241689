package server

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"math/rand/v2"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"kontor/server/accept"
	"kontor/server/apierr"
	"kontor/server/compression"
	"kontor/server/endpoint"
	"kontor/server/etag"
)

const (
	// maxAnswer bounds the JSON of any answer, in bytes. It exceeds the largest page of a list. Longer arrays are streams.
	maxAnswer = 32 << 20
	// maxPooledBuffer is the largest buffer that is kept for other answers.
	maxPooledBuffer = 128 << 10
)

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// answer writes a success. A record's tag becomes the header ETag; a client that has the same state gets 304.
func (s *Server) answer(r *call, result endpoint.Result) error {
	response := r.fiber.Response()
	if result.Encoded != nil {
		return s.answerEncoded(r, result.Encoded)
	}
	if tagged, ok := result.Body.(endpoint.Tagged); ok && writeTag(r, tagged.ETag()) {
		return nil
	}
	if result.SetCookie != "" {
		response.Header.Add(fiber.HeaderSetCookie, result.SetCookie)
	}
	if result.Location != "" {
		response.SetStatusCode(http.StatusSeeOther)
		response.Header.Set(fiber.HeaderLocation, result.Location)
		response.Header.Set(fiber.HeaderCacheControl, "no-store")
		return nil
	}
	if result.Next != "" {
		response.Header.Set(fiber.HeaderLink, "<"+result.Next+`>; rel="next"`)
	}
	status := cmp.Or(result.Status, r.row.Handle.Status)
	if result.Rest != nil {
		return s.answerArray(r, status, result)
	}
	if result.Raw != nil {
		s.writeJSON(r, status, result.Raw)
		return nil
	}
	if sent := r.answered.Load(); sent != nil {
		s.writeHead(r, sent.Status)
		response.SetBodyRaw(sent.Sent)
		return nil
	}
	return s.encode(r, status, result.Body)
}

// answerEncoded writes a success that was encoded before.
func (s *Server) answerEncoded(r *call, e *endpoint.Encoded) error {
	if writeTag(r, e.Tag) {
		return nil
	}
	length := e.Length()
	if err := s.holdAnswer(r, length); err != nil {
		return err
	}
	s.writeHead(r, r.row.Handle.Status)
	switch coding := s.coding(r, length); {
	case coding != accept.Identity:
		writeCompressed(r, coding, bytes.Join(append(e.Parts, e.JSON), nil))
	case len(e.Parts) == 0:
		r.fiber.Response().SetBodyRaw(e.JSON)
	default:
		for _, part := range e.Parts {
			r.fiber.Response().AppendBody(part)
		}
	}
	return nil
}

// writeTag writes the validator of a record. It reports whether the client has the same state: then the answer is 304.
func writeTag(r *call, tag string) (same bool) {
	header := &r.fiber.Response().Header
	setETag(header, tag)
	if tag == "" || !r.reads() {
		return false
	}
	form, same := etag.NoneMatch(r.list(fiber.HeaderIfNoneMatch), tag)
	if same {
		setETag(header, form)
		r.fiber.Response().SetStatusCode(http.StatusNotModified)
	}
	return same
}

// encode encodes an answer and writes it.
func (s *Server) encode(r *call, status int, body any) error {
	buffer := buffers.Get().(*bytes.Buffer)
	buffer.Reset()
	if err := json.MarshalWrite(buffer, body, endpoint.Encoding); err != nil {
		return apierr.ServerError.Wrap(err)
	}
	if people := s.peopleOf(&r.context, body); people != nil {
		*buffer = *bytes.NewBuffer(appendPeople(buffer.Bytes(), people))
	}
	if err := s.holdAnswer(r, buffer.Len()); err != nil {
		return err
	}
	if coding := s.coding(r, buffer.Len()); coding != accept.Identity {
		s.writeHead(r, status)
		writeCompressed(r, coding, buffer.Bytes())
		if buffer.Cap() <= maxPooledBuffer {
			buffers.Put(buffer)
		}
		return nil
	}
	if buffer.Cap() > maxPooledBuffer { // it is sent without a copy, and does not return to the pool
		s.writeHead(r, status)
		r.fiber.Response().SetBodyRaw(buffer.Bytes())
		return nil
	}
	s.writeJSON(r, status, buffer.Bytes())
	buffers.Put(buffer)
	return nil
}

// setETag writes the validator of a record; an empty one is not written.
func setETag(header *fasthttp.ResponseHeader, etag string) {
	if etag != "" {
		var space [64]byte
		header.SetCanonical(nameETag, append(append(append(space[:0], '"'), etag...), '"'))
	}
}

func (s *Server) writeJSON(r *call, status int, body []byte) {
	s.writeHead(r, status)
	r.fiber.Response().SetBody(body)
}

func (s *Server) writeHead(r *call, status int) {
	response := r.fiber.Response()
	response.SetStatusCode(status)
	response.Header.SetContentTypeBytes(valueJSON)
}

// envelope is the body of every error.
type envelope struct {
	Status    int            `json:"status"`
	Message   string         `json:"message"`
	Code      string         `json:"code"`
	Class     string         `json:"class"`
	Retryable bool           `json:"retryable,omitzero"`
	Details   map[string]any `json:"details,omitzero"`
}

// retryUnavailable is the Retry-After of a busy service when nothing better is known, in seconds.
const retryUnavailable = "1"

// fail writes the answer of a request that ended with an error; no other place writes errors. The client gets the code and a
// text in its language, the log gets the cause of errors of the service. An error may also carry the stored answer of an
// earlier request.
func (s *Server) fail(r *call, err error) {
	if stored, ok := s.stored(err); ok {
		if !stored.Mismatch {
			s.repeat(r, stored)
			return
		}
		err = apierr.IdempotencyMismatch.Wrap(err)
	}
	if s.Translate != nil {
		err = s.Translate(err)
	}
	e := apierr.Of(expired(err))
	r.refused, r.refusal = e.Code, e
	// Errors without a cause are no failures of the service: a request was rejected under load, or a field cannot be searched.
	// The request's own log line is enough, and a flood must not fill the log.
	if e.Status >= http.StatusInternalServerError && hasCause(e) {
		s.Log.Error("request failed", "request_id", r.RequestID, "code", e.Code, "cause", e.Error())
	}
	s.setErrorHeaders(r, e)
	if r.row != nil && r.row.AuthZEN {
		s.failAuthZEN(r, e)
		return
	}
	body, err := json.Marshal(s.envelopeOf(r.Language, e), json.Deterministic(true))
	if err != nil {
		s.Log.Error("error could not be encoded", "request_id", r.RequestID, "code", e.Code, "cause", err)
		body = []byte(`{}`)
	}
	s.writeJSON(r, e.Status, body)
}

// hasCause reports whether an error has a cause. A bare kind is its own cause.
func hasCause(e *apierr.Error) bool { return e.Cause != nil && e.Cause.Error() != e.Code }

func (s *Server) setErrorHeaders(r *call, e *apierr.Error) {
	header := &r.fiber.Response().Header
	header.Set(fiber.HeaderCacheControl, "no-store")
	for _, name := range []string{fiber.HeaderETag, fiber.HeaderContentDisposition, "Repr-Digest"} {
		header.Del(name) // of the content that is not sent
	}
	if e.Status != http.StatusRequestedRangeNotSatisfiable {
		header.Del(fiber.HeaderAcceptRanges)
		header.Del(fiber.HeaderContentRange)
	}
	switch {
	case e.Retry > 0:
		header.Set(fiber.HeaderRetryAfter, strconv.Itoa(wholeSeconds(e.Retry)))
	case e.Status == http.StatusServiceUnavailable || e.Status == http.StatusTooManyRequests:
		header.Set(fiber.HeaderRetryAfter, retryUnavailable)
	}
	if e.Status == http.StatusUnauthorized {
		header.Set(fiber.HeaderWWWAuthenticate, challenge(r, e))
	}
}

// challenge returns the header WWW-Authenticate of a 401.
func challenge(r *call, e *apierr.Error) string {
	const realm = `Bearer realm="kontor"`
	switch {
	case e.Kind == apierr.StaleSession: // RFC 9470, section 3
		text := realm + `, error="insufficient_user_authentication"`
		if age, ok := e.Details["max_age"].(int); ok {
			text += `, max_age="` + strconv.Itoa(age) + `"`
		}
		if levels, ok := e.Details["acr_values"].([]string); ok {
			text += `, acr_values="` + strings.Join(levels, " ") + `"`
		}
		return text
	case r.row != nil && r.row.Access.TakesBearer() && endpoint.BearerToken(r.fiber) != "":
		return realm + `, error="invalid_token"` // RFC 6750, section 3.1
	}
	return realm
}

// envelopeOf returns the body of an error in a language.
func (s *Server) envelopeOf(lang string, e *apierr.Error) envelope {
	text := "error." + e.Code
	if e.Reason != "" {
		text += "." + e.Reason
	}
	body := envelope{
		Status: e.Status, Code: e.Code, Class: "business",
		Message: s.Texts.Text(lang, text, e.Args),
		Details: e.Details,
	}
	if e.Temporary() {
		body.Class, body.Retryable = "temporary", true
	}
	if !e.Fields.Empty() {
		details := maps.Clone(e.Details)
		if details == nil {
			details = map[string]any{}
		}
		for field, text := range e.Fields.All {
			details[field] = s.Texts.Text(lang, text.Key, text.Args)
		}
		body.Details = details
	}
	return body
}

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

// People resolves the users whom answers name.
type People interface {
	// People returns the users with the ids, by id. Unknown ids are missing from the result. It is called once for each
	// answer that names users, with distinct ids that are not empty. UserName must be empty unless the caller of the context
	// is staff. It must not keep ids, and it must read the database with store.QuerierFrom: it may run in a transaction.
	People(ctx context.Context, ids []string) (map[string]endpoint.Person, error)
}

// peopleMember begins the member of answers that holds the users whom they name.
const peopleMember = `"people":`

// peopleOf returns the JSON object of the users whom an answer names, or nil for an answer that names none. Names are an
// addition: when they cannot be read, the answer goes without them, since the change that it reports may be stored already.
func (s *Server) peopleOf(ctx context.Context, body any) []byte {
	if s.People == nil || !endpoint.MayNameUsers(body) || isNil(body) {
		return nil
	}
	var ids []string
	seen := map[string]bool{"": true}
	endpoint.EachUser(body, func(id string) {
		if !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	})
	if len(ids) == 0 {
		return nil
	}
	people, err := s.People.People(ctx, ids)
	if err == nil {
		var object []byte
		if object, err = encodePeople(ids, people); err == nil {
			return object
		}
	}
	s.Log.Warn("an answer goes without the names of its users", "request_id", endpoint.Of(ctx).RequestID, "cause", err)
	return nil
}

// personBytes is the usual length of a user in the member people.
const personBytes = 120

// encodePeople returns the JSON object of the known users, in the order of the ids.
func encodePeople(ids []string, people map[string]endpoint.Person) ([]byte, error) {
	object := append(make([]byte, 0, personBytes*(len(people)+1)), '{')
	for _, id := range ids {
		p, known := people[id]
		if !known {
			continue
		}
		if len(object) > 1 {
			object = append(object, ',')
		}
		var err error
		if object, err = jsontext.AppendQuote(object, id); err != nil {
			return nil, err
		}
		one, err := json.Marshal(p, endpoint.Encoding)
		if err != nil {
			return nil, err
		}
		object = append(append(object, ':'), one...)
	}
	return append(object, '}'), nil
}

// isNil reports whether an answer is a nil pointer, which is written as null and refers to no users.
func isNil(body any) bool {
	value := reflect.ValueOf(body)
	return value.Kind() == reflect.Pointer && value.IsNil()
}

// appendPeople appends the member people to the JSON of an answer, in place if the capacity suffices. It does not change
// text that is no JSON object.
func appendPeople(text, people []byte) []byte {
	if people == nil || len(text) < 2 || text[0] != '{' {
		return text
	}
	text = text[:len(text)-1]
	if len(text) > 1 {
		text = append(text, ',')
	}
	text = append(text, peopleMember...)
	return append(append(text, people...), '}')
}
