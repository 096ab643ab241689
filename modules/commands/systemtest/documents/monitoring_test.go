package documents_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"kontor/modules/commands/systemtest"
	"kontor/store/testenv"
)

// promtool runs a command of Prometheus' tool with an input.
func promtool(t *testing.T, input string, args ...string) {
	t.Helper()
	cmd := exec.Command(testenv.Tool(t, "promtool"), args...) // Debian's package prometheus
	cmd.Stdin = strings.NewReader(input)
	if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(out), "no help text") {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func TestMonitoring_MetricsAreInThePrometheusFormat(t *testing.T) {
	p := systemtest.Start(t, filepath.Join(t.TempDir(), "data"))
	p.Client().Do(t, "GET", "/healthz", "", 200)
	got := p.Scraper().Do(t, "GET", "/metrics", "", 200)
	for _, want := range []string{
		"# HELP kontor_http_request_seconds Duration of requests by endpoint.\n# TYPE kontor_http_request_seconds histogram\n",
		`kontor_http_request_seconds_bucket{endpoint="operations.health",le="+Inf"} `, `kontor_http_requests_total{endpoint="operations.health",status="2xx"} `,
		`kontor_http_requests_total{endpoint="customers.get",status="5xx"} 0`, `kontor_queue_dead_letters{channel="sms"} 0`,
		`kontor_job_runs_total{job="auth.purge",outcome="failed"} 0`, "go_goroutines ", "process_start_time_seconds ",
	} {
		if !strings.Contains(got.Body, want) {
			t.Errorf("the metrics do not contain %s", want)
		}
	}
	for _, never := range []string{"vmrange", `status="0xx"`, `status="1xx"`, `{endpoint="customers.get",le=`} {
		if strings.Contains(got.Body, never) {
			t.Errorf("the metrics contain %s", never)
		}
	}
	if got.Header.Get("Content-Type") != "text/plain; version=0.0.4; charset=utf-8" {
		t.Errorf("Content-Type %s", got.Header.Get("Content-Type"))
	}
	promtool(t, got.Body, "check", "metrics")
}

func TestMonitoring_AlertRulesPassTheirTests(t *testing.T) {
	promtool(t, "", "check", "rules", testenv.Path("docs/monitoring/alerts.yml"))
	promtool(t, "", "test", "rules", testenv.Path("docs/monitoring/alerts_test.yml"))
}

// The alert rules and the dashboard use only series that a new server has, except for the durations, which begin with the
// first request to an endpoint.
func TestMonitoring_RulesAndDashboardUseSeriesThatExist(t *testing.T) {
	p := systemtest.Start(t, filepath.Join(t.TempDir(), "data"))
	p.Client().Do(t, "GET", "/healthz", "", 200)
	page := p.Scraper().Do(t, "GET", "/metrics", "", 200).Body
	names := regexp.MustCompile(`\b(kontor|process|go)_[a-z_]+\b`)
	rules, err := os.ReadFile(testenv.Path("docs/monitoring/alerts.yml"))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(testenv.Path("docs/monitoring/dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(raw, &dashboard); err != nil || len(dashboard.Panels) == 0 {
		t.Fatalf("the dashboard has %d panels, %v", len(dashboard.Panels), err)
	}
	used := string(rules)
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			used += "\n" + target.Expr
		}
	}
	for _, name := range names.FindAllString(used, -1) {
		if !strings.Contains(page, "\n"+name+"{") && !strings.Contains(page, "\n"+name+" ") {
			t.Errorf("a new server has no series %s", name)
		}
	}
}
