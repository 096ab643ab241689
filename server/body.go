package server

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"kontor/server/apierr"
	"kontor/server/endpoint"
)

const (
	// firstRead is how much of a body of known length the engine has read before the pipeline begins.
	firstRead = 8 << 10

	// firstBody is the first capacity for a longer body. It doubles as bytes arrive.
	firstBody = 64 << 10

	// freeBody is the size up to which a body does not count against uploadBudget, the memory for all larger ones.
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
	if length >= 0 && len(body) != length {
		return apierr.MalformedRequest.Wrap(io.ErrUnexpectedEOF)
	}
	if err := request.CloseBodyStream(); err != nil {
		return apierr.MalformedRequest.Wrap(err)
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
	more := int64(taken - r.uploaded)
	if used := s.uploads.Add(more); used > uploadBudget {
		s.uploads.Add(-more)
		return apierr.Unavailable.Wrap(fmt.Errorf("%d bytes are being uploaded", used))
	}
	r.uploaded = taken
	return nil
}

func (s *Server) releaseBody(r *call) { s.uploads.Add(-int64(r.uploaded)) }

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
