// Package streams opens event streams for callers, and ends each with the session or the right that it needs.
//
// A stream gets its frames from the hub, or follows a feed in a goroutine of its own, see [Follow].
package streams

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/sse"
	"kontor/store"
)

// Sessions checks the sessions of streams.
type Sessions interface {
	// Session returns the caller as of now. It returns an error if their session has ended or cannot be read.
	Session(ctx context.Context, caller *access.Caller) (*access.Caller, error)
	// Expiry returns when the bearer token of a request expires.
	Expiry(c *fiber.Ctx) (store.Time, bool)
}

// Options configure the streams of a module.
type Options struct {
	Hub sse.Options // without Check

	Sessions func() Sessions
	Policy   *access.Current
	// MayOpen reports whether the caller, with the policy in force, may have a stream of an endpoint. It must be quick.
	MayOpen func(caller *access.Caller, endpoint string) bool
	// Certain reports whether all ends of sessions and rights have reached this process. It must be quick. Feeds wait meanwhile.
	Certain func() bool
}

// Streams are the open streams of a module.
type Streams struct {
	*sse.Hub
	options  Options
	log      *slog.Logger
	draining chan struct{}
	drain    sync.Once
}

// New returns a hub whose streams end with their callers' sessions and rights. Close it when the server has stopped.
func New(o Options) *Streams {
	s := &Streams{options: o, log: o.Hub.Log, draining: make(chan struct{})}
	o.Hub.Check = s.mayContinue
	s.Hub = sse.New(o.Hub)
	o.Policy.OnChange(func() { s.Revoke("", s.mayOpen) })
	return s
}

// state is the data of a stream: its caller as of the last check, and the endpoint that opened it.
type state struct {
	caller   atomic.Pointer[access.Caller]
	endpoint string
}

// Open opens a stream for the caller of a request; start it with [Streams.Serve] or end it. It answers a HEAD request and returns nil.
// It returns apierr.TooManyStreams beyond the limit of a user, apierr.Unavailable with [sse.ErrDraining] while the server stops, and
// what [Streams.Check] returns.
func (s *Streams) Open(ctx context.Context, r *endpoint.Request) (*sse.Stream, error) {
	request := endpoint.Of(ctx)
	expires, ok := s.options.Sessions().Expiry(r.Fiber)
	if !ok {
		return nil, apierr.Unauthorized
	}
	if r.Fiber.Method() == http.MethodHead {
		answerHead(r)
		return nil, nil
	}
	opened := &state{endpoint: r.Row.Key()}
	opened.caller.Store(request.Caller)
	stream, err := s.Hub.Open(request.Caller.UserID, request.Language, expires.Std(), opened)
	switch {
	case errors.Is(err, sse.ErrDraining):
		return nil, apierr.Unavailable.Wrap(err)
	case err != nil:
		return nil, apierr.TooManyStreams.Wrap(err)
	}
	// The session may have ended since the request was checked. From here on its end also ends the stream.
	if err := s.Check(stream); err != nil {
		stream.End()
		return nil, err
	}
	return stream, nil
}

// answerHead answers with the headers of a stream.
func answerHead(r *endpoint.Request) {
	header := &r.Fiber.Response().Header
	header.SetContentType(endpoint.EventStream)
	header.Set(fiber.HeaderCacheControl, "no-cache, no-transform")
	header.Set("X-Accel-Buffering", "no")
	r.Fiber.Response().SkipBody = true
}

// writeBuffer bounds what the operating system buffers for a client that does not read.
const writeBuffer = 64 << 10

// Serve answers a request with a stream: its head, the first frames, and what run writes in a goroutine of its own. The stream stays
// open after run, until it is ended.
func (s *Streams) Serve(r *endpoint.Request, stream *sse.Stream, first []byte, run func()) {
	first = append(sse.Head(&r.Fiber.Response().Header), first...)
	connection := r.Fiber.Context()
	connection.HijackSetNoResponse(true)
	connection.Hijack(func(hijacked net.Conn) { s.run(stream, first, run, unwrapped(hijacked)) })
}

// unwrapped returns the connection without the buffer of the HTTP engine, which would be kept as long as the stream.
func unwrapped(hijacked net.Conn) net.Conn {
	if wrapped, ok := hijacked.(interface{ UnsafeConn() net.Conn }); ok {
		return wrapped.UnsafeConn()
	}
	return hijacked
}

// run is the outermost function of a goroutine.
func (s *Streams) run(stream *sse.Stream, first []byte, run func(), connection net.Conn) {
	defer func() {
		if cause := recover(); cause != nil {
			s.log.Error("panic in an event stream", "cause", cause, "stack", string(debug.Stack()))
			stream.End()
			_ = connection.Close() // the stream may not own it yet
		}
	}()
	if tcp, ok := connection.(interface{ SetWriteBuffer(bytes int) error }); ok {
		_ = tcp.SetWriteBuffer(writeBuffer) // the default size works, too
	}
	if stream.Attach(connection) && stream.Write(first) {
		run()
	}
}

// mayContinue reports whether the session of a stream is active and its caller may still have it. A session that cannot be
// read counts as ended: the client reconnects and gets the reason.
func (s *Streams) mayContinue(stream *sse.Stream) bool { return s.Check(stream) == nil }

// checkTime is how long the check of one stream may take.
const checkTime = 2 * time.Second

// Check returns why a stream must end: apierr.Unauthorized, apierr.AuthUnavailable or apierr.NoAccess.
func (s *Streams) Check(stream *sse.Stream) error {
	opened := stream.Data.(*state)
	ctx, cancel := context.WithTimeout(context.Background(), checkTime)
	defer cancel()
	caller, err := s.options.Sessions().Session(ctx, opened.caller.Load())
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
func (s *Streams) mayOpen(stream *sse.Stream) bool {
	return s.options.MayOpen(s.Caller(stream), stream.Data.(*state).endpoint)
}

// Caller returns the caller of a stream as of the last check, with the policy in force.
func (s *Streams) Caller(stream *sse.Stream) *access.Caller {
	return stream.Data.(*state).caller.Load().WithPolicy(s.options.Policy.Load())
}

// SessionsChanged ends the streams of a user whose session or right has ended. Call it after the commit of the change and
// before its answer: once it has returned, nothing is written to those streams.
func (s *Streams) SessionsChanged(userID string) { s.Revoke(userID, s.mayContinue) }

// Drain sends the close frame on all streams and rejects new ones. It does not wait.
func (s *Streams) Drain() {
	s.drain.Do(func() {
		s.Hub.Drain()
		close(s.draining)
	})
}

// drainTime is how long EndAll waits for the close frames to be written.
const drainTime = 2 * time.Second

// EndAll ends all streams. Close the hub afterwards.
func (s *Streams) EndAll(ctx context.Context) {
	s.Drain()
	timeout := time.NewTimer(drainTime)
	defer timeout.Stop()
	select {
	case <-s.Drained():
	case <-timeout.C:
	case <-ctx.Done():
	}
}
