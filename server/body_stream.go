package server

import (
	"bytes"
	"errors"
	"io"
	"net"
	"time"

	"github.com/valyala/fasthttp"

	"kontor/server/apierr"
)

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
	r.request.Body = &bodyStream{request: request, connection: r.fiber.Context().Conn(), declared: length, limit: limit, began: time.Now()}
	return nil
}

// bodyStream reads a body with a deadline for each read.
type bodyStream struct {
	request    *fasthttp.Request
	connection net.Conn
	declared   int // negative: unknown
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
	var timeout net.Error
	switch {
	case b.received > b.limit:
		n, b.end = 0, tooLarge(b.limit)
	case err == nil:
	case errors.Is(err, io.EOF):
		b.end = b.complete()
	case errors.As(err, &timeout) && timeout.Timeout():
		b.end = apierr.RequestTimeout.Wrap(err)
	default:
		b.end = apierr.MalformedRequest.Wrap(err)
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

// complete ends a body that has arrived, so that the connection can carry further requests.
func (b *bodyStream) complete() error {
	if b.declared >= 0 && b.received != b.declared {
		return apierr.MalformedRequest.Wrap(io.ErrUnexpectedEOF)
	}
	if err := b.request.CloseBodyStream(); err != nil {
		return apierr.MalformedRequest.Wrap(err)
	}
	return io.EOF
}
