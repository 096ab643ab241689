package certificates_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kontor/modules/commands/systemtest"
	"kontor/store/testenv"
)

// authority is a certificate authority for tests: Pebble, with a name server that resolves every name to this machine.
type authority struct {
	directory string
	roots     string // file with the certificate of its own address
	pool      *x509.CertPool
}

// startAuthority starts Pebble, which validates challenges at the two addresses.
func startAuthority(t *testing.T, https, plain string) *authority {
	t.Helper()
	dir := t.TempDir()
	pebble, names := testenv.GoTool(t, ".ci/pebble", "pebble"), testenv.GoTool(t, ".ci/pebble", "pebble-challtestsrv")
	own := systemtest.NewIdentity(t, dir, time.Now().AddDate(0, 1, 0))
	api, management, nameServer := testenv.FreeAddress(t), testenv.FreeAddress(t), testenv.FreeAddress(t)
	config := map[string]any{"pebble": map[string]any{
		"listenAddress": api, "managementListenAddress": management, "certificate": own.Cert, "privateKey": own.Key,
		"httpPort": portOf(t, plain), "tlsPort": portOf(t, https), "keyAlgorithm": "ecdsa",
		"retryAfter": map[string]int{"authz": 1, "order": 1},
		"profiles":   map[string]any{"default": map[string]any{"description": "default", "validityPeriod": 7776000}},
	}}
	text, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	background(t, names, "-dnsserver", nameServer, "-defaultIPv6", "", "-http01", "", "-https01", "", "-tlsalpn01", "", "-doh", "", "-management", testenv.FreeAddress(t))
	background(t, pebble, "-config", filepath.Join(dir, "config.json"), "-dnsserver", nameServer)
	a := &authority{directory: "https://localhost:" + fmt.Sprint(portOf(t, api)) + "/dir", roots: own.Cert, pool: x509.NewCertPool()}
	trusted := &http.Client{Timeout: testenv.Limit(), Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: own.Pool, ServerName: "localhost"}, DisableKeepAlives: true}}
	get := func(url string) (body string) {
		testenv.Wait(t, "Pebble to answer", func() bool {
			answer, err := trusted.Get(url)
			if err != nil {
				return false
			}
			defer answer.Body.Close()
			read, err := io.ReadAll(answer.Body)
			body = string(read)
			return err == nil && answer.StatusCode == 200
		})
		return body
	}
	get("https://" + api + "/dir")
	a.pool.AppendCertsFromPEM([]byte(get("https://" + management + "/roots/0")))
	return a
}

func portOf(t *testing.T, address string) (port int) {
	t.Helper()
	_, text, err := net.SplitHostPort(address)
	if err == nil {
		_, err = fmt.Sscan(text, &port)
	}
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// background runs a program until the test ends.
func background(t *testing.T, path string, args ...string) {
	t.Helper()
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), "PEBBLE_VA_NOSLEEP=1", "PEBBLE_WFE_NONCEREJECT=20")
	testenv.Background(t, cmd).IgnoreOutput()
}

func TestACME_ObtainsCertificatesAndKeepsThemEncrypted(t *testing.T) {
	address, plain := testenv.FreeAddress(t), testenv.FreeAddress(t)
	ca := startAuthority(t, address, plain)
	dir := filepath.Join(t.TempDir(), "data")
	serve := func(extra ...string) *systemtest.Process {
		return systemtest.StartWith(t, append([]string{"SSL_CERT_FILE=" + ca.roots}, systemtest.SecretsEnv...), append([]string{"--data.dir", dir, "--server.listen", address, "--server.redirect_listen", plain,
			"--server.domain=bank.example", "--server.acme_url", ca.directory, "--server.acme_email=ops@bank.example"}, extra...)...)
	}
	p := serve()
	connect := func(name string) (*x509.Certificate, error) {
		connection, err := dialTLS(address, &tls.Config{RootCAs: ca.pool, ServerName: name})
		if err != nil {
			return nil, err
		}
		defer connection.Close()
		return connection.ConnectionState().PeerCertificates[0], nil
	}
	obtained := func() (got *x509.Certificate) { // on a busy machine, an order takes longer than a handshake may
		testenv.Wait(t, "a certificate of the authority", func() (ok bool) {
			var err error
			got, err = connect("bank.example")
			return err == nil
		})
		return got
	}
	first := obtained()
	testenv.Wait(t, "the certificate to be kept", func() bool { // soon after its first use
		_, err := os.Stat(filepath.Join(dir, "certificates", "bank.example"))
		return err == nil
	})
	p.Secure(ca.pool).Do(t, "GET", "/readyz", "", 200)
	for _, name := range []string{"other.example", "www.bank.example", "localhost", "probe.kontor.invalid.example", ""} {
		if _, err := connect(name); err == nil {
			t.Errorf("a handshake for %q succeeded", name)
		}
	}
	if _, err := connect("probe.kontor.invalid"); err == nil {
		t.Error("the certificate of the watchdog is trusted")
	}
	if answer := rawExchange(t, plain, "GET /app HTTP/1.1\r\nHost: bank.example\r\nConnection: close\r\n\r\n"); !strings.Contains(answer, "308 Permanent Redirect") || !strings.Contains(answer, "Location: https://bank.example") {
		t.Errorf("plain HTTP got %q", answer)
	}
	if answer := rawExchange(t, plain, "GET /.well-known/acme-challenge/guess HTTP/1.1\r\nHost: bank.example\r\nConnection: close\r\n\r\n"); !strings.HasPrefix(answer, "HTTP/1.1 404 ") {
		t.Errorf("an unknown challenge got %q", answer)
	}
	if got := systemtest.Run(t, nil, "ready", "--server.listen", address, "--server.domain=bank.example", readyTimeout); got.Code != 0 {
		t.Errorf("kontor ready: %d %s", got.Code, got.Stderr)
	}
	files, err := os.ReadDir(filepath.Join(dir, "certificates"))
	if err != nil || len(files) < 2 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(dir, "certificates", file.Name()))
		if os.IsNotExist(err) { // the answer to a challenge, which is deleted when the certificate is there
			continue
		}
		if err != nil || strings.Contains(string(text), "KEY") || strings.Contains(string(text), "BEGIN") {
			t.Errorf("%s is readable: %v", file.Name(), err)
		}
	}
	if code := p.Stop(); code != 0 {
		t.Errorf("exit code %d: %s", code, p.Stderr)
	}

	p = serve()
	if again := obtained(); again.SerialNumber.Cmp(first.SerialNumber) != 0 {
		t.Errorf("the certificate was not kept: %s", p.Stderr)
	}
	p.Stop()
	for _, file := range files { // as after a rotation of the master key, or a copy from another machine
		if err := os.WriteFile(filepath.Join(dir, "certificates", file.Name()), []byte("damaged"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p = serve()
	if another := obtained(); another.SerialNumber.Cmp(first.SerialNumber) == 0 {
		t.Errorf("no other certificate was obtained: %s", p.Stderr)
	}
}

// Without TLS-ALPN-01, since the authority reaches another port, HTTP-01 is used. Without an authority, the server runs, says
// what is wrong, and serves again when the authority answers.
func TestACME_OtherWays(t *testing.T) {
	address, plain := testenv.FreeAddress(t), testenv.FreeAddress(t)
	ca := startAuthority(t, testenv.FreeAddress(t), plain)
	p := systemtest.StartWith(t, append([]string{"SSL_CERT_FILE=" + ca.roots}, systemtest.SecretsEnv...), "--data.dir", filepath.Join(t.TempDir(), "data"), "--server.listen", address,
		"--server.redirect_listen", plain, "--server.domain=bank.example", "--server.acme_url", ca.directory)
	testenv.Wait(t, "a connection with a certificate of the authority", func() bool {
		connection, err := dialTLS(address, &tls.Config{RootCAs: ca.pool, ServerName: "bank.example"})
		if err != nil {
			return false
		}
		connection.Close()
		return true
	})
	p.Stop()

	p = systemtest.StartWith(t, systemtest.SecretsEnv, "--data.dir", filepath.Join(t.TempDir(), "data"), "--server.listen", address,
		"--server.redirect_listen", plain, "--server.domain=bank.example", "--server.acme_url", "https://"+testenv.FreeAddress(t)+"/dir")
	if got := systemtest.Run(t, nil, "ready", "--server.listen", address, "--server.domain=bank.example"); got.Code != 1 {
		t.Errorf("ready without a certificate: %d %s", got.Code, got.Stdout)
	}
	testenv.Wait(t, "the log entry about the missing certificate", func() bool { return strings.Contains(p.Stderr.String(), "no certificate was obtained") })
	if code := p.Stop(); code != 0 {
		t.Errorf("exit code %d: %s", code, p.Stderr)
	}
}
