package certificates_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kontor/modules/commands/systemtest"
	"kontor/store/testenv"
)

func TestTLS_IsServedFromFiles(t *testing.T) {
	id := systemtest.NewIdentity(t, t.TempDir(), time.Now().AddDate(0, 1, 0))
	plain := testenv.FreeAddress(t)
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	p := systemtest.StartWith(t, append([]string{"NOTIFY_SOCKET=" + manager.LocalAddr().String()}, systemtest.SecretsEnv...), "--data.dir", filepath.Join(t.TempDir(), "data"),
		"--server.tls_cert", id.Cert, "--server.tls_key", id.Key, "--server.base_url=https://bank.example", "--server.redirect_listen", plain)
	if err := manager.SetReadDeadline(time.Now().Add(testenv.Limit())); err != nil {
		t.Fatal(err)
	}
	state := make([]byte, 100)
	if n, err := manager.Read(state); err != nil || string(state[:n]) != "READY=1" {
		t.Errorf("the service manager got %q, %v", state[:n], err)
	}
	got := p.Secure(id.Pool).Do(t, "GET", "/readyz", "", 200)
	if got.Header.Get("Strict-Transport-Security") == "" {
		t.Error("Strict-Transport-Security is missing")
	}
	for version, accepted := range map[uint16]bool{tls.VersionTLS10: false, tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		connection, err := dialTLS(p.Address(), &tls.Config{RootCAs: id.Pool, ServerName: "bank.example", MinVersion: version, MaxVersion: version})
		if (err == nil) != accepted {
			t.Errorf("%s: %v", tls.VersionName(version), err)
		}
		if err == nil {
			connection.Close()
		}
	}
	if _, err := dialTLS(p.Address(), &tls.Config{RootCAs: id.Pool, ServerName: "other.example"}); err == nil {
		t.Error("the certificate is valid for another name")
	}

	t.Run("plain HTTP at the address of HTTPS", func(t *testing.T) {
		if answer := rawExchange(t, p.Address(), "GET /v1/users HTTP/1.1\r\nHost: bank.example\r\nAuthorization: Bearer x\r\n\r\n"); !strings.HasPrefix(answer, "HTTP/1.1 400 ") || !strings.Contains(answer, "expects HTTPS") {
			t.Errorf("got %q", answer)
		}
		if answer := rawExchange(t, p.Address(), "\x00\x01\x02nonsense"); strings.Contains(answer, "HTTP") {
			t.Errorf("nonsense got %q", answer)
		}
	})
	t.Run("redirects", func(t *testing.T) {
		for request, want := range map[string]string{
			"GET /app?x=1 HTTP/1.1\r\nHost: bank.example":                      "Location: https://bank.example/app?x=1\r\n",
			"GET / HTTP/1.1\r\nHost: evil.example":                             "Location: https://bank.example/\r\n",
			"GET http://evil.example/x HTTP/1.1\r\nHost: a":                    "Location: https://bank.example/x\r\n",
			"GET http:.evil.example HTTP/1.1\r\nHost: a":                       "400 Bad Request",
			"GET //evil.example/%0d%0aX HTTP/1.1\r\nHost: a":                   "Location: https://bank.example//evil.example/%0d%0aX\r\n",
			"POST /authenticate HTTP/1.1\r\nHost: bank.example":                "403 Forbidden",
			"DELETE /v1/users/1 HTTP/1.1\r\nHost: bank.example":                "403 Forbidden",
			"GET /.well-known/acme-challenge/x HTTP/1.1\r\nHost: bank.example": "308 Permanent Redirect",
		} {
			if answer := rawExchange(t, plain, request+"\r\nConnection: close\r\n\r\n"); !strings.Contains(answer, want) {
				t.Errorf("%s: got %q, want %q", request, answer, want)
			}
		}
	})
	t.Run("an event stream", func(t *testing.T) {
		var tokens struct {
			AccessToken string `json:"access_token"`
		}
		p.Secure(id.Pool).Do(t, "POST", "/authenticate", fmt.Sprintf(`{"user_id":%q,"password":%q}`, systemtest.AdminEmail, systemtest.AdminPassword), 200).Decode(t, &tokens)
		c := p.Secure(id.Pool)
		request, err := http.NewRequestWithContext(t.Context(), "GET", c.URL+"/v1/notifications/sse", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+tokens.AccessToken)
		answer, err := c.HTTP.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if line, err := bufio.NewReader(answer.Body).ReadString('\n'); err != nil || line == "" {
			t.Errorf("the stream sent %q, %v", line, err)
		}
	})
	t.Run("a renewed certificate", func(t *testing.T) {
		id.Renew(t, time.Now().AddDate(0, 2, 0))
		until := time.Now().AddDate(0, 1, 15)
		testenv.Wait(t, "the server to present the renewed certificate", func() bool {
			connection, err := dialTLS(p.Address(), &tls.Config{RootCAs: id.Pool, ServerName: "bank.example"})
			if err != nil {
				t.Fatal(err)
			}
			defer connection.Close()
			return connection.ConnectionState().PeerCertificates[0].NotAfter.After(until)
		})
	})
	t.Run("the metric of its end", func(t *testing.T) {
		if page := p.Scraper().Do(t, "GET", "/metrics", "", 200).Body; !strings.Contains(page, "\nkontor_certificate_expires_timestamp_seconds 1.") {
			t.Error("the end of the certificate is missing")
		}
	})
	t.Run("kontor ready", func(t *testing.T) {
		if got := systemtest.Run(t, nil, "ready", "--server.listen", p.Address(), "--server.tls_cert", id.Cert, "--server.tls_key", id.Key, readyTimeout); got.Code != 0 || got.Stdout != "ready\n" {
			t.Errorf("got %d %s %s", got.Code, got.Stdout, got.Stderr)
		}
	})
}

// readyTimeout gives a busy machine time to answer "kontor ready", which waits for an hour at most.
var readyTimeout = fmt.Sprintf("--timeout=%d", int(min(testenv.Limit(), time.Hour).Seconds()))

// dialTLS is like [tls.Dial], with an end.
func dialTLS(address string, config *tls.Config) (*tls.Conn, error) {
	return tls.DialWithDialer(&net.Dialer{Timeout: testenv.Limit()}, "tcp", address, config)
}

// rawExchange sends bytes and returns everything that the server sends before it closes the connection.
func rawExchange(t *testing.T, address, request string) string {
	t.Helper()
	connection, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	if err := connection.SetDeadline(time.Now().Add(testenv.Limit())); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(connection, request); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(connection) // a reset ends it, too
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the server does not close the connection after %q", answer)
	}
	return string(answer)
}

func TestTLS_WrongSettingsStopTheStartBeforeAnythingIsMade(t *testing.T) {
	good, expired := systemtest.NewIdentity(t, t.TempDir(), time.Now().AddDate(0, 1, 0)), systemtest.NewIdentity(t, t.TempDir(), time.Now().AddDate(0, 0, -1))
	other := systemtest.NewIdentity(t, t.TempDir(), time.Now().AddDate(0, 1, 0))
	dir := filepath.Join(t.TempDir(), "data")
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"only a certificate":     {[]string{"--server.tls_cert", good.Cert}, "must be set together"},
		"only a key":             {[]string{"--server.tls_key", good.Key}, "must be set together"},
		"a missing file":         {[]string{"--server.tls_cert", good.Cert + "x", "--server.tls_key", good.Key}, "cannot be read: no such file or directory"},
		"the wrong key":          {[]string{"--server.tls_cert", good.Cert, "--server.tls_key", other.Key}, "cannot be used together"},
		"an expired certificate": {[]string{"--server.tls_cert", expired.Cert, "--server.tls_key", expired.Key}, "expired at"},
		"a domain and files":     {[]string{"--server.tls_cert", good.Cert, "--server.tls_key", good.Key, "--server.domain=bank.example"}, "server.domain obtains certificates itself"},
		"a base URL without TLS": {[]string{"--server.tls_cert", good.Cert, "--server.tls_key", good.Key, "--server.base_url=http://bank.example"}, "must begin with https://"},
		"a redirect without TLS": {[]string{"--server.redirect_listen=127.0.0.1:0"}, "server.redirect_listen needs"},
		"a domain without a dot": {[]string{"--server.domain=localhost"}, "must be public names"},
		"an address as a domain": {[]string{"--server.domain=192.0.2.1"}, "must be public names"},
		"a wildcard as a domain": {[]string{"--server.domain=*.bank.example"}, "must be public names"},
	} {
		t.Run(name, func(t *testing.T) {
			systemtest.ExpectFailure(t, systemtest.Run(t, nil, append([]string{"serve", "--server.listen=127.0.0.1:0", "--metrics.listen=", "--data.dir", dir}, tc.args...)...), tc.want)
			if _, err := os.Stat(dir); !os.IsNotExist(err) {
				t.Errorf("the data directory was created: %v", err)
			}
		})
	}
}

// TestTLS_AFloodOfSlowHandshakes opens connections that never complete their handshake. They are closed after ten seconds, hold
// little memory, and other clients are served.
func TestTLS_AFloodOfSlowHandshakes(t *testing.T) {
	id := systemtest.NewIdentity(t, t.TempDir(), time.Now().AddDate(0, 1, 0))
	p := systemtest.Start(t, filepath.Join(t.TempDir(), "data"), "--server.tls_cert", id.Cert, "--server.tls_key", id.Key)
	p.Secure(id.Pool).Do(t, "GET", "/healthz", "", 200)
	before := systemtest.ResidentKiB(t, p.Cmd.Process.Pid)
	const connections = 500
	hello := clientHello(t)
	var open []net.Conn
	for i := range connections {
		connection, err := net.Dial("tcp", p.Address())
		if err != nil {
			t.Fatal(err)
		}
		defer connection.Close()
		if _, err := connection.Write(hello[:1+i%(len(hello)-1)]); err != nil {
			t.Fatal(err)
		}
		open = append(open, connection)
	}
	p.Secure(id.Pool).Do(t, "GET", "/readyz", "", 200)
	if grown := systemtest.ResidentKiB(t, p.Cmd.Process.Pid) - before; grown > connections*64 {
		t.Errorf("%d handshakes hold %d KiB", connections, grown)
	}
	for _, connection := range open {
		if err := connection.SetReadDeadline(time.Now().Add(testenv.Limit())); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, connection); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("the server does not close a connection whose handshake does not end")
		}
	}
	p.Secure(id.Pool).Do(t, "GET", "/readyz", "", 200)
}

// clientHello returns the first bytes that a client sends.
func clientHello(t *testing.T) []byte {
	t.Helper()
	var sent bytes.Buffer
	_ = tls.Client(recorder{&sent}, &tls.Config{ServerName: "bank.example"}).Handshake() // fails after the first message
	return sent.Bytes()
}

// recorder is a connection that keeps what is written and has nothing to read.
type recorder struct{ to io.Writer }

func (r recorder) Write(p []byte) (int, error) { return r.to.Write(p) }

func (r recorder) Read([]byte) (int, error) { return 0, io.EOF }

func (r recorder) Close() error { return nil }

func (r recorder) LocalAddr() net.Addr { return nil }

func (r recorder) RemoteAddr() net.Addr { return nil }

func (r recorder) SetDeadline(time.Time) error { return nil }

func (r recorder) SetReadDeadline(time.Time) error { return nil }

func (r recorder) SetWriteDeadline(time.Time) error { return nil }
