package nodes_test

import (
	"crypto/tls"
	"crypto/x509"
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
	"kontor/store/postgres/postgrestest"
	"kontor/store/testenv"
)

// TestNodes_BehindAProxy runs the configurations of docs/cluster with two nodes. The proxies are needed for it: nginx and haproxy.
func TestNodes_BehindAProxy(t *testing.T) {
	for name, proxy := range map[string]struct {
		config  string
		changes func(dir, plain, secure string) []string
		command func(config string) *exec.Cmd
	}{
		"nginx": {testenv.Path("docs/cluster/nginx.conf"), func(dir, plain, secure string) []string {
			return []string{
				"listen 80;", "listen " + plain + ";", "listen 443 ssl;", "listen " + secure + " ssl;",
				"/etc/nginx/bank.example.pem", dir + "/cert.pem", "/etc/nginx/bank.example.key", dir + "/key.pem",
				"events {", "pid " + dir + "/pid;\ndaemon off;\nmaster_process off;\nerror_log stderr;\nevents {",
				"http {", fmt.Sprintf("http {\naccess_log off;\nclient_body_temp_path %s/body;\nproxy_temp_path %[1]s/proxy;\nfastcgi_temp_path %[1]s/f;\nuwsgi_temp_path %[1]s/u;\nscgi_temp_path %[1]s/s;", dir),
				"worker_rlimit_nofile 65536;", "", "worker_connections 16384;", "worker_connections 512;",
			}
		}, func(config string) *exec.Cmd { return exec.Command("nginx", "-e", "stderr", "-c", config) }},
		"haproxy": {testenv.Path("docs/cluster/haproxy.cfg"), func(dir, plain, secure string) []string {
			return []string{"bind :80\n", "bind " + plain + "\n", "bind :443 ", "bind " + secure + " ", "/etc/haproxy/bank.example.pem", dir + "/both.pem",
				"maxconn 20000", "maxconn 500", "timeout http-request 10s", fmt.Sprintf("timeout http-request %ds\n\ttimeout check %[1]ds", int(testenv.Limit().Seconds()))}
		}, func(config string) *exec.Cmd { return exec.Command("haproxy", "-db", "-f", config) }},
	} {
		t.Run(name, func(t *testing.T) {
			testenv.Tool(t, name)
			address, dir := postgrestest.URL(t), t.TempDir()
			args := []string{"--server.trusted_proxies=127.0.0.1", "--notifications.trigger.enabled=true"}
			nodes := []*systemtest.Process{startNode(t, address, args...), startNode(t, address, args...)}
			plain, secure := testenv.FreeAddress(t), testenv.FreeAddress(t)
			id := systemtest.NewIdentity(t, dir, time.Now().AddDate(0, 0, 30))
			both := filepath.Join(dir, "both.pem")
			if err := exec.Command("sh", "-c", "cat \"$0\" \"$1\" > \"$2\"", id.Cert, id.Key, both).Run(); err != nil {
				t.Fatal(err)
			}
			changes := append(proxy.changes(dir, plain, secure),
				"10.0.0.11:8080", strings.TrimPrefix(nodes[0].URL, "http://"), "10.0.0.12:8080", strings.TrimPrefix(nodes[1].URL, "http://"))
			testenv.Background(t, proxy.command(changedConfig(t, proxy.config, dir, changes))).IgnoreOutput()
			testenv.WaitForListener(t, plain)
			testenv.WaitForListener(t, secure)
			expectProxy(t, plain)
			c := *nodes[0].Client()
			c.URL = throughTLS(t, secure, id.Pool)
			expectFailover(t, &c, nodes)
		})
	}
}

// changedConfig writes a configuration of the documentation with the addresses of the test. Each change must apply.
func changedConfig(t *testing.T, path, dir string, changes []string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for i := 0; i < len(changes); i += 2 {
		if !strings.Contains(text, changes[i]) {
			t.Fatalf("%s does not contain %q", path, changes[i])
		}
		text = strings.ReplaceAll(text, changes[i], changes[i+1])
	}
	config := filepath.Join(dir, "proxy.conf")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return config
}

// expectProxy checks what the proxy answers by itself.
func expectProxy(t *testing.T, plain string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+plain+"/customers?limit=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = "bank.example"
	answer, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusPermanentRedirect || answer.Header.Get("Location") != "https://bank.example/customers?limit=1" {
		t.Errorf("plain HTTP got %d %q", answer.StatusCode, answer.Header.Get("Location"))
	}
}

// expectFailover kills one node after the other, and expects that requests and streams go on through the proxy.
func expectFailover(t *testing.T, c *systemtest.Client, nodes []*systemtest.Process) {
	t.Helper()
	c.Do(t, "GET", "/metrics", "", 404)
	admin := nodes[0].Admin()
	admin.HTTP, admin.URL = c.HTTP, c.URL
	me := admin.UserID(t)
	keyed := c.With("X-API-Key", systemtest.APIKey)
	var r systemtest.StreamReader
	ended := r.FollowSoon(t, admin)
	notify := func() {
		before := len(r.Seen())
		keyed.Do(t, "POST", "/v1/notifications/trigger", fmt.Sprintf(`{"event":"test","title_key":"x","user_ids":[%q]}`, me), 200)
		testenv.Wait(t, "the frame to pass the proxy", func() bool { return len(r.Seen()) > before }) // a buffer would keep the frame
	}
	notify()
	serving := nodes[0]
	if streamsOf(t, nodes[1]) > 0 {
		serving = nodes[1]
	}
	serving.Kill()
	for range 100 {
		admin.Do(t, "GET", "/v1/users/me", "", 200)
	}
	testenv.Receive(t, "the end of the stream", ended)
	r.FollowSoon(t, admin)
	notify()
	admin.Do(t, "POST", "/v1/customers", `{"first_name":"Anna","last_name":"Muster","email":"anna@example.ch"}`, 201)
}

// streamsOf returns the number of streams of a node.
func streamsOf(t *testing.T, p *systemtest.Process) int {
	t.Helper()
	var n int
	text := p.Scraper().Do(t, "GET", "/metrics", "", 200).Body
	if _, err := fmt.Sscan(systemtest.WordAfter(text, "\nkontor_streams_open"), &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// throughTLS returns the address of a forwarder that speaks TLS with the proxy.
func throughTLS(t *testing.T, address string, roots *x509.CertPool) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer from.Close()
				to, err := tls.Dial("tcp", address, &tls.Config{RootCAs: roots, ServerName: "bank.example", MinVersion: tls.VersionTLS12})
				if err != nil {
					return
				}
				defer to.Close()
				go func() {
					_, _ = io.Copy(to, from)
					_ = to.CloseWrite()
				}()
				_, _ = io.Copy(from, to)
			}()
		}
	}()
	return "http://" + listener.Addr().String()
}
