package server

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/VictoriaMetrics/metrics"

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

// requestMetrics counts requests by row and class of status, and measures them by row.
type requestMetrics struct {
	counts    []*[6]*metrics.Counter // by index in the table and status / 100; the last is for requests without a row
	durations []*metrics.Histogram
}

func newRequestMetrics(table []endpoint.Endpoint) *requestMetrics {
	m := &requestMetrics{}
	for i := range len(table) + 1 {
		name := "none"
		if i < len(table) {
			name = table[i].Name
		}
		var byStatus [6]*metrics.Counter
		for class := range byStatus {
			byStatus[class] = metrics.GetOrCreateCounter(
				`kontor_http_requests_total{endpoint="` + name + `",status="` + strconv.Itoa(class) + `xx"}`)
		}
		m.counts = append(m.counts, &byStatus)
		m.durations = append(m.durations, metrics.GetOrCreateHistogram(`kontor_http_request_seconds{endpoint="`+name+`"}`))
	}
	return m
}

func (m *requestMetrics) count(row *route, status int, took time.Duration) {
	at := len(m.counts) - 1
	if row != nil {
		at = row.index
	}
	m.counts[at][min(max(status/100, 0), 5)].Inc()
	m.durations[at].Update(took.Seconds())
}

// writeMetrics answers loopback clients and administrators. A request that came through a proxy is not from loopback, even if
// the proxy runs on the same machine.
func (s *Server) writeMetrics(ctx context.Context, r *endpoint.Request) error {
	if !endpoint.Of(ctx).Address.IsLoopback() || proxied(&r.Fiber.Request().Header) {
		caller, err := s.Auth.Bearer(r.Fiber)
		if err != nil {
			return err
		}
		if !caller.Administrator() {
			return apierr.NoAccess
		}
	}
	response := r.Fiber.Response()
	response.Header.SetContentType("text/plain; version=0.0.4; charset=utf-8")
	metrics.WritePrometheus(response.BodyWriter(), true)
	return nil
}
