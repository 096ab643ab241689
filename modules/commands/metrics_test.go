package commands_test

import (
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

func TestServe_ServesMetricsAtTheirOwnAddress(t *testing.T) {
	t.Parallel()
	p := start(t, nil, "--data.dir", filepath.Join(t.TempDir(), "data"))
	if status, _ := p.call(t, http.MethodGet, "/metrics", ""); status != http.StatusUnauthorized {
		t.Errorf("/metrics of the API without a token: %d", status)
	}
	own := &process{address: p.metrics}
	if status, body := own.call(t, http.MethodGet, "/metrics", ""); status != http.StatusOK || !strings.Contains(body, "kontor_store_stalled 0\n") {
		t.Errorf("/metrics: %d %.200s", status, body)
	}
	for _, path := range []string{"/", "/healthz", "/v1/users", "/metrics/x"} {
		if status, _ := own.call(t, http.MethodGet, path, ""); status != http.StatusNotFound {
			t.Errorf("%s at the address of the metrics: %d", path, status)
		}
	}
}

func TestServe_AMetricsAddressInUse(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := filepath.Join(t.TempDir(), "data")
	expectFailure(t, run(nil, "", "serve", "--server.listen=127.0.0.1:0", "--metrics.listen", taken.Addr().String(), "--data.dir", dir),
		"cannot listen on "+taken.Addr().String()+": address already in use")
	off := start(t, nil, "--data.dir", dir, "--metrics.listen=")
	if off.metrics != "" {
		t.Errorf("an empty setting opened %s", off.metrics)
	}
}
