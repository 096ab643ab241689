// Package server turns the table of endpoints into a running HTTP server.
//
// The steps of a request are listed in their order in pipeline.go. Errors and panics are answered in one
// place, answer.go.
package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/utils"
	"github.com/valyala/fasthttp"

	"kontor/locales"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/metrics"
	"kontor/server/ratelimit"
	"kontor/server/shares"
	"kontor/server/static"
)

// Server is a running HTTP server.
type Server struct {
	Options
	app         *fiber.App
	routes      *router
	limiter     *ratelimit.Limiter
	concurrency *concurrency
	transfers   *transfers
	origins     map[string]bool
	draining    atomic.Bool
	uploads     *shares.Pool  // bytes of long bodies in memory
	turns       chan struct{} // see [call.TakeTurn]
	metrics     *requestMetrics
	connections *connectionMetrics
	document    func() (static.File, error) // built on first use
}

// New builds a server. It fails when a row of the table is incomplete or duplicate.
func New(o Options) (*Server, error) {
	s := &Server{Options: o, limiter: ratelimit.New(o.Now), concurrency: newConcurrency(o.PerCaller), turns: newTurns(), origins: map[string]bool{},
		uploads: shares.New(uploadBudget, uploadBudget/4)}
	s.transfers = newTransfers(s)
	s.Endpoints = append(append([]endpoint.Endpoint(nil), o.Endpoints...), s.ownEndpoints()...)
	s.document = sync.OnceValues(s.makeDocument)
	if err := endpoint.CheckAll(s.Endpoints); err != nil {
		return nil, err
	}
	if o.Rights == nil && slices.ContainsFunc(s.Endpoints, func(e endpoint.Endpoint) bool { return e.SubjectPosition() >= 0 }) {
		return nil, errors.New("rows with a subject need Options.Rights")
	}
	routes, err := newRouter(s.Endpoints)
	if err != nil {
		return nil, err
	}
	s.routes, s.metrics, s.connections = routes, newRequestMetrics(s.Endpoints), &connectionMetrics{}
	for _, origin := range o.AllowedOrigins {
		s.origins[origin] = true
	}
	if s.MaxConnections == 0 {
		s.MaxConnections = connectionsFor(fileLimit())
	}
	if s.RequestTime == 0 {
		s.RequestTime = requestTime
	}
	if s.WriteTimeout == 0 {
		s.WriteTimeout = writeTimeout
	}
	s.startEngine()
	return s, nil
}

// startEngine configures Fiber and fasthttp.
func (s *Server) startEngine() {
	s.app = fiber.New(fiber.Config{
		DisableStartupMessage: true,
		CaseSensitive:         true,
		StrictRouting:         true,
		Immutable:             true, // texts of a request may outlive it: in caches, in the log, in streams
		ReadTimeout:           readTimeout,
		WriteTimeout:          s.WriteTimeout,
		IdleTimeout:           idleTimeout,
		ReadBufferSize:        headerBytes,
		WriteBufferSize:       answerBytes,
		// The connection limiter decrements its count a moment before the goroutine of a closed connection is free.
		Concurrency: 2*s.MaxConnections + 1,
		// Otherwise the engine allocates the declared length of a body before the caller is authenticated. With streaming, it
		// does not enforce a limit: readBody does.
		StreamRequestBody: true,
		// Otherwise the engine reads uploads into files before the caller is authenticated.
		DisablePreParseMultipartForm: true,
	})
	engine := s.app.Server()
	engine.NoDefaultServerHeader = true
	engine.ConnState = s.concurrency.connState
	engine.KeepHijackedConns = true // an event stream outlives the goroutine that opened it
	engine.HeaderReceived = s.headerReceived
	engine.ExpectHandler = s.expect
	engine.ErrorHandler = s.malformed
	engine.Logger = engineLog{s.Log}
	engine.Handler = s.enter
}

// Table returns all rows, including those of the server itself.
func (s *Server) Table() []endpoint.Endpoint { return s.Endpoints }

// Serve answers requests on the listener until [Server.Shutdown] ends them.
func (s *Server) Serve(listener net.Listener) error {
	exempt := func(peer netip.Addr) bool { return peer.IsLoopback() || s.trusted(peer) }
	limiter := newConnectionLimiter(listener, s.MaxConnections, exempt, s.overloaded(), s.connections, s.Log)
	if s.TLS != nil {
		return s.app.Listener(tlsListener{limiter, s.TLS})
	}
	limiter.plain = true
	return s.app.Listener(limiter)
}

// overloaded returns the answer to a surplus connection. It is in English, since the request is not read.
func (s *Server) overloaded() []byte {
	if s.TLS != nil {
		return nil // there is no time for a handshake
	}
	body, _ := json.Marshal(s.envelopeOf(locales.Default, apierr.Of(apierr.Unavailable)), json.Deterministic(true)) // strings cannot fail
	head := "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(body)) +
		"\r\nRetry-After: " + retryUnavailable + "\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
	return append([]byte(head), body...)
}

// Options configure a server.
type Options struct {
	Endpoints   []endpoint.Endpoint
	Auth        Authenticator
	Policy      *access.Current
	Rights      Rights                                         // required if a row has a subject
	Uses        Uses                                           // notes which endpoints users call; nil: none are noted
	Memory      Memory                                         // nil: everything that is remembered may be used
	People      People                                         // resolves the users whom answers name; nil: answers have no member people
	Idempotency Idempotency                                    // nil: the header Idempotency-Key has no effect
	Stored      func(err error) (Stored, bool)                 // recognizes errors that carry the answer of an earlier request
	Translate   func(err error) error                          // converts errors of lower layers to those of apierr
	Fallback    func(c *fiber.Ctx, path string) (handled bool) // serves files of the console; nil: none
	Probes      []Probe
	Nodes       func() []NodeHealth // that use the same database; nil: there is no other
	Metrics     metrics.Source      // further metrics for /metrics; nil: none
	Texts       *locales.Bundle
	Log         *slog.Logger
	Now         func() time.Time
	// SandboxPublic lets other machines see rows of the sandbox, see [Server.hides].
	SandboxPublic bool
	BaseURL       string // address of the service for clients, for the API document

	TLS              *tls.Config      // nil: plain HTTP
	Expires          func() time.Time // end of the certificate, the zero time for none; nil: none
	TrustedProxies   []netip.Prefix
	AllowedOrigins   []string
	RateLimits       bool
	PublicPerMinute  int
	PrivatePerMinute int
	Counts           Counts               // of requests to endpoints with a stored rule, over all nodes; nil: this process counts in memory
	LiveNodes        func() int           // live nodes, which divide the general limits; must be quick; nil: one
	DecisionFor      time.Duration        // after an authentication, for decisions about customers; zero: endpoint.DecisionFor
	PerCaller        int                  // requests of one caller that run at the same time; zero: no limit
	WriteTimeout     time.Duration        // for writing an answer; zero: writeTimeout
	MaxConnections   int                  // open at the same time, streams included; 0: derived from the limit of open files
	RequestTime      time.Duration        // for the service behind a row; zero: requestTime
	CallerKey        any                  // key under which the context of a request has its principal, as a string; nil: none
	ResponderKey     any                  // key under which the context of a creating request has its responder; nil: none
	Observe          func(endpoint.Event) // takes security events for the audit trail; must be quick; nil: none
	Requests         Requests             // keeps answered requests; nil: none are kept
	OnDrain          []func()             // called once when the server starts to drain
}

const (
	readTimeout   = 10 * time.Second // for a request of ordinary size to arrive
	uploadTimeout = 60 * time.Second // for one that may be larger than DefaultMaxBody
	writeTimeout  = 30 * time.Second // after it, an answer is dropped with its connection
	idleTimeout   = 64 * time.Second // longer than the minute for which proxies keep connections
	headerBytes   = 16 << 10
	answerBytes   = 8 << 10 // up to which an answer is written at once: that of a list with ten rows is
)

// malformed answers requests that the HTTP engine could not read: broken HTTP, headers too large or too slow. The engine's own
// text would quote the request.
func (s *Server) malformed(ctx *fasthttp.RequestCtx, err error) {
	kind := apierr.MalformedRequest
	var small *fasthttp.ErrSmallBuffer
	var timeout net.Error
	switch {
	case errors.As(err, &small):
		kind = apierr.HeadersTooLarge
	case errors.As(err, &timeout) && timeout.Timeout():
		kind = apierr.RequestTimeout
	}
	s.extendWriting(ctx)
	s.reject(ctx, kind.Wrap(err))
}

// extendWriting sets the deadline of writes for what the engine writes before a request is handled. The deadline of the former
// request may have passed.
func (s *Server) extendWriting(ctx *fasthttp.RequestCtx) {
	_ = ctx.Conn().SetWriteDeadline(time.Now().Add(s.WriteTimeout)) // fails for closed connections only
}

// reject answers a request that does not enter the pipeline, and closes its connection.
func (s *Server) reject(ctx *fasthttp.RequestCtx, err error) {
	ctx.Response.Reset()
	ctx.SetConnectionClose()
	c := s.app.AcquireCtx(ctx)
	defer s.app.ReleaseCtx(c)
	s.answerError(c, err)
}

// answerError answers with an error outside the pipeline.
func (s *Server) answerError(c *fiber.Ctx, err error) {
	r := s.newCall(c)
	defer func() { r.context.end() }()
	s.identify(r)
	s.fail(r, err)
}

// enter takes a request into the pipeline, without Fiber's router: findRoute has its own. It rejects versions of HTTP other than
// 1.0 and 1.1; the engine accepts any.
func (s *Server) enter(ctx *fasthttp.RequestCtx) {
	if version := ctx.Request.Header.Protocol(); string(version) != "HTTP/1.1" && string(version) != "HTTP/1.0" {
		s.reject(ctx, apierr.MalformedRequest)
		return
	}
	hideUnknownMethod(&ctx.Request.Header)
	c := s.app.AcquireCtx(ctx)
	defer s.app.ReleaseCtx(c)
	s.serve(c)
}

// hideUnknownMethod replaces a method that Fiber does not know by TRACE, which no row has: findRoute answers 404 or 405. The log
// has the method of each request; the client's could be any text.
func hideUnknownMethod(header *fasthttp.RequestHeader) {
	if !slices.Contains(fiber.DefaultMethods, utils.UnsafeString(header.Method())) {
		header.SetMethod(fiber.MethodTrace)
	}
}

// engineLog writes the engine's own messages to the log without their arguments, which may quote a request.
type engineLog struct{ log *slog.Logger }

func (l engineLog) Printf(format string, _ ...any) {
	l.log.Debug("http engine", "message", fmt.Sprintf("%.80s", format))
}
