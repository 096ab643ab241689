package server

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/go-json-experiment/json"
	"github.com/gofiber/fiber/v2"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
)

// health is the map that tells whether the service takes requests.
type health struct {
	OverallStatus string            `json:"overall_status" enum:"healthy,unhealthy"`
	Message       string            `json:"message" example:"The service is ready."`
	Timestamp     string            `json:"timestamp" format:"date-time"`
	Checks        map[string]string `json:"checks,omitzero" doc:"ok or failed for each condition of readiness; warning for one that does not hold and needs somebody's attention."`
}

const timestampFormat = "2006-01-02T15:04:05.000Z07:00"

// ownEndpoints are the rows of the server itself. They are public because probes and scrapers carry no token; metrics
// look at the caller themselves.
func (s *Server) ownEndpoints() []endpoint.Endpoint {
	return []endpoint.Endpoint{
		{Name: "operations.health", Method: http.MethodGet, Path: "/healthz", Access: access.Public, Limit: ratelimit.None,
			Tag: "Operations", Summary: "Tell that the process runs.",
			Handle: endpoint.JSON(http.StatusOK, s.healthz)},
		{Name: "operations.ready", Method: http.MethodGet, Path: "/readyz", Access: access.Public, Limit: ratelimit.None,
			Tag: "Operations", Summary: "Tell whether database and queue are ready for requests.",
			Doc: endpoint.Doc{Answers: []endpoint.Answer{
				{Status: http.StatusOK, Body: health{}, Says: "Ready."}, {Status: http.StatusServiceUnavailable, Body: health{}, Says: "Not ready, or shutting down."},
			}},
			Handle: endpoint.JSON(http.StatusOK, s.readyz)},
		{Name: "operations.metrics", Method: http.MethodGet, Path: "/metrics", Access: access.Public, Limit: ratelimit.None,
			Tag: "Operations", Summary: "Give counters in the Prometheus text format, to loopback or to administrators.",
			Faults: []apierr.Kind{apierr.Unauthorized, apierr.NoAccess},
			Doc: endpoint.Doc{
				Description: "A request from another machine needs the bearer token of an administrator.",
				Answers: []endpoint.Answer{{Status: http.StatusOK, Media: "text/plain", Says: "The counters.",
					Example: "kontor_http_requests_total{endpoint=\"customers.get\",status=\"2xx\"} 42\n"}},
			},
			Handle: endpoint.Raw(nil, s.writeMetrics)},
		// The document says nothing that the program's source does not, and is as cheap as a file of the console.
		{Name: "operations.openapi", Method: http.MethodGet, Path: "/openapi.json", Access: access.Public, Limit: ratelimit.None,
			Tag: "Operations", Summary: "Give this document.",
			Doc: endpoint.Doc{Headers: []string{"If-None-Match"}, Answers: []endpoint.Answer{
				{Status: http.StatusOK, Says: "The OpenAPI document.", Example: map[string]any{"openapi": "3.1.0"}}, {Status: http.StatusNotModified},
			}},
			Handle: endpoint.Raw(nil, s.serveDocument)},
	}
}

func (s *Server) healthz(context.Context, endpoint.None) (health, error) {
	return health{OverallStatus: "healthy", Message: "ok", Timestamp: s.timestamp()}, nil
}

// readyz runs all probes. The cause of a failed one goes to the log: the answer is public.
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
	return endpoint.Result{Status: status, Body: body}, nil
}

func (s *Server) timestamp() string { return s.Now().UTC().Format(timestampFormat) }

// refuseDraining answers new requests while the service shuts down. A row may have a text of its own for it. Liveness
// and metrics go on.
func (s *Server) refuseDraining(r *call) bool {
	if r.row.Name == "operations.health" || r.row.Name == "operations.metrics" {
		return false
	}
	response := r.fiber.Response()
	response.Header.Set(fiber.HeaderRetryAfter, strconv.Itoa(seconds(drainGrace)))
	response.Header.Set(fiber.HeaderCacheControl, "no-store")
	r.fiber.Context().SetConnectionClose()
	if r.row.Draining != "" {
		response.SetStatusCode(http.StatusServiceUnavailable)
		response.Header.SetContentType(fiber.MIMETextPlainCharsetUTF8)
		response.SetBodyString(r.row.Draining)
		return true
	}
	body, _ := json.Marshal(health{OverallStatus: "unhealthy", Timestamp: s.timestamp(), // a struct of strings cannot fail
		Message: s.Texts.Text(r.Language, "health.shutting_down", nil)})
	s.writeJSON(r, http.StatusServiceUnavailable, body)
	return true
}

// writeMetrics answers loopback peers and administrators. What comes through a proxy on the same machine is no loopback
// peer, whatever the proxy says of the client.
func (s *Server) writeMetrics(ctx context.Context, r *endpoint.Request) error {
	request := endpoint.Of(ctx)
	if !request.Address.IsLoopback() || proxied(&r.Fiber.Request().Header) {
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

// requestMetrics counts requests by row and class of status, and measures them by row.
type requestMetrics struct {
	counts    []*[6]*metrics.Counter // by table index and status / 100; the last is "no row"
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

// logRequest writes one line for a request: what was called and how it ended, no address, no id of a person.
func (s *Server) logRequest(r *call, name string, status int, took time.Duration) {
	level := slog.LevelInfo
	if status >= http.StatusInternalServerError {
		level = slog.LevelWarn
	}
	s.Log.LogAttrs(context.Background(), level, "request", slog.String("method", r.fiber.Method()), slog.String("endpoint", name),
		slog.Int("status", status), slog.Float64("ms", float64(took.Microseconds())/1000), slog.String("request_id", r.RequestID))
}
