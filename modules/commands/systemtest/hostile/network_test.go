package hostile_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"kontor/modules/commands/systemtest"
)

// TestHostile_Proxies sends headers of misconfigured and hostile proxies. The client address of a request decides about
// rate limits, and no header opens /metrics.
func TestHostile_Proxies(t *testing.T) {
	behind := systemtest.Start(t, filepath.Join(t.TempDir(), "behind"), "--server.trusted_proxies=127.0.0.1", "--server.base_url=https://bank.example")
	direct := systemtest.Start(t, filepath.Join(t.TempDir(), "direct"))
	var attacks []systemtest.Attack
	for _, forwarded := range []string{
		"unknown", "", " ", "_secret", "127.0.0.1", "127.0.0.1:80", "::1", "[::1]", "[::1]:443", "::ffff:127.0.0.1", "localhost", "203.0.113.7:51234",
		"127.0.0.1, unknown", "unknown, 127.0.0.1", ",", "0.0.0.0", "[::1", "127.1", "fe80::1%lo",
	} {
		for name, p := range map[string]*systemtest.Process{"behind a proxy": behind, "without a proxy": direct} {
			attacks = append(attacks, systemtest.Attack{Name: name + ", X-Forwarded-For: " + forwarded, By: p.Client("X-Forwarded-For", forwarded), Method: "GET", Path: "/metrics",
				Status: 401, Code: "common.unauthorized", Excludes: []string{"kontor_http"}})
		}
	}
	for _, header := range []string{"Forwarded", "X-Real-IP", "X-Forwarded-Host", "X-Forwarded-Proto", "Via"} {
		attacks = append(attacks, systemtest.Attack{Name: header, By: direct.Client(header, "127.0.0.1"), Method: "GET", Path: "/metrics", Status: 401, Excludes: []string{"kontor_http"}})
	}
	for name, p := range map[string]*systemtest.Process{"a proxy that adds no header": behind, "the machine itself": direct} {
		attacks = append(attacks, systemtest.Attack{Name: name, By: p.Client(), Method: "GET", Path: "/metrics", Status: 401, Excludes: []string{"kontor_http"}},
			systemtest.Attack{Name: name + ", metrics.listen", By: p.Scraper(), Method: "GET", Path: "/metrics", Status: 200, Contains: []string{"kontor_connections_open"}},
			systemtest.Attack{Name: name + ", the API at metrics.listen", By: p.Scraper(), Method: "GET", Path: "/v1/public-endpoint", Status: 404},
			systemtest.Attack{Name: name + ", a write at metrics.listen", By: p.Scraper(), Method: "POST", Path: "/metrics", Status: 405})
	}
	systemtest.RunAttacks(t, attacks)

	if got := behind.Client("X-Forwarded-For", "203.0.113.7", "X-Forwarded-Proto", "https").Do(t, "GET", "/healthz", "", 200); got.Header.Get("Strict-Transport-Security") == "" {
		t.Error("Strict-Transport-Security is missing for a client with TLS")
	}
	for name, c := range map[string]*systemtest.Client{"no TLS anywhere": direct.Client(), "the proxy says http": behind.Client("X-Forwarded-For", "203.0.113.7", "X-Forwarded-Proto", "http")} {
		if got := c.Do(t, "GET", "/healthz", "", 200); got.Header.Get("Strict-Transport-Security") != "" {
			t.Errorf("%s: Strict-Transport-Security is sent", name)
		}
	}
}

// TestHostile_UnknownClientsShareALimit guesses passwords through a proxy that sends no valid client address.
func TestHostile_UnknownClientsShareALimit(t *testing.T) {
	p := systemtest.StartWith(t, systemtest.SecretsEnv, "--data.dir", filepath.Join(t.TempDir(), "data"), "--server.trusted_proxies=127.0.0.1", "--rate_limits.public_per_minute=1")
	names := []string{"unknown", "", "_a", "_b", "nobody", "[::1", "127.1", "x"}
	limited := false
	for _, name := range names {
		got, err := p.Client("X-Forwarded-For", name).Try("POST", "/authenticate", `{"user_id":"nobody@kontor.example","password":"wrong wrong wrong"}`)
		if err != nil {
			t.Fatal(err)
		}
		limited = limited || got.Status == http.StatusTooManyRequests
	}
	if !limited {
		t.Errorf("%d clients without an address do not share a limit", len(names))
	}
	if got, err := p.Client("X-Forwarded-For", "203.0.113.7").Try("POST", "/authenticate", `{"user_id":"nobody@kontor.example","password":"wrong wrong wrong"}`); err != nil || got.Status == http.StatusTooManyRequests {
		t.Errorf("a client with an address shares their limit: %d, %v", got.Status, err)
	}
}

// TestHostile_Origins opens event streams from pages of other origins.
func TestHostile_Origins(t *testing.T) {
	p := systemtest.Start(t, filepath.Join(t.TempDir(), "data"), "--cors.allowed_origins=https://app.example")
	admin := p.Admin()
	for origin, allowed := range map[string]bool{
		"https://app.example": true, "https://evil.example": false, "null": false, "http://app.example": false, "https://app.example.evil.example": false,
		"https://app.example:8443": false, "https://APP.example": false, "*": false,
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.URL+"/v1/notifications/sse", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Origin", origin)
		request.Header.Set("Authorization", admin.Headers[1])
		answer, err := admin.HTTP.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		got, want := answer.Header.Get("Access-Control-Allow-Origin"), ""
		if allowed {
			want = origin
		}
		if answer.StatusCode != 200 || got != want || answer.Header.Get("Vary") != "Origin" {
			t.Errorf("%s: got %d, Access-Control-Allow-Origin %q, Vary %q", origin, answer.StatusCode, got, answer.Header.Get("Vary"))
		}
	}
}

// TestHostile_Paths requests addresses of the console with invalid escapes.
func TestHostile_Paths(t *testing.T) {
	p := systemtest.Start(t, filepath.Join(t.TempDir(), "data"))
	for path, want := range map[string]string{
		"/customers/%": " 200 ", "/customers/%zz": " 200 ", "/customers/%c3%28": " 200 ", "/chats/%%%": " 200 ", "/%": " 404 ", "/v1/customers/%": " 404 ",
		"/assets/%2e%2e/main.go": " 404 ", "/customers/%00": " 200 ",
	} {
		connection, err := net.Dial("tcp", strings.TrimPrefix(p.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(connection, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(bufio.NewReader(connection))
		connection.Close()
		line, rest, _ := strings.Cut(string(answer), "\r\n")
		if err != nil || !strings.Contains(line, want) || want == " 200 " && !strings.Contains(rest, "<!doctype html>") {
			t.Errorf("%s: got %q, %v", path, line, err)
		}
	}
}
