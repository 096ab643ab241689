package commands_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"kontor/store/testenv"
)

// patient is a time for an answer that a busy machine keeps.
var patient = fmt.Sprintf("--timeout=%.0f", testenv.Limit().Seconds())

func TestReady_ReportsByItsExitCode(t *testing.T) {
	t.Parallel()
	p := start(t, nil, "--data.dir", filepath.Join(t.TempDir(), "data"))
	expectSuccess(t, run(nil, "", "ready", patient, "--server.listen", p.address), "ready\n")
	expectSuccess(t, run([]string{"KONTOR_SERVER_LISTEN=" + p.address}, "", "ready", patient), "ready\n")
	_, port, err := net.SplitHostPort(p.address)
	if err != nil {
		t.Fatal(err)
	}
	expectSuccess(t, run(nil, "", "ready", patient, "--server.listen", "0.0.0.0:"+port), "ready\n")
	unused := testenv.FreeAddress(t)
	expectFailure(t, run(nil, "", "ready", patient, "--server.listen", unused), "no server answers at http://"+unused)
	expectFailure(t, run(nil, "", "ready", "--server.listen=127.0.0.1:0"), "port 0")
	expectFailure(t, run(nil, "", "ready", "--timeout=0"), "--timeout must be from 1 to 3600")
}

func TestReady_UnderstandsOnlyKontor(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		status     int
		body, want string
	}{
		"not ready":         {503, `{"overall_status":"unhealthy","checks":{"queue":"failed","database":"failed","log_size":"warning"}}`, "is not ready; failed: database, queue"},
		"shutting down":     {503, `{"overall_status":"unhealthy"}`, "is shutting down"},
		"another program":   {200, "<html>", "is not Kontor: /readyz returned status 200"},
		"a redirect":        {302, "", "is not Kontor: /readyz returned status 302"},
		"an endless answer": {200, strings.Repeat(" ", 1<<20) + `{"overall_status":"healthy"}`, "is not Kontor"},
	} {
		t.Run(name, func(t *testing.T) {
			web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(tc.status)
				_, _ = w.Write([]byte(tc.body))
			}))
			defer web.Close()
			expectFailure(t, run(nil, "", "ready", patient, "--server.listen", web.Listener.Addr().String()), tc.want)
		})
	}
	warned := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"overall_status":"healthy","checks":{"log_size":"warning","database":"ok","cluster":"warning"}}`))
	}))
	defer warned.Close()
	expectSuccess(t, run(nil, "", "ready", patient, "--server.listen", warned.Listener.Addr().String()), "ready; warning: cluster, log_size\n")
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	expectFailure(t, run(nil, "", "ready", "--timeout=1", "--server.listen", silent.Addr().String()), "did not answer")
}
