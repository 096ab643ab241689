package commands_test

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestClock_MovesARunningSandboxAndSurvivesARestart(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	environ := []string{"KONTOR_ADMIN_PASSWORD=seven plain words nobody knows"}
	on := []string{"--data.dir", dir}
	expectFailure(t, run(nil, "", append([]string{"clock", "show"}, on...)...), "kontor serve --sandbox")
	p := start(t, environ, append([]string{"--sandbox"}, on...)...)
	began := sandboxTime(t, p)
	expectSuccess(t, run(nil, "", append([]string{"clock", "show"}, on...)...), "T")
	for words, want := range map[string]string{
		"advance soon": "not a duration", "advance 0d": "longer than zero", "advance 11y": "10 years", "to 2001-01-01": "does not go back", "to later": "not a date-time",
	} {
		expectFailure(t, run(nil, "", append(append([]string{"clock"}, strings.Fields(words)...), on...)...), want)
	}
	expectSuccess(t, run(nil, "", append([]string{"clock", "advance", "1mo2w"}, on...)...), "the sandbox went from ")
	moved := sandboxTime(t, p)
	if least := began.AddDate(0, 1, 14); moved.Before(least) || moved.After(least.Add(time.Hour)) {
		t.Errorf("it went from %s to %s, want %s", began, moved, least)
	}
	p.stop()

	// On a busy machine, the log says first that the start takes long.
	if o := run(nil, "", append([]string{"serve", "--server.listen=127.0.0.1:0"}, on...)...); o.code != 1 || !strings.Contains(o.stderr, "is a sandbox") {
		t.Errorf("without --sandbox: exit %d, %q", o.code, o.stderr)
	}
	expectSuccess(t, run(nil, "", append([]string{"check"}, on...)...), "is intact")
	expectSuccess(t, run(nil, "", append([]string{"apikey", "list"}, on...)...), "")
	again := start(t, environ, append([]string{"--sandbox"}, on...)...)
	if now := sandboxTime(t, again); now.Before(moved) {
		t.Errorf("after a restart it is %s, before %s", now, moved)
	}
}

func TestClock_NeedsASandbox(t *testing.T) {
	t.Parallel()
	dir := newDataDir(t)
	p := start(t, nil, "--data.dir", dir)
	for _, words := range []string{"show", "advance 1d", "to 2050-01-01"} {
		expectFailure(t, run(nil, "", append(append([]string{"clock"}, strings.Fields(words)...), "--data.dir", dir)...), "the server is no sandbox")
	}
	if status, body := p.call(t, http.MethodPost, "/v1/sandbox/clock", `{"advance":"P1D"}`); status != http.StatusNotFound {
		t.Errorf("%d %s", status, body)
	}
}

// sandboxTime returns the time that the server shows.
func sandboxTime(t *testing.T, p *process) time.Time {
	t.Helper()
	_, body := p.call(t, http.MethodGet, "/healthz", "")
	var health struct{ Timestamp time.Time }
	if err := json.Unmarshal([]byte(body), &health); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return health.Timestamp
}
