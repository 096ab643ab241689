package changes

import (
	"context"
	"errors"
	"net"
	"net/http"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"

	"kontor/modules/kit/change"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/sse"
)

const (
	// checkTime is how long the check of one stream may take, and readTime one page of it.
	checkTime = 2 * time.Second
	readTime  = 10 * time.Second
	// streamPage is the number of events that a stream reads at once.
	streamPage = 100
	// minInterval is the shortest time between two reads of a stream, so that a stream costs little on a busy server.
	minInterval = 50 * time.Millisecond
	// writeBuffer bounds what the operating system buffers for a client that does not read.
	writeBuffer = 64 << 10
)

// openedFrame is the data of the first frame.
type openedFrame struct {
	Cursor string `json:"cursor" format:"uuid" doc:"The stream contains the events after it."`
}

// closedFrame is the data of the last frame before a shutdown or after an error: clients reconnect later.
type closedFrame struct {
	Reason string `json:"reason" enum:"server_shutdown,unavailable,cursor_expired" example:"server_shutdown"`
}

// positionFrame is the data of a frame without an event, whose id moves the cursor of a reader who may see few events.
type positionFrame struct{}

// changeFrame is the name of the frames with events.
const changeFrame = "change"

// streamFrames are the frames of the stream, for the API document.
var streamFrames = []endpoint.Frame{
	{Event: "open", Body: openedFrame{}}, {Event: changeFrame, Body: change.Event{}}, {Event: "position", Body: positionFrame{}},
	{Event: "close", Body: closedFrame{}},
}

const streamExample = "id: 00000000-0029-8001-b7d2-4e8a1c6f3b05\nevent: open\ndata: {\"cursor\":\"00000000-0029-8001-b7d2-4e8a1c6f3b05\"}\n\n" +
	"id: 00000000-002a-8001-a3f1-0c5d2b7e9f10\nevent: change\ndata: {\"id\":\"00000000-002a-8001-a3f1-0c5d2b7e9f10\"," +
	"\"type\":\"customers.updated\",\"timestamp\":\"2026-01-31T08:15:30.123Z\",\"rec_type\":\"customers\"," +
	"\"rec_id\":\"0193a7c4-5e2f-7b1a-9c3d-8f6e2a4b7c10\",\"version\":42,\"action\":\"customers.update\",\"actor\":\"0193a7c4-5e2f-7b1a-9c3d-8f6e2a4b7c13\"}\n\n" +
	": keepalive\n\n"

// streamState is the data of a stream: its caller as of the last check.
type streamState struct{ caller atomic.Pointer[access.Caller] }

// open opens an event stream. It returns apierr.TooManyStreams beyond the limit of a user, and apierr.CursorExpired.
func (s *Service) open(ctx context.Context, r *endpoint.Request, in listInput) error {
	request := endpoint.Of(ctx)
	expires, ok := s.sessions.Expiry(r.Fiber)
	if !ok {
		return apierr.Unauthorized
	}
	start, err := s.streamStart(ctx, string(r.Fiber.Request().Header.Peek("Last-Event-ID")), in)
	if err != nil {
		return err
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
	// The frame has an id, so that a client that is cut off before the first event resumes there.
	first := append(head, frame(start.ID(), "open", openedFrame{start.ID()})...)
	query := Query{After: start, Types: in.types, Limit: streamPage, Record: in.Include != ""}
	connection := r.Fiber.Context()
	connection.HijackSetNoResponse(true)
	connection.Hijack(func(hijacked net.Conn) { s.run(stream, first, query, unwrapped(hijacked)) })
	return nil
}

// streamStart returns the position after which a stream begins: Last-Event-ID, after, or now.
func (s *Service) streamStart(ctx context.Context, lastID string, in listInput) (change.Position, error) {
	start := change.Position{}
	var err error
	switch last, known := change.ParsePosition(lastID); {
	case known:
		start = last
	case lastID != "":
		return start, apierr.CursorExpired.Detail("reason", "unknown")
	case in.After == "":
		return s.Latest(ctx)
	default:
		if start, err = s.start(ctx, in); err != nil {
			return start, err
		}
	}
	end, err := s.end(ctx)
	if err != nil {
		return start, err
	}
	return start, s.checkCursor(ctx, start, end)
}

// unwrapped returns the connection without the buffer of the HTTP engine, which would be kept as long as the stream.
func unwrapped(hijacked net.Conn) net.Conn {
	if wrapped, ok := hijacked.(interface{ UnsafeConn() net.Conn }); ok {
		return wrapped.UnsafeConn()
	}
	return hijacked
}

// frame returns a frame with JSON data.
func frame(id, event string, data any) []byte {
	text, err := json.Marshal(data)
	if err != nil {
		return nil // the frames of this package can be encoded; records come from endpoints, which encode them too
	}
	return sse.Event(id, event, text)
}

// run writes events to a stream until it ends. It is the outermost function of a goroutine.
func (s *Service) run(stream *sse.Stream, first []byte, q Query, connection net.Conn) {
	defer func() {
		if cause := recover(); cause != nil {
			s.options.Log.Error("panic in an event stream", "cause", cause, "stack", string(debug.Stack()))
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
	s.follow(stream, q)
}

// follow writes pages of events, and waits for changes between them. Every page is read with the rights of its moment.
func (s *Service) follow(stream *sse.Stream, q Query) {
	quiet := time.Now() // when the client last got a frame
	for !stream.Ended() {
		changed, due := s.Changed(), s.options.TermsDue()
		b, frames, err := s.page(stream, q)
		if !s.db.Remembers() || due || s.options.TermsDue() { // a session or a right may have ended unnoticed
			if !s.pause(stream, changed) {
				return
			}
			continue
		}
		switch {
		case apierr.Of(err).Kind == apierr.CursorExpired:
			stream.Write(frame("", "close", closedFrame{"cursor_expired"}))
			return
		case err != nil:
			s.options.Log.Warn("could not read events for a stream", "cause", err)
			stream.Write(frame("", "close", closedFrame{"unavailable"}))
			return
		}
		q.After = b.Last
		if len(frames) == 0 && time.Since(quiet) >= s.options.Heartbeat {
			frames = []byte(sse.Keepalive)
		}
		if len(frames) > 0 {
			if !stream.Write(frames) {
				return
			}
			quiet = time.Now()
		}
		if b.More {
			changed = nil
		}
		if !s.pause(stream, changed) {
			return
		}
	}
}

// page reads the next events of a stream and their frames.
func (s *Service) page(stream *sse.Stream, q Query) (Batch, []byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	ctx = access.With(ctx, s.callerOf(stream))
	b, err := s.After(ctx, q)
	if err != nil {
		return b, nil, err
	}
	var frames []byte
	for _, e := range b.Events {
		frames = append(frames, frame(e.ID, changeFrame, e)...)
	}
	if len(b.Events) == 0 && b.Last.Seq-q.After.Seq >= scanStep {
		frames = frame(b.Last.ID(), "position", positionFrame{})
	}
	return b, frames, nil
}

// pause waits for the next change; nil does not wait for one. It reports false when the service closes, after the last frame.
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
	most := time.NewTimer(min(s.PollInterval(), s.options.Heartbeat))
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
	stream.Write(frame("", "close", closedFrame{"server_shutdown"}))
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
func (s *Service) mayOpen(stream *sse.Stream) bool { return s.mayCall(s.callerOf(stream), Endpoint) }

// callerOf returns the caller of a stream as of the last check, with the policy in force.
func (s *Service) callerOf(stream *sse.Stream) *access.Caller {
	return stream.Data.(*streamState).caller.Load().WithPolicy(s.options.Policy.Load())
}

// SessionsChanged ends the streams of a user whose session or right has ended. Call it after the commit of the change and
// before its answer: once it has returned, nothing is written to those streams.
func (s *Service) SessionsChanged(userID string) { s.hub.Revoke(userID, s.mayContinue) }

// policyChanged ends the streams of all callers who lost the right to them.
func (s *Service) policyChanged() { s.hub.Revoke("", s.mayOpen) }
