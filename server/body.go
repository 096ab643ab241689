package server

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"kontor/server/apierr"
	"kontor/server/endpoint"
)

const (
	// firstRead is how much of a body of known length the engine has read before the pipeline begins.
	firstRead = 8 << 10

	// chunkBytes is the first room for a longer body. It doubles as bytes arrive.
	chunkBytes = 64 << 10

	// freeBody is what a body may take without being counted against uploadBudget, the memory for all larger ones.
	freeBody     = 1 << 20
	uploadBudget = 512 << 20
)

// headerReceived bounds the time for a body before a byte of it is read. For one that declares too much it has the engine
// ask [Server.expect] first, as for a client that asks by itself (RFC 9110, section 10.1.1): the engine would wait for
// the beginning of the body.
func (s *Server) headerReceived(header *fasthttp.RequestHeader) fasthttp.RequestConfig {
	limit := s.bodyLimit(header)
	if header.ContentLength() > limit {
		header.Set(fiber.HeaderExpect, "100-continue")
	}
	if limit > endpoint.DefaultMaxBody {
		return fasthttp.RequestConfig{ReadTimeout: uploadTimeout}
	}
	return fasthttp.RequestConfig{ReadTimeout: readTimeout}
}

func (s *Server) bodyLimit(header *fasthttp.RequestHeader) int {
	if row := s.routes.peek(header.Method(), header.RequestURI()); row != nil {
		return row.BodyLimit()
	}
	return endpoint.DefaultMaxBody
}

// expect refuses a body that declares too much and tells other clients to send theirs. Who may not come in at all hears
// that instead: the order of checks is the same for every body.
func (s *Server) expect(ctx *fasthttp.RequestCtx) int {
	limit := s.bodyLimit(&ctx.Request.Header)
	if ctx.Request.Header.ContentLength() <= limit {
		return fasthttp.StatusContinue
	}
	ctx.Response.Reset()
	ctx.SetConnectionClose()
	c := s.app.AcquireCtx(ctx)
	defer s.app.ReleaseCtx(c)
	s.handle(c, func(r *call) error {
		if answered, err := s.enter(r); answered || err != nil {
			return err
		}
		return tooLarge(limit)
	})
	discard(ctx.Conn(), ctx.Conn())
	return ctx.Response.StatusCode()
}

// readBody takes in the body of a request that was let in. Memory grows with what arrives, never with what a client
// declares. It returns apierr.PayloadTooLarge, and apierr.Unavailable when too much is being uploaded at once.
func (s *Server) readBody(r *call) error {
	request := r.fiber.Request()
	if !request.IsBodyStream() {
		return nil
	}
	length := request.Header.ContentLength()
	if length >= 0 && length <= firstRead { // all of it is there
		return request.CloseBodyStream()
	}
	body, err := s.receive(r, request.BodyStream(), length, r.row.BodyLimit())
	if err != nil {
		return err
	}
	if length >= 0 && len(body) != length {
		return apierr.MalformedRequest.Wrap(io.ErrUnexpectedEOF)
	}
	if err := request.CloseBodyStream(); err != nil {
		return apierr.MalformedRequest.Wrap(err)
	}
	request.SetBodyRaw(body)
	return nil
}

func tooLarge(limit int) error { return apierr.PayloadTooLarge.With(apierr.Args{"Max": limit}) }

// receive reads a stream to its end, at most limit bytes. The declared length is negative when it is unknown.
func (s *Server) receive(r *call, stream io.Reader, declared, limit int) ([]byte, error) {
	body := make([]byte, 0, chunkBytes)
	for {
		if len(body) == cap(body) {
			if len(body) > limit {
				return nil, tooLarge(limit)
			}
			body = slices.Grow(body, moreRoom(len(body), declared, limit))
			if err := s.reserve(r, cap(body)-freeBody); err != nil {
				return nil, err
			}
		}
		n, err := stream.Read(body[len(body):cap(body)])
		if body = body[:len(body)+n]; len(body) > limit {
			return nil, tooLarge(limit)
		}
		var timeout net.Error
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			return body, nil
		case errors.As(err, &timeout) && timeout.Timeout():
			return nil, apierr.RequestTimeout.Wrap(err)
		default:
			return nil, apierr.MalformedRequest.Wrap(err)
		}
	}
}

// moreRoom is by how much the room for a body grows when it is full: to the declared length once a quarter of it is
// there, and by as much as is there before. One byte more shows the end of the stream.
func moreRoom(full, declared, limit int) int {
	if declared >= full && full >= declared/4 {
		return min(declared, limit) + 1 - full
	}
	return min(full, limit+1-full)
}

// reserve counts what the body of a request takes beyond what is free. [Server.release] gives it back.
func (s *Server) reserve(r *call, taken int) error {
	if taken <= r.uploaded {
		return nil
	}
	more := int64(taken - r.uploaded)
	if used := s.uploads.Add(more); used > uploadBudget {
		s.uploads.Add(-more)
		return apierr.Unavailable.Wrap(fmt.Errorf("%d bytes are being uploaded", used))
	}
	r.uploaded = taken
	return nil
}

func (s *Server) release(r *call) { s.uploads.Add(-int64(r.uploaded)) }

// leaveBody deals with a body that nobody wanted: the connection ends, since what follows on it is no request, and
// within bounds the rest is read first, since a client that is still sending would see a reset instead of the answer.
func (s *Server) leaveBody(r *call) {
	request, connection := r.fiber.Request(), r.fiber.Context()
	if !request.IsBodyStream() || connection.Hijacked() {
		return
	}
	if length := request.Header.ContentLength(); length < 0 || length > firstRead {
		connection.SetConnectionClose()
		discard(connection.Conn(), request.BodyStream())
	}
}

const (
	discardBytes = 256 << 20
	discardIdle  = 200 * time.Millisecond
	discardTime  = 5 * time.Second
)

func discard(connection net.Conn, stream io.Reader) {
	var sink [16 << 10]byte
	end := time.Now().Add(discardTime)
	for read := 0; read < discardBytes && time.Now().Before(end); {
		if connection.SetReadDeadline(time.Now().Add(discardIdle)) != nil {
			return
		}
		n, err := stream.Read(sink[:])
		if err != nil {
			return
		}
		read += n
	}
}
