package server

import (
	"bytes"
	"net/http"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"kontor/server/apierr"
	"kontor/server/endpoint"
)

// envelope is the body of every error.
type envelope struct {
	Status    int            `json:"status"`
	Message   string         `json:"message"`
	Code      string         `json:"code"`
	Class     string         `json:"class"`
	Retryable bool           `json:"retryable,omitzero"`
	Details   map[string]any `json:"details,omitzero"`
}

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// answer writes a success. A record's state goes into ETag, and a client that already has it is told so.
func (s *Server) answer(r *call, result endpoint.Result) error {
	response := r.fiber.Response()
	if tagged, ok := result.Body.(endpoint.Tagged); ok {
		if etag := tagged.ETag(); etag != "" {
			setETag(&response.Header, etag)
			reading := r.fiber.Method() == http.MethodGet || r.fiber.Method() == http.MethodHead
			if reading && endpoint.NoneMatch(listHeader(&r.fiber.Request().Header, fiber.HeaderIfNoneMatch), etag) {
				response.SetStatusCode(http.StatusNotModified)
				return nil
			}
		}
	}
	if result.Next != "" {
		response.Header.Set(fiber.HeaderLink, "<"+result.Next+`>; rel="next"`)
	}
	if result.Raw != nil {
		s.writeJSON(r, result.Status, result.Raw)
		return nil
	}
	buffer := buffers.Get().(*bytes.Buffer)
	buffer.Reset()
	if err := json.MarshalWrite(buffer, result.Body, encoding); err != nil {
		return apierr.ServerError.Wrap(err)
	}
	if buffer.Len() > maxAnswer {
		return apierr.AnswerTooLarge
	}
	if buffer.Cap() > keptBuffer { // It goes out as it is, and then it is gone: nothing large stays in a pool.
		s.writeHead(r, result.Status)
		response.SetBodyRaw(buffer.Bytes())
		return nil
	}
	s.writeJSON(r, result.Status, buffer.Bytes())
	buffers.Put(buffer)
	return nil
}

const (
	// maxAnswer is what any answer of JSON may have in bytes. Arrays and lists end long before, at [endpoint.PageBytes];
	// this is for what has no pages.
	maxAnswer = 8 << 20
	// keptBuffer is the largest buffer that is kept for other answers.
	keptBuffer = 128 << 10
)

// encoding is how answers are written. That no member comes twice in an object is a matter of our types, and was checked
// of the JSON of clients when it came in: looking again would cost a twentieth of a list.
var encoding = json.JoinOptions(json.Deterministic(true), jsontext.AllowDuplicateNames(true))

// setETag writes the validator of a record; the empty one is none.
func setETag(header *fasthttp.ResponseHeader, etag string) {
	if etag != "" {
		header.Set(fiber.HeaderETag, `"`+etag+`"`)
	}
}

func (s *Server) writeJSON(r *call, status int, body []byte) {
	s.writeHead(r, status)
	r.fiber.Response().SetBody(body)
}

func (s *Server) writeHead(r *call, status int) {
	response := r.fiber.Response()
	response.SetStatusCode(status)
	response.Header.SetContentType(fiber.MIMEApplicationJSON)
}

// fail is the one place that writes errors. The client gets the code and a text in its language; the log gets the
// cause of what is our fault.
func (s *Server) fail(r *call, err error) {
	if stored, ok := s.replay(err); ok {
		if !stored.Mismatch {
			header := &r.fiber.Response().Header
			header.Set("Idempotency-Replayed", "true")
			setETag(header, stored.ETag)
			s.writeJSON(r, stored.Status, stored.Body)
			return
		}
		err = apierr.IdempotencyMismatch.Wrap(err)
	}
	if s.Translate != nil {
		err = s.Translate(err)
	}
	err = late(err)
	e := apierr.Of(err)
	r.refused = e.Code
	// Without a cause it is no failure of ours: somebody turned away under load, a field that cannot be searched. The line
	// of the request says it, and a flood must not fill the log.
	if e.Status >= http.StatusInternalServerError && hasCause(e) {
		s.Log.Error("request failed", "request_id", r.RequestID, "code", e.Code, "cause", e.Error())
	}
	s.failHeaders(r, e)
	body, err := json.Marshal(s.word(r.Language, e), json.Deterministic(true))
	if err != nil {
		s.Log.Error("error could not be encoded", "request_id", r.RequestID, "code", e.Code, "cause", err)
		body = []byte(`{}`)
	}
	s.writeJSON(r, e.Status, body)
}

// hasCause reports whether a fault has a cause. A bare kind is its own.
func hasCause(e *apierr.Error) bool { return e.Cause != nil && e.Cause.Error() != e.Code }

func (s *Server) replay(err error) (Stored, bool) {
	if s.Stored == nil {
		return Stored{}, false
	}
	return s.Stored(err)
}

// retryUnavailable is what a client of a busy service is told to wait when nothing better is known.
const retryUnavailable = "1"

func (s *Server) failHeaders(r *call, e *apierr.Error) {
	header := &r.fiber.Response().Header
	header.Set(fiber.HeaderCacheControl, "no-store")
	header.Del(fiber.HeaderETag)
	switch {
	case e.Retry > 0:
		header.Set(fiber.HeaderRetryAfter, strconv.Itoa(seconds(e.Retry)))
	case e.Status == http.StatusServiceUnavailable || e.Status == http.StatusTooManyRequests:
		header.Set(fiber.HeaderRetryAfter, retryUnavailable)
	}
	if e.Status == http.StatusUnauthorized {
		challenge := `Bearer realm="kontor"`
		switch {
		case e.Kind == apierr.StaleSession:
			challenge += `, error="insufficient_user_authentication"` // RFC 9470, section 3
			if age, ok := e.Details["max_age"].(int); ok {
				challenge += `, max_age="` + strconv.Itoa(age) + `"`
			}
		case r.row != nil && r.row.Access.TakesBearer() && bearerToken(r.fiber) != "":
			challenge += `, error="invalid_token"` // RFC 6750, section 3.1
		}
		header.Set(fiber.HeaderWWWAuthenticate, challenge)
	}
}

// word makes the envelope of an error in a language.
func (s *Server) word(lang string, e *apierr.Error) envelope {
	body := envelope{
		Status: e.Status, Code: e.Code, Class: "business",
		Message: s.Texts.Text(lang, "error."+e.Code, e.Args),
		Details: e.Details,
	}
	if e.Temporary() {
		body.Class, body.Retryable = "temporary", true
	}
	if !e.Fields.Empty() {
		details := map[string]any{}
		for name, value := range e.Details {
			details[name] = value
		}
		for field, text := range e.Fields.All {
			details[field] = s.Texts.Text(lang, text.Key, text.Args)
		}
		body.Details = details
	}
	return body
}
