package requestlog

import (
	"context"
	"errors"
	"net"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/sse"
)

const (
	checkTime  = 2 * time.Second // for the check of one stream
	streamPage = 100             // requests that a stream reads at once
	// minInterval is the shortest time between two reads of a stream, so that a stream costs little on a busy server.
	minInterval = 50 * time.Millisecond
	writeBuffer = 64 << 10
)

type openedFrame struct {
	Seq int64 `json:"seq" doc:"The stream has the requests after this number."`
}

type gapFrame struct{}

type closedFrame struct {
	Reason string `json:"reason" enum:"server_shutdown" example:"server_shutdown"`
}

const requestFrame = "request"

var streamFrames = []endpoint.Frame{
	{Event: "open", Body: openedFrame{}}, {Event: requestFrame, Body: Request{}}, {Event: "gap", Body: gapFrame{}}, {Event: "close", Body: closedFrame{}},
}

const streamExample = "id: 1767225600000041\nevent: open\ndata: {\"seq\":1767225600000041}\n\n" +
	"id: 1767225600000042\nevent: request\ndata: {\"seq\":1767225600000042,\"at\":\"2026-01-31T08:15:30.123Z\",\"node\":\"bank-1\",\"method\":\"GET\"," +
	"\"endpoint\":\"GET /v1/customers/{id}\",\"path\":\"/v1/customers/0193a7c4-5e2f-7b1a-9c3d-8f6e2a4b7c10\",\"query\":\"\",\"status\":404,\"class\":\"4xx\"," +
	"\"code\":\"customers.customer_not_found\",\"microseconds\":840,\"caller_kind\":\"person\",\"caller\":\"0193a7c4-5e2f-7b1a-9c3d-8f6e2a4b7c13\"," +
	"\"request_id\":\"0193a7c4-5e2f-7b1a-9c3d-8f6e2a4b7c14\"}\n\n: keepalive\n\n"

// streamState is the data of a stream: its caller as of the last check.
type streamState struct{ caller atomic.Pointer[access.Caller] }

// open opens an event stream. It returns apierr.TooManyStreams beyond the limit of a user.
func (s *Service) open(ctx context.Context, r *endpoint.Request, in listInput) error {
	request := endpoint.Of(ctx)
	expires, ok := s.sessions.Expiry(r.Fiber)
	if !ok {
		return apierr.Unauthorized
	}
	matches, err := requests.Filter(in.Query)
	if err != nil {
		return err
	}
	_, start, _ := s.ring.after(0, 0)
	if last, err := strconv.ParseInt(string(r.Fiber.Request().Header.Peek("Last-Event-ID")), 10, 64); err == nil && last >= 0 && last < start {
		start = last
	}
	head := sse.Head(&r.Fiber.Response().Header)
	if r.Fiber.Method() == http.MethodHead {
		r.Fiber.Response().Header.SetContentType(endpoint.EventStream)
		r.Fiber.Response().SkipBody = true
		return nil
	}
	opened := &streamState{}
	opened.caller.Store(request.Caller)
	stream, err := s.hub.Open(request.Caller.UserID, request.Language, expires.Std(), opened)
	switch {
	case errors.Is(err, sse.ErrDraining):
		return apierr.Unavailable.Wrap(err)
	case err != nil:
		return apierr.TooManyStreams.Wrap(err)
	}
	// The session may have ended since the request was checked. From here on its end also ends the stream.
	if err := s.check(stream); err != nil {
		stream.End()
		return err
	}
	first := append(head, frame(start, "open", openedFrame{start})...)
	connection := r.Fiber.Context()
	connection.HijackSetNoResponse(true)
	connection.Hijack(func(hijacked net.Conn) { s.run(stream, first, start, matches, unwrapped(hijacked)) })
	return nil
}

// unwrapped returns the connection without the buffer of the HTTP engine, which would be kept as long as the stream.
func unwrapped(hijacked net.Conn) net.Conn {
	if wrapped, ok := hijacked.(interface{ UnsafeConn() net.Conn }); ok {
		return wrapped.UnsafeConn()
	}
	return hijacked
}

// frame returns a frame with JSON data.
func frame(seq int64, event string, data any) []byte {
	text, err := json.Marshal(data)
	if err != nil {
		return nil // the frames of this package can be encoded
	}
	return sse.Event(strconv.FormatInt(seq, 10), event, text)
}

// run writes requests to a stream until it ends. It is the outermost function of a goroutine.
func (s *Service) run(stream *sse.Stream, first []byte, after int64, matches func(*Request) bool, connection net.Conn) {
	defer func() {
		if cause := recover(); cause != nil {
			s.options.Log.Error("panic in a stream of requests", "cause", cause, "stack", string(debug.Stack()))
			_ = connection.Close() // the stream may not own it yet
		}
		stream.End()
	}()
	if tcp, ok := connection.(interface{ SetWriteBuffer(bytes int) error }); ok {
		_ = tcp.SetWriteBuffer(writeBuffer) // the default size works, too
	}
	if !stream.Attach(connection) || !stream.Write(first) {
		return
	}
	s.follow(stream, after, matches)
}

// follow writes pages of requests, and waits for further ones between them.
func (s *Service) follow(stream *sse.Stream, after int64, matches func(*Request) bool) {
	quiet := time.Now() // when the client last got a frame
	for !stream.Ended() {
		changed := s.ring.changed()
		// A session or a right may have ended unnoticed: then the stream waits.
		if s.db.Remembers() && !s.options.TermsDue() {
			entries, last, gap := s.ring.after(after, streamPage)
			var frames []byte
			if gap {
				if len(entries) == 0 { // the process is another one
					after = last
				}
				frames = frame(after, "gap", gapFrame{})
			}
			for _, e := range entries {
				after = e.seq
				if r := s.requestOf(e); matches(&r) {
					frames = append(frames, frame(e.seq, requestFrame, r)...)
				}
			}
			if len(frames) == 0 && time.Since(quiet) >= s.options.Heartbeat {
				frames = []byte(sse.Keepalive)
			}
			if len(frames) > 0 {
				if !stream.Write(frames) {
					return
				}
				quiet = time.Now()
			}
			if len(entries) == streamPage {
				changed = nil
			}
		}
		if !s.pause(stream, changed) {
			return
		}
	}
}

// pause waits for the next request; nil does not wait for one. It reports false when the service closes, after the last frame.
func (s *Service) pause(stream *sse.Stream, changed <-chan struct{}) bool {
	least := time.NewTimer(minInterval)
	defer least.Stop()
	select {
	case <-s.draining:
		return s.sayGoodbye(stream)
	case <-least.C:
	}
	if changed == nil {
		return true
	}
	most := time.NewTimer(s.options.Heartbeat)
	defer most.Stop()
	select {
	case <-s.draining:
		return s.sayGoodbye(stream)
	case <-changed:
	case <-most.C:
	}
	return true
}

func (s *Service) sayGoodbye(stream *sse.Stream) bool {
	stream.Write(sse.Event("", "close", []byte(`{"reason":"server_shutdown"}`)))
	return false
}

// mayContinue reports whether the session of a stream is active and its caller may still have it. A session that cannot be
// read counts as ended: the client reconnects and gets the reason.
func (s *Service) mayContinue(stream *sse.Stream) bool { return s.check(stream) == nil }

// check returns why a stream must end: apierr.Unauthorized, apierr.AuthUnavailable or apierr.NoAccess.
func (s *Service) check(stream *sse.Stream) error {
	opened := stream.Data.(*streamState)
	ctx, cancel := context.WithTimeout(context.Background(), checkTime)
	defer cancel()
	caller, err := s.sessions.Session(ctx, opened.caller.Load())
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
	caller := stream.Data.(*streamState).caller.Load().WithPolicy(s.options.Policy.Load())
	return caller.MayCall(Endpoint) && caller.InScope(prefix+"list")
}

// SessionsChanged ends the streams of a user whose session or right has ended. Call it after the commit of the change and
// before its answer: once it has returned, nothing is written to those streams.
func (s *Service) SessionsChanged(userID string) { s.hub.Revoke(userID, s.mayContinue) }

// policyChanged ends the streams of all callers who lost the right to them.
func (s *Service) policyChanged() { s.hub.Revoke("", s.mayOpen) }
