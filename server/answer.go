package server

import (
	"bytes"
	"cmp"
	"net/http"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"kontor/server/accept"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/etag"
)

const (
	// maxAnswer bounds the JSON of any answer, in bytes. Arrays and lists end long before, at [endpoint.PageBytes].
	maxAnswer = 8 << 20
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
	if length > maxAnswer {
		return apierr.AnswerTooLarge
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
	if buffer.Len() > maxAnswer {
		return apierr.AnswerTooLarge
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
