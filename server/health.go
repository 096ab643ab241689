package server

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
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

// Probe is one condition of readiness.
type Probe struct {
	Name  string
	Check func(ctx context.Context) error
	// Advisory probes do not make the service unready when they fail. Readiness shows them as a warning.
	Advisory bool
}

// NodeHealth is a process that uses the same database, as readiness shows it to all callers.
type NodeHealth struct {
	Name          string   `json:"name" example:"node-1"`
	Self          bool     `json:"self" doc:"True for the node that answers."`
	Leads         bool     `json:"leads" doc:"True for the node that runs the jobs that run once for all nodes."`
	LagMS         int64    `json:"lag_ms" doc:"Milliseconds since its last sign of life."`
	Started       string   `json:"started" format:"date-time"`
	LeaseUntil    string   `json:"lease_until" format:"date-time" doc:"Until then the other nodes wait for it before they answer a change of rights or sessions."`
	OtherSettings []string `json:"other_settings,omitzero" doc:"Names of the settings that differ from those of the node that answers, although they must agree."`
}

// health reports whether the service takes requests.
type health struct {
	OverallStatus string            `json:"overall_status" enum:"healthy,unhealthy"`
	Message       string            `json:"message" example:"The service is ready."`
	Timestamp     string            `json:"timestamp" format:"date-time"`
	Checks        map[string]string `json:"checks,omitzero" doc:"ok or failed for each condition of readiness; warning for a condition that fails without making the service unready."`
	Progress      *startProgress    `json:"progress,omitzero" doc:"How far a start is that brings records up to date; only while the service starts."`
	Nodes         []NodeHealth      `json:"nodes,omitzero" doc:"The nodes that use the same PostgreSQL database; missing with a data directory."`
}

const timestampFormat = "2006-01-02T15:04:05.000Z07:00"

// ownEndpoints are the rows of the server itself. They are public because probes and scrapers have no token; metrics check
// the caller themselves.
func (s *Server) ownEndpoints() []endpoint.Endpoint {
	return []endpoint.Endpoint{
		{Name: "operations.health", Method: http.MethodGet, Path: "/healthz", Access: access.Public, Limit: ratelimit.None,
			Tag: "Operations", Summary: "Check liveness",
			Handle: endpoint.JSON(http.StatusOK, s.healthz)},
		{Name: "operations.ready", Method: http.MethodGet, Path: "/readyz", Access: access.Public, Limit: ratelimit.None,
			Tag: "Operations", Summary: "Check readiness",
			Doc: endpoint.Doc{Description: "Checks the database and the queue of notifications. With several nodes on one database it lists them.", Answers: []endpoint.Answer{
				{Status: http.StatusOK, Body: health{}, Says: "Ready."}, {Status: http.StatusServiceUnavailable, Body: health{}, Says: "Not ready, or shutting down."},
			}},
			Handle: endpoint.JSON(http.StatusOK, s.readyz)},
		{Name: "operations.metrics", Method: http.MethodGet, Path: "/metrics", Access: access.Public, Limit: ratelimit.None,
			Tag: "Operations", Summary: "Get metrics",
			Faults: []apierr.Kind{apierr.Unauthorized, apierr.NoAccess},
			Doc: endpoint.Doc{
				Description: "Metrics are in the Prometheus text format, for administrators. Prometheus itself reads them without a token from the address of the setting metrics.listen.",
				Answers: []endpoint.Answer{{Status: http.StatusOK, Media: "text/plain", Says: "The metrics.",
					Example: "kontor_http_requests_total{endpoint=\"customers.get\",status=\"2xx\"} 42\n"}},
			},
			Handle: endpoint.Raw(nil, s.writeMetrics)},
		// Public: the document contains nothing that the program's source does not, and is as cheap as a file of the console.
		{Name: "operations.openapi", Method: http.MethodGet, Path: "/openapi.json", Access: access.Public, Limit: ratelimit.None,
			Tag: "Operations", Summary: "Get the OpenAPI document",
			Doc: endpoint.Doc{Headers: []string{"If-None-Match"}, Answers: []endpoint.Answer{
				{Status: http.StatusOK, Says: "The OpenAPI document.", Example: map[string]any{"openapi": "3.1.0"}}, {Status: http.StatusNotModified},
			}},
			Handle: endpoint.Raw(nil, s.serveDocument)},
	}
}

func (s *Server) healthz(context.Context, endpoint.None) (health, error) {
	return health{OverallStatus: "healthy", Message: "ok", Timestamp: s.timestamp()}, nil
}

// readyz runs all probes. The cause of a failure goes to the log only, since the answer is public.
func (s *Server) readyz(ctx context.Context, _ endpoint.None) (endpoint.Result, error) {
	status, body := http.StatusOK, health{OverallStatus: "healthy", Timestamp: s.timestamp(), Checks: map[string]string{}}
	for _, probe := range s.Probes {
		body.Checks[probe.Name] = "ok"
		if err := probe.Check(ctx); err != nil {
			if probe.Advisory {
				body.Checks[probe.Name] = "warning"
				continue
			}
			s.Log.Warn("not ready", "check", probe.Name, "cause", err)
			body.Checks[probe.Name] = "failed"
			status, body.OverallStatus = http.StatusServiceUnavailable, "unhealthy"
		}
	}
	key := "health.ready"
	if status != http.StatusOK {
		key = "health.not_ready"
	}
	body.Message = s.Texts.Text(endpoint.Language(ctx), key, nil)
	if s.Nodes != nil {
		body.Nodes = s.Nodes()
	}
	return endpoint.Result{Status: status, Body: body}, nil
}

func (s *Server) timestamp() string { return s.Now().UTC().Format(timestampFormat) }

const (
	// retryStarting is the Retry-After of a service that starts, in seconds.
	retryStarting = "5"
	// maxStarting bounds the connections while the service starts. The engine closes others at once.
	maxStarting = 256
	// maxStartingBody is what is read of a body ahead of the answer.
	maxStartingBody = 1 << 10
	// startingTimeout bounds a request and its answer.
	startingTimeout = 5 * time.Second
	// startingGrace is how long running answers have when the server is ready. None takes as long.
	startingGrace = 200 * time.Millisecond
)

// Starting answers requests while a long start brings the database up to date: /healthz is 200, everything else 503, and /readyz says how
// far the start is. The listener stays open for the server that follows.
type Starting struct {
	engine   fasthttp.Server
	config   *tls.Config // nil: without TLS
	listener *Lent
	log      *slog.Logger
	texts    *locales.Bundle
	mu       sync.Mutex
	begun    bool
	stopped  bool
	ended    chan struct{} // closed when nothing is accepted any more
	progress atomic.Pointer[startProgress]
}

// startProgress is how far a start is.
type startProgress struct {
	Done    int `json:"done" doc:"Records that the start has brought up to date."`
	Total   int `json:"total" doc:"All records that it has to bring up to date."`
	Percent int `json:"percent" minimum:"0" maximum:"100"`
}

// NewStarting returns the answers for a listener. Requests wait until Begin.
func NewStarting(listener net.Listener, config *tls.Config, log *slog.Logger) *Starting {
	s := &Starting{listener: Lend(listener), config: config, log: log, texts: locales.Lazy(), ended: make(chan struct{})}
	s.engine = fasthttp.Server{
		StreamRequestBody: true, MaxRequestBodySize: maxStartingBody, // bodies are not read
		Handler: s.answer, Concurrency: maxStarting, ReadTimeout: startingTimeout, WriteTimeout: startingTimeout,
		DisableKeepalive:      true, // the next connection may be to the server that follows
		NoDefaultServerHeader: true,
		Logger:                engineLog{log},
	}
	return s
}

// Begin begins to answer. Later calls do nothing.
func (s *Starting) Begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun || s.stopped {
		return
	}
	s.begun = true
	s.log.Info("the start takes long; requests are answered with 503 meanwhile, and /readyz shows the progress")
	go s.serve()
}

func (s *Starting) serve() {
	defer close(s.ended)
	listener := net.Listener(s.listener)
	if s.config != nil {
		listener = tls.NewListener(listener, s.config)
	}
	if err := s.engine.Serve(listener); err != nil && !s.listener.stopped.Load() {
		s.log.Warn("requests are not answered during the start", "err", err)
	}
}

// Report says how many of the records have been brought up to date, and begins to answer.
func (s *Starting) Report(done, total int) {
	percent := 100
	if total > 0 {
		percent = min(100*done/total, 100)
	}
	s.progress.Store(&startProgress{Done: done, Total: total, Percent: percent})
	s.Begin()
}

// Stop ends the answers, and frees the listener for the server. Begin does nothing from then on.
func (s *Starting) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return
	}
	s.stopped = true
	if !s.begun {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), startingGrace)
	defer cancel()
	_ = s.engine.ShutdownWithContext(ctx) // what still runs has startingTimeout
	<-s.ended
	s.listener.Free()
}

// answer answers a request.
func (s *Starting) answer(c *fasthttp.RequestCtx) {
	lang := locales.Match(string(c.Request.Header.Peek("Accept-Language")))
	progress := s.progress.Load()
	state := health{OverallStatus: "healthy", Message: "ok", Timestamp: time.Now().UTC().Format(timestampFormat)}
	status, body := http.StatusServiceUnavailable, any(nil)
	switch string(c.Path()) {
	case "/healthz":
		status, body = http.StatusOK, state
	case "/readyz":
		state.OverallStatus, state.Message = "unhealthy", s.texts.Text(lang, "health.starting", nil)
		state.Checks, state.Progress = map[string]string{"start": "failed"}, progress
		body = state
	default:
		e := apierr.Of(apierr.Starting)
		if progress != nil {
			e = apierr.Starting.Detail("percent", progress.Percent)
		}
		body = (&Server{Options: Options{Texts: s.texts}}).envelopeOf(lang, e)
	}
	data, err := json.Marshal(body, json.Deterministic(true))
	if err != nil {
		s.log.Error("an answer could not be encoded", "err", err)
		status, data = http.StatusServiceUnavailable, []byte(`{}`)
	}
	header := &c.Response.Header
	header.SetContentType("application/json")
	header.Set("Content-Language", lang)
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	if status != http.StatusOK {
		header.Set("Retry-After", retryStarting)
	}
	c.SetStatusCode(status)
	c.SetBody(data)
}

// Lent is a listener that a server may close while connections wait for the next server on the same address.
type Lent struct {
	net.Listener
	mu      sync.RWMutex // held for reading by Accept
	stopped atomic.Bool
}

// Lend returns a listener for one server.
func Lend(listener net.Listener) *Lent { return &Lent{Listener: listener} }

// Accept returns the next connection, until Close.
func (l *Lent) Accept() (net.Conn, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.stopped.Load() {
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil && l.stopped.Load() {
		return nil, net.ErrClosed
	}
	return c, err
}

// Close makes Accept return, and waits until it has. The address stays open.
func (l *Lent) Close() error {
	l.stopped.Store(true)
	if err := l.limit(time.Unix(1, 0)); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return nil
}

// Free lets others accept connections again.
func (l *Lent) Free() { _ = l.limit(time.Time{}) } // it cannot fail after Close has not

func (l *Lent) limit(at time.Time) error {
	if limited, ok := l.Listener.(interface{ SetDeadline(at time.Time) error }); ok {
		return limited.SetDeadline(at)
	}
	return errors.ErrUnsupported
}

// drainGrace is how long new requests are still answered, with 503, before the listener closes: a load balancer that
// probes once a second notices.
const drainGrace = time.Second

// Shutdown drains the server: new requests get 503, streams close, running requests finish. It returns
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

// checkDraining answers new requests while the service shuts down, with the text of the row or with the health map. Liveness
// and metrics are still served.
func (s *Server) checkDraining(r *call) error {
	if !s.draining.Load() || r.row.Name == "operations.health" || r.row.Name == "operations.metrics" {
		return nil
	}
	response := r.fiber.Response()
	response.Header.Set(fiber.HeaderRetryAfter, strconv.Itoa(wholeSeconds(drainGrace)))
	response.Header.Set(fiber.HeaderCacheControl, "no-store")
	r.fiber.Context().SetConnectionClose()
	if r.row.Draining != "" {
		response.SetStatusCode(http.StatusServiceUnavailable)
		response.Header.SetContentType(fiber.MIMETextPlainCharsetUTF8)
		response.SetBodyString(r.row.Draining)
		return errAnswered
	}
	body, _ := json.Marshal(health{OverallStatus: "unhealthy", Timestamp: s.timestamp(), // a struct of strings cannot fail
		Message: s.Texts.Text(r.Language, "health.shutting_down", nil)})
	s.writeJSON(r, http.StatusServiceUnavailable, body)
	return errAnswered
}
