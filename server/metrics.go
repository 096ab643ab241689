package server

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/expfmt"

	"kontor/server/apierr"
	"kontor/server/endpoint"
)

// finish counts and logs a request.
func (s *Server) finish(r *call) {
	took := time.Since(r.began)
	status := r.fiber.Response().StatusCode()
	s.metrics.count(r.row, status, took)
	s.reportEvents(r, status)
	s.logRequest(r, status, took)
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
	counts    *prometheus.CounterVec
	durations *prometheus.HistogramVec
	rows      []rowMetrics // by the index of the row
}

// rowMetrics are the series of a row, once they have begun.
type rowMetrics struct {
	counts   [len(classes)]atomic.Pointer[prometheus.Counter]
	duration atomic.Pointer[prometheus.Observer]
}

func newRequestMetrics(r prometheus.Registerer, table []endpoint.Endpoint) *requestMetrics {
	m := &requestMetrics{
		rows: make([]rowMetrics, len(table)),
		counts: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "kontor_http_requests_total",
			Help: "Answered requests by endpoint and class of status."}, []string{"endpoint", "status"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "kontor_http_request_seconds",
			Help: "Duration of requests by endpoint.", Buckets: requestBuckets}, []string{"endpoint"}),
	}
	r.MustRegister(m.counts, m.durations)
	m.counts.WithLabelValues(noEndpoint, classes[5])
	for i := range table {
		m.counts.WithLabelValues(table[i].Name, classes[5])
	}
	return m
}

// noEndpoint is the label of requests without a row.
const noEndpoint = "none"

// classes are the labels of status / 100.
var classes = [6]string{"0xx", "1xx", "2xx", "3xx", "4xx", "5xx"}

func (m *requestMetrics) count(row *route, status int, took time.Duration) {
	class := min(max(status/100, 0), len(classes)-1)
	if row == nil {
		m.counts.WithLabelValues(noEndpoint, classes[class]).Inc()
		m.durations.WithLabelValues(noEndpoint).Observe(took.Seconds())
		return
	}
	known := &m.rows[row.index]
	count, duration := known.counts[class].Load(), known.duration.Load()
	if count == nil {
		first := m.counts.WithLabelValues(row.Name, classes[class])
		count = &first
		known.counts[class].Store(count)
	}
	if duration == nil {
		first := m.durations.WithLabelValues(row.Name)
		duration = &first
		known.duration.Store(duration)
	}
	(*count).Inc()
	(*duration).Observe(took.Seconds())
}

// certificateEnd is the metric of the certificate. It exists without TLS, too, so that its alert is always defined.
func (s *Server) certificateEnd() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "kontor_certificate_expires_timestamp_seconds",
		Help: "End of the certificate of this server; 0 if it has none."}, func() float64 {
		if s.Expires == nil || s.Expires().IsZero() {
			return 0
		}
		return float64(s.Expires().Unix())
	})
}

// newRegistry returns the metrics of the process and of the Go runtime.
func newRegistry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// WriteMetrics writes all metrics in the Prometheus text format. Metrics that cannot be read are left out, and reported in the log.
func (s *Server) WriteMetrics(w io.Writer) error {
	sources := prometheus.Gatherers{s.registry}
	if s.Metrics != nil {
		sources = append(sources, s.Metrics)
	}
	families, err := sources.Gather()
	if err != nil {
		s.Log.Error("some metrics could not be read", "cause", err)
	}
	for _, family := range families {
		if _, err := expfmt.MetricFamilyToText(w, family); err != nil {
			return err
		}
	}
	return nil
}

// MetricsType is the media type of [Server.WriteMetrics].
const MetricsType = "text/plain; version=0.0.4; charset=utf-8"

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
	response.Header.SetContentType(MetricsType)
	return s.WriteMetrics(response.BodyWriter())
}
