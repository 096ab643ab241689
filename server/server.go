// Package server turns the table of endpoints into a running HTTP server.
//
// The steps of a request, one file for each, are listed in their order in pipeline.go. Errors and panics are answered in one
// place, error.go.
package server

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/go-json-experiment/json"
	"github.com/gofiber/fiber/v2"

	"kontor/locales"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
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
	uploads     atomic.Int64 // bytes of long bodies in memory
	metrics     *requestMetrics
	connections *connectionMetrics
	document    func() (document, error) // built on first use
}

// New builds a server. It fails when a row of the table is incomplete or duplicate.
func New(o Options) (*Server, error) {
	s := &Server{Options: o, limiter: ratelimit.New(o.Now), concurrency: newConcurrency(o.PerCaller), origins: map[string]bool{}}
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
	return overloadedWith(string(body))
}

func overloadedWith(body string) []byte {
	head := "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(body)) +
		"\r\nRetry-After: " + retryUnavailable + "\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
	return []byte(head + body)
}
