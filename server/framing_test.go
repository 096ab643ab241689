package server_test

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"kontor/server"
)

// Requests that two recipients may read in different ways are refused, and their connection ends.
func TestFraming_RefusesAmbiguousHeads(t *testing.T) {
	plain := func(address string) (net.Conn, error) { return net.Dial("tcp", address) }
	secure := func(address string) (net.Conn, error) {
		return tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12})
	}
	for name, c := range map[string]struct {
		dial   func(address string) (net.Conn, error)
		change func(*server.Options)
	}{
		"HTTP":  {plain, func(*server.Options) {}},
		"HTTPS": {secure, func(o *server.Options) { o.TLS = selfSigned(t) }},
	} {
		t.Run(name, func(t *testing.T) {
			address, _ := start(t, c.change)
			for what, head := range map[string]string{
				"a line that continues the one before":    "Host: a\r\nX-One: 1\r\n 2\r\n\r\n",
				"one that continues it with a tab":        "Host: a\r\nX-One: 1\r\n\t2\r\n\r\n",
				"a bare line feed":                        "Host: a\nX-One: 1\r\n\r\n",
				"a hidden length behind a bare line feed": "Host: a\r\nX-One: 1\nContent-Length: 5\r\n\r\nhello",
			} {
				status, closed := sendRaw(t, c.dial, address, "GET /healthz HTTP/1.1\r\n"+head)
				if status != http.StatusBadRequest || !closed {
					t.Errorf("%s: got %d, closed: %t", what, status, closed)
				}
			}
			if status, closed := sendRaw(t, c.dial, address, "GET /healthz HTTP/1.1\r\nHost: a\r\nX-One: 1 2\r\n\r\n"); status != http.StatusOK || closed {
				t.Errorf("an ordinary request: got %d, closed: %t", status, closed)
			}
		})
	}
}

// selfSigned returns the settings of TLS with a certificate of the test.
func selfSigned(t *testing.T) *tls.Config {
	t.Helper()
	test := httptest.NewUnstartedServer(nil)
	test.StartTLS()
	defer test.Close()
	return &tls.Config{Certificates: test.TLS.Certificates, MinVersion: tls.VersionTLS12}
}

// sendRaw sends a text on a new connection. It returns the status of the answer, and whether the server ends the connection.
func sendRaw(t *testing.T, dial func(address string) (net.Conn, error), address, text string) (status int, closed bool) {
	t.Helper()
	conn, err := dial(address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	return answer.StatusCode, answer.Close
}
