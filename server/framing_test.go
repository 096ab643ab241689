package server_test

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"kontor/server"
	"kontor/store/testenv"
)

// Requests that two recipients may read in different ways are refused, and their connection ends.
func TestFraming_RefusesAmbiguousRequests(t *testing.T) {
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
			const head, next = "Host: a\r\n", "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"
			const upload = "POST /v1/big HTTP/1.1\r\n" + head + "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
			for what, text := range map[string]string{
				"a first line with a bare line feed":      "GET /healthz HTTP/1.1\n" + head + "\r\n",
				"one of a pipelined request":              next + "GET /healthz HTTP/1.1\n" + head + "\r\n",
				"a line that continues the one before":    "GET /healthz HTTP/1.1\r\n" + head + "X-One: 1\r\n 2\r\n\r\n",
				"one that continues it with a tab":        "GET /healthz HTTP/1.1\r\n" + head + "X-One: 1\r\n\t2\r\n\r\n",
				"a bare line feed":                        "GET /healthz HTTP/1.1\r\nHost: a\nX-One: 1\r\n\r\n",
				"a hidden length behind a bare line feed": "GET /healthz HTTP/1.1\r\n" + head + "X-One: 1\nContent-Length: 5\r\n\r\nhello",
				"an empty chunk extension":                upload + "2;\r\n{}\r\n0\r\n\r\n",
				"one in the last chunk":                   upload + "2\r\n{}\r\n0;\r\n\r\n",
				"one in a pipelined request":              next + upload + "2;\r\n{}\r\n0\r\n\r\n",
				"a chunk size with a bare line feed":      upload + "2\n{}\r\n0\r\n\r\n",
				"a trailer with a bare line feed":         upload + "2\r\n{}\r\n0\r\nX-One: 1\n\r\n",
			} {
				conn := sendPieces(t, c.dial, address, text+next)
				if strings.HasPrefix(text, next) {
					if response, body := read(t, conn); response.StatusCode != http.StatusOK || response.Close {
						t.Errorf("%s: the request before it got %d %s", what, response.StatusCode, body)
					}
				}
				response, body := read(t, conn)
				if response.StatusCode != http.StatusBadRequest || !response.Close || !strings.Contains(body, "common.malformed_request") {
					t.Errorf("%s: got %d %s, closed: %t", what, response.StatusCode, body, response.Close)
				}
				if rest, _ := io.ReadAll(conn); len(rest) > 0 {
					t.Errorf("%s: the connection continues with %q", what, rest)
				}
			}

			lawful := next + upload + "1\r\n{\r\nB;a=b\r\n\"name\":\"a\"}\r\n0\r\nX-One: 1\r\n\r\n" + next + upload + "c\r\n{\"name\":\"a\"}\r\n0\r\n\r\n\r\n" + next
			for what, pieces := range map[string][]string{"at once": {lawful}, "byte by byte": strings.Split(lawful, "")} {
				conn := sendPieces(t, c.dial, address, pieces...)
				for i, want := range []string{"", "1", "", "1", ""} {
					response, body := read(t, conn)
					if response.StatusCode != http.StatusOK || response.Close || want != "" && body != want {
						t.Errorf("lawful requests %s, %d: got %d %s, closed: %t", what, i, response.StatusCode, body, response.Close)
					}
				}
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

// sendPieces sends the pieces of a text on a new connection, and returns a reader of the answers.
func sendPieces(t *testing.T, dial func(address string) (net.Conn, error), address string, pieces ...string) *bufio.Reader {
	t.Helper()
	conn, err := dial(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(testenv.Limit()))
	for _, piece := range pieces {
		if _, err := io.WriteString(conn, piece); err != nil {
			t.Fatal(err)
		}
	}
	return bufio.NewReader(conn)
}
