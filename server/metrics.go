package server

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/metrics"
)

// finish counts and logs a request.
func (s *Server) finish(r *call) {
	took := time.Since(r.began)
	status := r.fiber.Response().StatusCode()
	s.metrics.count(r.row, status, took)
	s.reportEvents(r, status)
	s.logRequest(r, status, took)
	s.noteRequest(r, status, took)
}

// logRequest writes the log line of a request. It names the row, not the path as called, and contains no personal data.
func (s *Server) logRequest(r *call, status int, took time.Duration) {
	level := slog.LevelInfo
	if status >= http.StatusInternalServerError {
		level = slog.LevelWarn
	}
	name := "-"
	if r.row != nil {
		name = r.row.key
	}
	s.Log.LogAttrs(context.Background(), level, "request", slog.String("method", r.fiber.Method()), slog.String("endpoint", name),
		slog.Int("status", status), slog.Float64("ms", float64(took.Microseconds())/1000), slog.String("request_id", r.RequestID))
}

// requestBuckets are the upper bounds of the histogram of durations, in seconds. Most requests take a millisecond.
var requestBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

// requestMetrics counts requests by row and class of status, and measures them by row. The series of a row begin with its
// first request. Those of 5xx always exist, because an alert needs their zero.
type requestMetrics struct {
	names []string     // of the rows, and noEndpoint
	rows  []rowMetrics // by the index of the row; the last one counts requests without a row
}

// rowMetrics are the numbers of a row.
type rowMetrics struct {
	counts   [len(classes)]atomic.Uint64
	duration atomic.Pointer[metrics.Histogram] // nil before the first request
}

func newRequestMetrics(table []endpoint.Endpoint) *requestMetrics {
	m := &requestMetrics{rows: make([]rowMetrics, len(table)+1)}
	for i := range table {
		m.names = append(m.names, table[i].Name)
	}
	m.names = append(m.names, noEndpoint)
	return m
}

// noEndpoint is the label of requests without a row.
const noEndpoint = "none"

// classes are the labels of status / 100.
var classes = [6]string{"0xx", "1xx", "2xx", "3xx", "4xx", "5xx"}

func (m *requestMetrics) count(row *route, status int, took time.Duration) {
	of := &m.rows[len(m.rows)-1]
	if row != nil {
		of = &m.rows[row.index]
	}
	of.counts[min(max(status/100, 0), len(classes)-1)].Add(1)
	duration := of.duration.Load()
	for duration == nil {
		of.duration.CompareAndSwap(nil, metrics.NewHistogram(requestBuckets))
		duration = of.duration.Load()
	}
	duration.Observe(took.Seconds())
}

// add adds the series to a scrape.
func (m *requestMetrics) add(s *metrics.Scrape) {
	for i, name := range m.names {
		row := &m.rows[i]
		for class := range classes {
			if n := row.counts[class].Load(); n > 0 || class == len(classes)-1 {
				s.Counter("kontor_http_requests_total", "Answered requests by endpoint and class of status.", float64(n), "endpoint", name, "status", classes[class])
			}
		}
		if duration := row.duration.Load(); duration != nil {
			s.Histogram("kontor_http_request_seconds", "Duration of requests by endpoint.", duration, "endpoint", name)
		}
	}
}

// addCertificate adds the end of the certificate. The metric exists without TLS, too, so that its alert is always defined.
func (s *Server) addCertificate(scrape *metrics.Scrape) {
	end := 0.0
	if s.Expires != nil && !s.Expires().IsZero() {
		end = float64(s.Expires().Unix())
	}
	scrape.Gauge("kontor_certificate_expires_timestamp_seconds", "End of the certificate of this server; 0 if it has none.", end)
}

// WriteMetrics writes all metrics in the text format of Prometheus, see [metrics.MediaType].
func (s *Server) WriteMetrics(w io.Writer) error {
	sources := []metrics.Source{metrics.Runtime, metrics.Process, s.metrics.add, s.connections.add, s.addCertificate}
	if s.Metrics != nil {
		sources = append(sources, s.Metrics)
	}
	return metrics.Write(w, sources...)
}

// writeMetrics answers administrators. The address of the client does not matter, because it is the proxy's address if the
// proxy reports none. The setting metrics.listen has an address for scrapers.
func (s *Server) writeMetrics(_ context.Context, r *endpoint.Request) error {
	caller, err := s.Auth.Bearer(r.Fiber)
	if err != nil {
		return err
	}
	if !caller.Administrator() {
		return apierr.NoAccess
	}
	response := r.Fiber.Response()
	response.Header.SetContentType(metrics.MediaType)
	return s.WriteMetrics(response.BodyWriter())
}

// Requests keeps answered requests for administrators.
type Requests interface {
	// Note is called once for each answered request, before its connection takes the next one. It must be quick, must not keep
	// anything of the request that it does not copy, and must be safe for concurrent use.
	Note(a endpoint.Answered)
}

// noteRequest passes an answered request on. Files of the console are no requests of the API.
func (s *Server) noteRequest(r *call, status int, took time.Duration) {
	if s.Requests == nil || r.row == nil && r.refusal == nil {
		return
	}
	a := endpoint.Answered{At: r.Now, Took: took, Status: status, Refusal: r.refusal, Caller: r.Caller, RequestID: r.RequestID,
		Ignored: r.ignored, Fiber: r.fiber}
	if r.row != nil {
		a.Row = &r.row.Endpoint
	}
	s.Requests.Note(a)
}

const (
	// explainHeader asks for an explanation, with the value "true".
	explainHeader = "X-Explain"
	// explanationHeader has it: JSON on one line, an array of steps.
	explanationHeader = "X-Explanation"
)

// beginExplanation prepares the explanation of a list: for an administrator who asks for it, and for the log at the level debug. The header
// of all other callers has no effect: statements, and the time that single steps take, are not for them.
func (s *Server) beginExplanation(r *call) {
	if r.row.Method != http.MethodGet || !r.row.Handle.Listed() {
		return
	}
	thorough := r.asksForExplanation()
	if thorough || s.Log.Enabled(context.Background(), slog.LevelDebug) {
		r.Explanation = &endpoint.Explanation{Thorough: thorough}
	}
}

func (r *call) asksForExplanation() bool {
	return r.initials.may(explainHeader) && string(r.fiber.Request().Header.Peek(explainHeader)) == "true" && r.caller.Administrator()
}

// answerExplanation writes the explanation to the header of the answer, also of one that failed, and to the log.
func (s *Server) answerExplanation(r *call) {
	if r.Explanation == nil || len(r.Explanation.Steps) == 0 {
		return
	}
	if r.Explanation.Thorough {
		r.fiber.Response().Header.Set(explanationHeader, r.Explanation.Header())
	}
	r.Explanation.Log(func(attrs ...slog.Attr) {
		attrs = append(attrs, slog.String("endpoint", r.row.key), slog.String("request_id", r.RequestID))
		s.Log.LogAttrs(context.Background(), slog.LevelDebug, "list", attrs...)
	})
}
