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
	// drainingText is the answer while streams are being closed, in English whatever the language of the request.
	drainingText = "server shutting down"

	maxEventID = 200 // bytes of a Last-Event-ID that is looked at
)

var (
	openFrame  = sse.Event("", "open", []byte(`{"message":"Connection established"}`))
	closeFrame = sse.Event("", "close", []byte(`{"reason":"server_shutdown"}`))
	resetFrame = sse.Event("", "reset", []byte(`{"reason":"unknown_event_id"}`))
)

// watched is what is known of a stream beside its user: who opened it, as they stood at the last check, and by which
// endpoint.
type watched struct {
	caller   atomic.Pointer[access.Caller]
	endpoint string
}

// openStream opens an event stream. It returns apierr.TooManyStreams beyond what a user may hold.
func (s *Service) openStream(ctx context.Context, r *endpoint.Request) error {
	request := endpoint.Of(ctx)
	expires, ok := s.sessions.Expiry(r.Fiber)
	if !ok {
		return apierr.Unauthorized
	}
	head := sse.Head(&r.Fiber.Response().Header)
	if r.Fiber.Method() == http.MethodHead {
		s.answerHead(r)
		return nil
	}
	opened := &watched{endpoint: r.Fiber.Method() + " " + streamPath}
	opened.caller.Store(request.Caller)
	stream, err := s.hub.Open(request.Caller.UserID, request.Language, expires.Std(), opened)
	switch {
	case errors.Is(err, sse.ErrDraining):
		r.Fiber.Response().Header.SetContentType(fiber.MIMETextPlainCharsetUTF8)
		return r.Fiber.Status(http.StatusServiceUnavailable).SendString(drainingText)
	case err != nil:
		return apierr.TooManyStreams.Wrap(err)
	}
	// The session may have ended between the check of the request and now; from here on its end also ends the stream.
	if err := s.check(stream); err != nil {
		stream.End()
		return err
	}
	// What is published from here on is noted by the hub; what was before is read from the table.
	begun, err := s.begin(ctx, stream, r.Fiber.Get("Last-Event-ID"))
	if err != nil {
		stream.End()
		return apierr.AuthUnavailable.Wrap(err) // the one answer of this route while it cannot read
	}
	begun.first = append(head, begun.first...)
	connection := r.Fiber.Context()
	connection.HijackSetNoResponse(true)
	connection.Hijack(func(hijacked net.Conn) { s.run(stream, begun, unwrapped(hijacked)) })
	return nil
}

// answerHead answers HEAD: the headers of a stream and an end.
func (s *Service) answerHead(r *endpoint.Request) {
	header := &r.Fiber.Response().Header
	header.SetContentType("text/event-stream")
	header.Set(fiber.HeaderCacheControl, "no-cache, no-transform")
	header.Set("X-Accel-Buffering", "no")
	r.Fiber.Response().SkipBody = true
}

// unwrapped takes the connection out of the engine's wrapping, whose buffer would be kept as long as the stream.
func unwrapped(hijacked net.Conn) net.Conn {
	if wrapped, ok := hijacked.(interface{ UnsafeConn() net.Conn }); ok {
		return wrapped.UnsafeConn()
	}
	return hijacked
}

// writeBuffer bounds what the system keeps for a client that does not read.
const writeBuffer = 64 << 10

// run brings a stream up to date and hands it over to the hub. It is a goroutine's outermost function.
func (s *Service) run(stream *sse.Stream, begun beginning, connection net.Conn) {
	defer func() {
		if cause := recover(); cause != nil {
			s.options.Log.Error("panic while opening a stream", "cause", cause, "stack", string(debug.Stack()))
			stream.End()
			_ = connection.Close() // it may not be the stream's yet
		}
	}()
	if tcp, ok := connection.(interface{ SetWriteBuffer(bytes int) error }); ok {
		_ = tcp.SetWriteBuffer(writeBuffer) // the system's own size does as well
	}
	if !stream.Attach(connection) || !stream.Write(begun.first) {
		return
	}
	s.sent.add(begun.replayed)
	if err := s.catchUp(stream, begun.position); err != nil {
		s.options.Log.Warn("a stream could not be brought up to date", "cause", err)
		stream.End()
	}
}

// checkTime is how long the check of one stream may take.
const checkTime = 2 * time.Second

// mayGoOn reports whether the session of a stream and the right to it still stand. A session that cannot be read counts
// as ended: the client comes back and gets the reason.
func (s *Service) mayGoOn(stream *sse.Stream) bool { return s.check(stream) == nil }

// check returns why a stream may not go on: apierr.Unauthorized, apierr.AuthUnavailable or apierr.NoAccess.
func (s *Service) check(stream *sse.Stream) error {
	opened := stream.Data.(*watched)
	ctx, cancel := context.WithTimeout(context.Background(), checkTime)
	defer cancel()
	caller, err := s.sessions.Session(ctx, opened.caller.Load())
	if err != nil {
		return err
	}
	opened.caller.Store(caller)
	if !s.mayListen(stream) {
		return apierr.NoAccess
	}
	return nil
}

// mayListen reports whether the policy in force lets the caller of a stream have it, from memory alone.
func (s *Service) mayListen(stream *sse.Stream) bool {
	opened := stream.Data.(*watched)
	return opened.caller.Load().WithPolicy(s.options.Policy.Load()).MayCall(opened.endpoint)
}

// SessionsChanged ends the streams of a user whose session or right is gone. Call it after the commit of the change and
// before its answer: nothing is delivered to those streams once it has returned.
func (s *Service) SessionsChanged(userID string) { s.hub.Revoke(userID, s.mayGoOn) }

// policyChanged ends the streams of all callers who lost the right to them.
func (s *Service) policyChanged() { s.hub.Revoke("", s.mayListen) }

// wrote hears which frames were written to a stream.
func (s *Service) wrote(positions []sse.Position) {
	ids := make([]string, len(positions))
	for i, p := range positions {
		ids[i] = p.ID
	}
	s.sent.add(ids)
}
