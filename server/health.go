package server

import (
	"context"
	"net/http"
	"time"

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

// Node is a process that uses the same database. Its name is public.
type Node struct {
	Name     string
	Self     bool // this process
	Leads    bool // runs the jobs that run once for all nodes
	Lag      time.Duration
	Started  time.Time
	LeaseEnd time.Time // until then changes wait for it
}

// nodeHealth is a node in the answer of readiness.
type nodeHealth struct {
	Name       string `json:"name" example:"node-1"`
	Self       bool   `json:"self" doc:"True for the node that answers."`
	Leads      bool   `json:"leads" doc:"True for the node that runs the jobs that run once for all nodes."`
	LagMS      int64  `json:"lag_ms" doc:"Milliseconds since its last sign of life."`
	Started    string `json:"started" format:"date-time"`
	LeaseUntil string `json:"lease_until" format:"date-time" doc:"Until then the other nodes wait for it before they answer a change of rights or sessions."`
}

// health reports whether the service takes requests.
type health struct {
	OverallStatus string            `json:"overall_status" enum:"healthy,unhealthy"`
	Message       string            `json:"message" example:"The service is ready."`
	Timestamp     string            `json:"timestamp" format:"date-time"`
	Checks        map[string]string `json:"checks,omitzero" doc:"ok or failed for each condition of readiness; warning for a condition that fails without making the service unready."`
	Progress      *startProgress    `json:"progress,omitzero" doc:"How far a start is that brings records up to date; only while the service starts."`
	Nodes         []nodeHealth      `json:"nodes,omitzero" doc:"The nodes that use the same PostgreSQL database; missing with a data directory."`
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
	body.Nodes = s.nodes()
	return endpoint.Result{Status: status, Body: body}, nil
}

func (s *Server) nodes() (nodes []nodeHealth) {
	if s.Nodes == nil {
		return nil
	}
	for _, n := range s.Nodes() {
		nodes = append(nodes, nodeHealth{Name: n.Name, Self: n.Self, Leads: n.Leads, LagMS: n.Lag.Milliseconds(),
			Started: n.Started.UTC().Format(timestampFormat), LeaseUntil: n.LeaseEnd.UTC().Format(timestampFormat)})
	}
	return nodes
}

func (s *Server) timestamp() string { return s.Now().UTC().Format(timestampFormat) }
