package notifications

import (
	"context"
	"errors"
	"net"
	"net/http"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/sse"
)

const (
	streamPath = "/v1/notifications/sse"
	// drainingText is the answer while the server shuts down, in English whatever the language of the request.
	drainingText = "server shutting down"

	maxEventID = 200 // bytes of a Last-Event-ID that are looked up
)

var (
	openFrame  = sse.Event("", "open", []byte(`{"message":"Connection established"}`))
	closeFrame = sse.Event("", "close", []byte(`{"reason":"server_shutdown"}`))
	resetFrame = sse.Event("", "reset", []byte(`{"reason":"unknown_event_id"}`))
)

// streamState is the data of a stream: its caller as of the last check, and the endpoint that opened it.
type streamState struct {
	caller   atomic.Pointer[access.Caller]
	endpoint string
}

// openStream opens an event stream. It returns apierr.TooManyStreams beyond the limit of a user.
func (s *Service) openStream(ctx context.Context, r *endpoint.Request) error {
	request := endpoint.Of(ctx)
	expires, ok := s.Peers.Sessions.Expiry(r.Fiber)
	if !ok {
		return apierr.Unauthorized
	}
	head := sse.Head(&r.Fiber.Response().Header)
	if r.Fiber.Method() == http.MethodHead {
		s.answerHead(r)
		return nil
	}
	opened := &streamState{endpoint: r.Fiber.Method() + " " + streamPath}
	opened.caller.Store(request.Caller)
	stream, err := s.hub.Open(request.Caller.UserID, request.Language, expires.Std(), opened)
	switch {
	case errors.Is(err, sse.ErrDraining):
		r.Fiber.Response().Header.SetContentType(fiber.MIMETextPlainCharsetUTF8)
		return r.Fiber.Status(http.StatusServiceUnavailable).SendString(drainingText)
	case err != nil:
		return apierr.TooManyStreams.Wrap(err)
	}
	if err := s.admit(stream); err != nil {
		return err
	}
	// The session may have ended since the request was checked. From here on its end also ends the stream.
	if err := s.check(stream); err != nil {
		stream.End()
		return err
	}
	// The hub notes notifications that are published from here on; earlier ones are read from the table.
	start, err := s.readStart(ctx, stream, string(r.Fiber.Request().Header.Peek("Last-Event-ID")))
	if err != nil {
		stream.End()
		return apierr.AuthUnavailable.Wrap(err) // the answer of this route while the database cannot be read
	}
	start.first = append(head, start.first...)
	connection := r.Fiber.Context()
	connection.HijackSetNoResponse(true)
	connection.Hijack(func(hijacked net.Conn) { s.run(stream, start, unwrapped(hijacked)) })
	return nil
}

// admit applies the limit of a user over all nodes, and ends a stream beyond it.
func (s *Service) admit(stream *sse.Stream) error {
	err := s.counts.admit(stream)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sse.ErrTooMany):
		s.hub.Refuse(stream)
		return apierr.TooManyStreams.Wrap(err)
	default:
		stream.End()
		return apierr.AuthUnavailable.Wrap(err)
	}
}

// answerHead answers a HEAD request with the headers of a stream.
func (s *Service) answerHead(r *endpoint.Request) {
	header := &r.Fiber.Response().Header
	header.SetContentType("text/event-stream")
	header.Set(fiber.HeaderCacheControl, "no-cache, no-transform")
	header.Set("X-Accel-Buffering", "no")
	r.Fiber.Response().SkipBody = true
}

// unwrapped returns the connection without the buffer of the HTTP engine, which would be kept as long as the stream.
func unwrapped(hijacked net.Conn) net.Conn {
	if wrapped, ok := hijacked.(interface{ UnsafeConn() net.Conn }); ok {
		return wrapped.UnsafeConn()
	}
	return hijacked
}

// writeBuffer bounds what the operating system buffers for a client that does not read.
const writeBuffer = 64 << 10

// run writes the missed notifications to a stream and passes it to the hub. It is the outermost function of a goroutine.
func (s *Service) run(stream *sse.Stream, start streamStart, connection net.Conn) {
	defer func() {
		if cause := recover(); cause != nil {
			s.options.Log.Error("panic while opening a stream", "cause", cause, "stack", string(debug.Stack()))
			stream.End()
			_ = connection.Close() // the stream may not own it yet
		}
	}()
	if tcp, ok := connection.(interface{ SetWriteBuffer(bytes int) error }); ok {
		_ = tcp.SetWriteBuffer(writeBuffer) // the default size works, too
	}
	if !stream.Attach(connection) || !stream.Write(start.first) {
		return
	}
	s.sent.add(start.replayed)
	if err := s.catchUp(stream, start.position); err != nil {
		s.options.Log.Warn("could not replay notifications on a stream", "cause", err)
		stream.End()
	}
}

// mayWrite reports whether all ends of sessions and of rights have reached the streams of this process.
func (s *Service) mayWrite() bool { return s.db.Remembers() && !s.options.TermsDue() }

// checkTime is how long the check of one stream may take.
const checkTime = 2 * time.Second

// mayContinue reports whether the session of a stream is active and its caller may still have it. A session that cannot be
// read counts as ended: the client reconnects and gets the reason.
func (s *Service) mayContinue(stream *sse.Stream) bool { return s.check(stream) == nil }

// check returns why a stream must end: apierr.Unauthorized, apierr.AuthUnavailable or apierr.NoAccess.
func (s *Service) check(stream *sse.Stream) error {
	opened := stream.Data.(*streamState)
	ctx, cancel := context.WithTimeout(context.Background(), checkTime)
	defer cancel()
	caller, err := s.Peers.Sessions.Session(ctx, opened.caller.Load())
	if err != nil {
		return err
	}
	opened.caller.Store(caller)
	if !s.mayOpen(stream) {
		return apierr.NoAccess
	}
	return nil
}

// mayOpen reports whether the policy in force allows the caller of a stream to have it, from memory alone.
func (s *Service) mayOpen(stream *sse.Stream) bool {
	return s.callerOf(stream).MayCall(stream.Data.(*streamState).endpoint)
}

// callerOf returns the caller of a stream as of the last check, with the policy in force.
func (s *Service) callerOf(stream *sse.Stream) *access.Caller {
	return stream.Data.(*streamState).caller.Load().WithPolicy(s.options.Policy.Load())
}

// SessionsChanged ends the streams of a user whose session or right has ended. Call it after the commit of the change and
// before its answer: once it has returned, nothing is written to those streams.
func (s *Service) SessionsChanged(userID string) { s.hub.Revoke(userID, s.mayContinue) }

// policyChanged ends the streams of all callers who lost the right to them.
func (s *Service) policyChanged() { s.hub.Revoke("", s.mayOpen) }

// streamEnded corrects the number of streams that other nodes see. The hub calls it.
func (s *Service) streamEnded(user string) { s.counts.ended(user) }

// recordSent records which notifications were written to a stream.
func (s *Service) recordSent(positions []sse.Position) {
	ids := make([]string, len(positions))
	for i, p := range positions {
		ids[i] = p.ID
	}
	s.sent.add(ids)
}
