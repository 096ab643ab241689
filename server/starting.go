package server

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/valyala/fasthttp"

	"kontor/locales"
	"kontor/server/apierr"
)

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
	listener *lentListener
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
	s := &Starting{listener: &lentListener{Listener: listener}, config: config, log: log, texts: locales.Lazy(), ended: make(chan struct{})}
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
	s.listener.free()
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

// lentListener is a listener that a server does not close.
type lentListener struct {
	net.Listener
	stopped atomic.Bool
}

// Accept returns the next connection, until Close.
func (l *lentListener) Accept() (net.Conn, error) {
	if l.stopped.Load() {
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil && l.stopped.Load() {
		return nil, net.ErrClosed
	}
	return c, err
}

// Close ends Accept. Connections wait for the next server.
func (l *lentListener) Close() error {
	l.stopped.Store(true)
	return l.limit(time.Unix(1, 0))
}

// free lets others accept connections again.
func (l *lentListener) free() { _ = l.limit(time.Time{}) } // it cannot fail after Close has not

func (l *lentListener) limit(at time.Time) error {
	if limited, ok := l.Listener.(interface{ SetDeadline(at time.Time) error }); ok {
		return limited.SetDeadline(at)
	}
	return errors.ErrUnsupported
}
