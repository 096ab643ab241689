//go:build linux

package nodes_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"kontor/modules/commands/systemtest"
	"kontor/store/postgres/postgrestest"
	"kontor/store/testenv"
)

// TestNodes_AStoppedNodeIsFenced suspends a node (SIGSTOP) in the middle of a write load, and ends a session at the other node.
// That is answered when the lease of the suspended node has ended; how long that takes is proven in store/postgres/internal/bus. Requests with the session's token already wait in the sockets of
// the suspended node: none of them may succeed when it wakes.
func TestNodes_AStoppedNodeIsFenced(t *testing.T) {
	address := postgrestest.URL(t)
	a, b := startNode(t, address), startNode(t, address)
	admin := a.Admin()
	l := newLoad(t, "fence")
	onA, onB := l.on(a, admin, 4), l.on(b, admin.At(b), 4)
	for round := range nodeRounds(3) {
		u := a.Account(admin, fmt.Sprintf("fence%d@example.ch", round), "Advisor")
		waiting := make([]*rawClient, 8)
		for i := range waiting {
			waiting[i] = dialRaw(t, b, u.Headers)
			waiting[i].send(t)
			if status := waiting[i].status(t); status != 200 {
				t.Fatalf("before the logout: %d", status)
			}
		}
		progress(t, onB, 5)
		b.Suspend()
		for _, c := range waiting {
			c.send(t)
		}
		u.Do(t, "POST", "/v1/logout", "", 200)
		admin.Do(t, "PATCH", "/v1/users/"+u.ID, `{"status":"disabled"}`, 200)
		progress(t, onA, 20)
		b.Signal(syscall.SIGCONT)
		for _, c := range waiting {
			if status := c.status(t); status != 401 && status != 503 && status != closed {
				t.Errorf("round %d: a request that waited for the node got %d, although its session had ended", round, status)
			}
		}
		testenv.Wait(t, "the node to be ready", admin.At(b).Ready)
		progress(t, onB, 5)
	}
	l.check(t, b)
}

// rawClient is one connection, on which requests can be sent without reading their answers.
type rawClient struct {
	net.Conn
	reader  *bufio.Reader
	request string
}

func dialRaw(t *testing.T, p *systemtest.Process, headers []string) *rawClient {
	t.Helper()
	host := strings.TrimPrefix(p.URL, "http://")
	c, err := net.Dial("tcp", host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &rawClient{c, bufio.NewReader(c), "GET /v1/users/me HTTP/1.1\r\nHost: " + host + "\r\n" + headers[0] + ": " + headers[1] + "\r\n\r\n"}
}

func (c *rawClient) send(t *testing.T) {
	t.Helper()
	if _, err := io.WriteString(c, c.request); err != nil {
		t.Fatal(err)
	}
}

// closed is the status of a request whose connection was closed.
const closed = 0

// status reads one answer and returns its status. A node closes a connection that was idle for a minute.
func (c *rawClient) status(t *testing.T) int {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(testenv.Limit())); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(c.reader, nil)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
		return closed
	}
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode
}
