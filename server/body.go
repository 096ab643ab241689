package server

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"kontor/server/apierr"
	"kontor/server/endpoint"
)

const (
	// firstRead is how much of a body of known length the engine has read before the pipeline begins.
	firstRead = 8 << 10

	// firstBody is the first capacity for a longer body. It doubles as bytes arrive.
	firstBody = 64 << 10

	// freeBody is the size up to which a body does not count against uploadBudget, the memory for all larger ones. A quarter of it is
	// for staff, and no caller gets more than what stays free for others.
	freeBody     = 1 << 20
	uploadBudget = 512 << 20
)

// readBody reads the body of an authorized request, if its handler reads one. Memory grows with the bytes that arrive, not with
// the declared length. It returns apierr.PayloadTooLarge, and apierr.Unavailable when too much is being uploaded at once.
func (s *Server) readBody(r *call) error {
	request := r.fiber.Request()
	if r.row.Handle.Streams {
		return s.streamBody(r)
	}
	if !request.IsBodyStream() {
		return nil
	}
	length := request.Header.ContentLength()
	reads := r.row.Handle.ReadsBody()
	if reads && length > r.row.BodyLimit() {
		return tooLarge(r.row.BodyLimit())
	}
	if length >= 0 && length <= firstRead { // the engine has read all of it
		return request.CloseBodyStream()
	}
	if !reads {
		return nil // discardUnreadBody ends the connection
	}
	if err := r.fiber.Context().Conn().SetReadDeadline(time.Now().Add(r.row.bodyTime())); err != nil {
		return apierr.MalformedRequest.Wrap(err)
	}
	body, err := s.receive(r, request.BodyStream(), length, r.row.BodyLimit())
	if err != nil {
		return err
	}
	if err := endBody(request, len(body)); err != nil {
		return err
	}
	request.SetBodyRaw(body)
	return nil
}

// bodyTime returns how long the body of a request may take to arrive once the caller is authorized.
func (row *route) bodyTime() time.Duration {
	if row.BodyLimit() > endpoint.DefaultMaxBody {
		return uploadTimeout
	}
	return readTimeout
}

func tooLarge(limit int) error { return apierr.PayloadTooLarge.With(apierr.Args{"Max": limit}) }

// receive reads a stream to its end, at most limit bytes. declared is negative when the length is unknown.
func (s *Server) receive(r *call, stream io.Reader, declared, limit int) ([]byte, error) {
	body := make([]byte, 0, firstBody)
	for {
		if len(body) == cap(body) {
			if len(body) > limit {
				return nil, tooLarge(limit)
			}
			body = slices.Grow(body, growth(len(body), declared, limit))
			if err := s.reserveBody(r, cap(body)-freeBody); err != nil {
				return nil, err
			}
		}
		n, err := stream.Read(body[len(body):cap(body)])
		if body = body[:len(body)+n]; len(body) > limit {
			return nil, tooLarge(limit)
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			return body, nil
		default:
			return nil, cutOff(err)
		}
	}
}

// cutOff returns the error of a body that did not arrive.
func cutOff(err error) error {
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return apierr.RequestTimeout.Wrap(err)
	}
	return apierr.MalformedRequest.Wrap(err)
}

// endBody ends a body that has arrived, so that the connection can carry further requests.
func endBody(request *fasthttp.Request, received int) error {
	if declared := request.Header.ContentLength(); declared >= 0 && received != declared {
		return apierr.MalformedRequest.Wrap(io.ErrUnexpectedEOF)
	}
	if err := request.CloseBodyStream(); err != nil {
		return apierr.MalformedRequest.Wrap(err)
	}
	return nil
}

// growth returns by how many bytes the capacity for a full body grows: to the declared length once a quarter of it has
// arrived, otherwise to the double. One byte more shows the end of the stream.
func growth(full, declared, limit int) int {
	if declared >= full && full >= declared/4 {
		return min(declared, limit) + 1 - full
	}
	return min(full, limit+1-full)
}

// reserveBody counts the memory of a request's body beyond the free size. [Server.releaseBody] ends the count.
func (s *Server) reserveBody(r *call, taken int) error {
	if taken <= r.uploaded {
		return nil
	}
	if r.uploaded == 0 {
		r.share = s.uploads.Of(r.principal(), r.caller.Staff())
	}
	if !r.share.Grow(int64(taken - r.uploaded)) {
		return apierr.Unavailable.Wrap(fmt.Errorf("too many bytes are being uploaded for another %d", taken-r.uploaded))
	}
	r.uploaded = taken
	return nil
}

func (s *Server) releaseBody(r *call) { r.share.Release() }

// discardUnreadBody ends the connection of a request whose body was not read, since the bytes that follow are no request. It
// reads some of the rest first: a client that is still sending would see a reset instead of the answer.
func (s *Server) discardUnreadBody(r *call) {
	request, connection := r.fiber.Request(), r.fiber.Context()
	if !request.IsBodyStream() || connection.Hijacked() {
		return
	}
	if length := request.Header.ContentLength(); length < 0 || length > firstRead {
		connection.SetConnectionClose()
		discard(connection.Conn(), request.BodyStream())
	}
}

// Bounds of what is read of an unwanted body.
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

// headerReceived bounds the time for the beginning of a body; [Server.readBody] bounds that for the rest. When a body is too
// long for its row, headerReceived makes the engine call [Server.expect], as for clients that send Expect: the engine would
// wait for the beginning of the body otherwise. The lengths of short bodies are left to readBody.
func (s *Server) headerReceived(header *fasthttp.RequestHeader) fasthttp.RequestConfig {
	if header.ContentLength() > firstRead && header.ContentLength() > s.bodyLimit(header) {
		header.Set(fiber.HeaderExpect, "100-continue")
	}
	const lengthNone = -2 // as the engine reports it
	if header.ContentLength() == lengthNone || header.ContentLength() == 0 {
		return fasthttp.RequestConfig{}
	}
	return fasthttp.RequestConfig{ReadTimeout: readTimeout}
}

// bodyLimit returns the maximum length of the body of a request, by its row.
func (s *Server) bodyLimit(header *fasthttp.RequestHeader) int {
	row, _, _ := s.routes.match(string(header.Method()), pathOf(header), nil)
	return row.bodyLimit()
}

// bodyLimit returns the maximum length of a body; row may be nil, for an address without a row. A row that reads no body has no limit:
// [Server.discardUnreadBody] ends the connection.
func (row *route) bodyLimit() int {
	switch {
	case row == nil:
		return endpoint.DefaultMaxBody
	case !row.Handle.ReadsBody():
		return math.MaxInt
	}
	return row.BodyLimit()
}

// pathOf returns the path of a request as it was sent.
func pathOf(header *fasthttp.RequestHeader) []byte {
	path, _, _ := bytes.Cut(header.RequestURI(), []byte{'?'})
	return path
}

// expect rejects a body that is too long before the client sends it, and asks other clients to send theirs (RFC 9110, section
// 10.1.1). It keeps the route for [Server.findRoute]. The checks before the body come first: errors of authorization take
// precedence over 413.
func (s *Server) expect(ctx *fasthttp.RequestCtx) int {
	s.extendWriting(ctx)
	hideUnknownMethod(&ctx.Request.Header)
	row, params, _ := s.lookUp(ctx, string(ctx.Method()), pathOf(&ctx.Request.Header), nil)
	if row != nil {
		ctx.SetUserValue(foundKey{}, found{row, params})
	}
	limit := row.bodyLimit()
	if ctx.Request.Header.ContentLength() <= limit {
		return fasthttp.StatusContinue
	}
	ctx.Response.Reset()
	ctx.SetConnectionClose()
	c := s.app.AcquireCtx(ctx)
	defer s.app.ReleaseCtx(c)
	s.handle(c, func(r *call) error {
		if err := s.run(r, checksBeforeBody[:]); err != nil {
			return err
		}
		return tooLarge(limit)
	})
	discard(ctx.Conn(), ctx.Conn())
	return ctx.Response.StatusCode()
}

// The pace of a streamed body. A sender may pause, as telephones do between two cells, and must send minRate bytes a second in the
// long run: a body of 10 MiB has eleven minutes.
const (
	streamIdle  = 15 * time.Second // between two reads
	streamGrace = 30 * time.Second // in addition to the time at minRate
	minRate     = 16 << 10         // bytes a second
)

// streamBody passes the body of an authorized request to its handler as a stream. It returns apierr.PayloadTooLarge for a declared
// length beyond the limit.
func (s *Server) streamBody(r *call) error {
	request := r.fiber.Request()
	if !request.IsBodyStream() {
		r.request.Body = bytes.NewReader(request.Body())
		return nil
	}
	length, limit := request.Header.ContentLength(), r.row.BodyLimit()
	if length > limit {
		return tooLarge(limit)
	}
	r.request.Body = &bodyStream{request: request, connection: r.fiber.Context().Conn(), limit: limit, began: time.Now()}
	return nil
}

// bodyStream reads a body with a deadline for each read.
type bodyStream struct {
	request    *fasthttp.Request
	connection net.Conn
	limit      int
	began      time.Time
	received   int
	end        error // what every further read returns
}

// Read returns the next bytes. Its errors are those of apierr, and io.EOF at the end of a complete body.
func (b *bodyStream) Read(p []byte) (int, error) {
	if b.end != nil {
		return 0, b.end
	}
	if err := b.connection.SetReadDeadline(b.deadline(time.Now())); err != nil {
		b.end = apierr.MalformedRequest.Wrap(err)
		return 0, b.end
	}
	n, err := b.request.BodyStream().Read(p)
	b.received += n
	switch {
	case b.received > b.limit:
		n, b.end = 0, tooLarge(b.limit)
	case err == nil:
	case errors.Is(err, io.EOF):
		b.end = cmp.Or(endBody(b.request, b.received), io.EOF)
	default:
		b.end = cutOff(err)
	}
	if n > 0 {
		return n, nil
	}
	return 0, b.end
}

// deadline returns until when the next bytes must arrive.
func (b *bodyStream) deadline(now time.Time) time.Time {
	idle := now.Add(streamIdle)
	if all := b.began.Add(streamGrace + time.Duration(b.received)*time.Second/minRate); all.Before(idle) {
		return all
	}
	return idle
}

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
	if !slices.ContainsFunc(handler.Media, func(media string) bool { return strings.EqualFold(strings.TrimSpace(sent), media) }) {
		return apierr.UnsupportedMediaType
	}
	return nil
}
