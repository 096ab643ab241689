// Package server turns the table of endpoints into a running HTTP server.
//
// A request takes these steps, in this order: deadline; request id, language and address; encoding; CORS; row; draining; rate
// limit; who is calling; grant on the endpoint; body; decoding and rules of the input; and then the service behind the
// row. Errors are written in one place, and so is what a panic leaves.
package server

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"kontor/locales"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
)

// Authenticator knows who is calling.
type Authenticator interface {
	// Known gives the caller of a bearer token that was verified before and whose session is active, from memory
	// alone; ok is false where memory does not say.
	Known(token string) (caller *access.Caller, ok bool)
	// Bearer verifies the bearer token of a request and its session. It returns apierr.Unauthorized, or
	// apierr.AuthUnavailable when neither cache nor table can answer.
	Bearer(c *fiber.Ctx) (*access.Caller, error)
	// APIKey verifies an API key. It returns apierr.Unauthorized.
	APIKey(ctx context.Context, key string) (*access.Caller, error)
}

// Replayer remembers the answers to requests with an Idempotency-Key.
type Replayer interface {
	// Begin gives a context in which the first answer of the claim is stored with its transaction, or an error that
	// [Options.Stored] recognises when there already is one.
	Begin(ctx context.Context, claim Claim) (context.Context, error)
}

// Claim names a request that must happen once.
type Claim struct {
	Key      string
	Caller   string
	Endpoint string // method and path as called
	BodyHash [32]byte
}

// Stored is an answer from an earlier request with the same claim.
type Stored struct {
	Status   int
	Body     []byte
	ETag     string
	Mismatch bool // the earlier request had another body
}

// Probe is one condition of readiness.
type Probe struct {
	Name  string
	Check func(ctx context.Context) error
	// Advisory is a condition that somebody should look at: when it fails, readiness says so and stays.
	Advisory bool
}

// Options is what a server is made of.
type Options struct {
	Endpoints        []endpoint.Endpoint
	Auth             Authenticator
	Policy           *access.Current
	Replays          Replayer
	Stored           func(err error) (Stored, bool)                 // recognises an answer that was given before
	Translate        func(err error) error                          // makes faults of errors of lower layers
	Fallback         func(c *fiber.Ctx, path string) (handled bool) // files of the console; nil: none
	Probes           []Probe
	Texts            *locales.Bundle
	Log              *slog.Logger
	Now              func() time.Time
	BaseURL          string // where clients reach the service, for the API document
	TrustedProxies   []netip.Prefix
	AllowedOrigins   []string
	RateLimits       bool
	PublicPerMinute  int
	PrivatePerMinute int
	PerCaller        int                  // requests of one caller that run at once; zero: no bound
	WriteTimeout     time.Duration        // for an answer to leave; zero: writeTimeout
	MaxConnections   int                  // open at once, streams included; 0: what the limit of open files allows
	RequestTime      time.Duration        // for the service behind a row; zero: 10 s
	CallerKey        any                  // under which the context of a request names its caller, as a string; nil: nowhere
	Observe          func(endpoint.Event) // takes security events for the audit trail; must be quick; nil: nobody
	OnDrain          []func()             // called once when the server starts to drain: streams say good-bye
}

// Server is a running HTTP server.
type Server struct {
	Options
	app         *fiber.App
	routes      *router
	limiter     *ratelimit.Limiter
	concurrency *concurrency
	origins     map[string]bool
	draining    atomic.Bool
	uploads     atomic.Int64 // bytes of long bodies that are in memory
	metrics     *requestMetrics
	document    func() (document, error) // made when it is first asked for
}

const (
	readTimeout   = 10 * time.Second // a request of ordinary size must have arrived by then
	uploadTimeout = 60 * time.Second // one of more than DefaultMaxBody
	writeTimeout  = 30 * time.Second // an answer that a client has not taken by then is dropped with its connection
	idleTimeout   = 60 * time.Second
	headerBytes   = 16 << 10
)

// New builds a server. It fails when a row of the table is incomplete or stands twice.
func New(o Options) (*Server, error) {
	s := &Server{Options: o, limiter: ratelimit.New(o.Now), concurrency: newConcurrency(o.PerCaller), origins: map[string]bool{}}
	s.Endpoints = append(append([]endpoint.Endpoint(nil), o.Endpoints...), s.ownEndpoints()...)
	s.document = sync.OnceValues(s.makeDocument)
	if err := endpoint.CheckAll(s.Endpoints); err != nil {
		return nil, err
	}
	routes, err := newRouter(s.Endpoints)
	if err != nil {
		return nil, err
	}
	s.routes, s.metrics = routes, newRequestMetrics(s.Endpoints)
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
	s.app = fiber.New(fiber.Config{
		DisableStartupMessage: true,
		Immutable:             true,
		CaseSensitive:         true,
		StrictRouting:         true,
		ReadTimeout:           readTimeout,
		WriteTimeout:          s.WriteTimeout,
		IdleTimeout:           idleTimeout,
		ReadBufferSize:        headerBytes,
		// The gate counts a connection out as it closes, a moment before its goroutine is free.
		Concurrency:  2*s.MaxConnections + 1,
		ErrorHandler: s.unexpected,
		// Else the engine takes memory for what a client declares, before anybody has asked who that is. It holds
		// a stream to no limit: readBody does.
		StreamRequestBody: true,
		// Else the engine reads uploads by itself, into files, before anybody has asked who sends them.
		DisablePreParseMultipartForm: true,
	})
	s.app.Use(s.serve)
	engine := s.app.Server()
	engine.NoDefaultServerHeader = true
	engine.ConnState = s.concurrency.connState
	engine.KeepHijackedConns = true // an event stream outlives the goroutine that opened it
	engine.HeaderReceived = s.headerReceived
	engine.ExpectHandler = s.expect
	engine.ErrorHandler = s.malformed
	engine.Logger = engineLog{o.Log}
	engine.Handler = s.knownMethods(engine.Handler)
	return s, nil
}

// Table lists all rows, those of the server itself included.
func (s *Server) Table() []endpoint.Endpoint { return s.Endpoints }

// Serve answers requests on the listener until [Server.Shutdown] has ended them.
func (s *Server) Serve(listener net.Listener) error {
	exempt := func(peer netip.Addr) bool { return peer.IsLoopback() || s.trusted(peer) }
	return s.app.Listener(newGate(listener, s.MaxConnections, exempt, s.refusal(), s.Log))
}

// refusal returns the answer to a connection that there is no room for, in English: nothing was read of its request.
func (s *Server) refusal() []byte {
	body, _ := json.Marshal(s.word(locales.Default, apierr.Of(apierr.Unavailable)), json.Deterministic(true)) // strings cannot fail
	return refusalOf(string(body))
}

func refusalOf(body string) []byte {
	head := "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(body)) +
		"\r\nRetry-After: " + retryUnavailable + "\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
	return []byte(head + body)
}

// drainGrace is how long new requests are still answered, with 503, before the listener closes: a load balancer that
// probes once a second sees it.
const drainGrace = time.Second

// Shutdown drains the server: new requests get 503, streams are told to close, running requests finish. It returns
// when all have finished or the context ends.
func (s *Server) Shutdown(ctx context.Context) error {
	if s.draining.Swap(true) {
		return nil
	}
	for _, drain := range s.OnDrain {
		drain()
	}
	grace := time.NewTimer(drainGrace)
	defer grace.Stop()
	select {
	case <-grace.C:
	case <-ctx.Done():
	}
	return s.app.ShutdownWithContext(ctx)
}

// knownMethods lets Fiber see only methods it knows, which answers others with a text of its own, and only versions of
// HTTP that are spoken here.
func (s *Server) knownMethods(next fasthttp.RequestHandler) fasthttp.RequestHandler {
	known := map[string]bool{}
	for _, method := range fiber.DefaultMethods {
		known[method] = true
	}
	return func(ctx *fasthttp.RequestCtx) {
		if version := string(ctx.Request.Header.Protocol()); version != "HTTP/1.1" && version != "HTTP/1.0" {
			s.refuse(ctx, apierr.MalformedRequest) // the engine takes any version for one it knows
			return
		}
		if closes(&ctx.Request.Header) {
			ctx.SetConnectionClose()
		}
		if !known[string(ctx.Method())] {
			// The row decides between 404 and 405; TRACE is served nowhere.
			ctx.Request.Header.SetMethod(fiber.MethodTrace)
		}
		next(ctx)
	}
}

// engineLog hands the engine's own messages, which may quote a request, to the log without their text.
type engineLog struct{ log *slog.Logger }

func (l engineLog) Printf(format string, _ ...any) {
	l.log.Debug("http engine", "message", fmt.Sprintf("%.80s", format))
}
