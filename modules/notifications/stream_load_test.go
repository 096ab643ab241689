package notifications_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/server/settings"
)

// loadClientsEnv makes the test binary run the clients of a benchmark, so that they are not measured with the server.
const loadClientsEnv = "KONTOR_TEST_SWARM"

func TestMain(m *testing.M) {
	if os.Getenv(loadClientsEnv) != "" {
		if err := loadClients(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// loadClients opens a stream for each line "address token" up to an empty line and writes "ready". Then it writes the median,
// 99th percentile and maximum of the latencies of each round of events, one on every stream. The data hold the send times.
func loadClients(in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	arrived := make(chan time.Duration, 1<<16)
	n := 0
	for lines.Scan() && lines.Text() != "" {
		address, token, _ := strings.Cut(lines.Text(), " ")
		if _, err := openStream(address, token, arrived); err != nil {
			return err
		}
		n++
	}
	fmt.Fprintln(out, "ready")
	for {
		took := make([]time.Duration, n)
		for i := range took {
			took[i] = <-arrived
		}
		slices.Sort(took)
		fmt.Fprintln(out, took[n/2].Nanoseconds(), took[n*99/100].Nanoseconds(), took[n-1].Nanoseconds())
	}
}

// openStream opens a stream and waits for its first frame. A goroutine reads it until its end.
func openStream(address, token string, arrived chan<- time.Duration) (net.Conn, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintf(conn, "GET /v1/notifications/sse HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\n\r\n", token); err != nil {
		return nil, err
	}
	opened := make(chan error, 1)
	go listen(conn, opened, arrived)
	return conn, <-opened
}

const stamp = `"content":"sent `

// listen reads one stream.
func listen(conn net.Conn, opened chan<- error, arrived chan<- time.Duration) {
	buffer := make([]byte, 2048)
	filled := 0
	isOpen := false
	for {
		n, err := conn.Read(buffer[filled:])
		if err != nil {
			if !isOpen {
				opened <- err
			}
			return
		}
		filled += n
		if !isOpen {
			if !bytes.Contains(buffer[:filled], []byte("event: open\n")) {
				continue
			}
			isOpen, filled = true, 0
			opened <- nil
			continue
		}
		for {
			end := bytes.Index(buffer[:filled], []byte("\n\n"))
			if end < 0 {
				break
			}
			if at := bytes.Index(buffer[:end], []byte(stamp)); at >= 0 {
				text := buffer[at+len(stamp) : end]
				sent, _ := strconv.ParseInt(string(text[:bytes.IndexByte(text, '"')]), 10, 64)
				arrived <- time.Duration(time.Now().UnixNano() - sent)
			}
			filled = copy(buffer, buffer[end+2:filled])
		}
	}
}

// streamLoad is a running server with many streams, whose clients run in another process.
type streamLoad struct {
	*servertest.Server
	users   []string
	process *exec.Cmd
	out     *bufio.Scanner

	streams   int
	perStream float64 // bytes of memory
}

func newStreamLoad(b *testing.B, users, each int) *streamLoad {
	b.Helper()
	c := &streamLoad{Server: servertest.Start(b, func(s *settings.Settings) {
		s.Notifications.SSE.ConnectionsPerUser, s.Auth.CoolingOff.FreeAttempts = each, 1000
	}), streams: users * each}
	var tokens []string
	for range users {
		u := c.User(access.Customer)
		list(b, u, "") // from now on the server remembers the session, which is no part of a stream
		c.users, tokens = append(c.users, u.UserID), append(tokens, u.Token)
	}
	c.process = exec.Command(os.Args[0])
	c.process.Env = append(os.Environ(), loadClientsEnv+"=1")
	c.process.Stderr = os.Stderr
	in, err := c.process.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := c.process.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := c.process.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(c.kill)
	c.out = bufio.NewScanner(out)
	warmUp(b, c.Server, tokens[:20])
	before := rss(b)
	for _, token := range tokens {
		for range each {
			fmt.Fprintf(in, "%s %s\n", c.Address, token)
		}
	}
	fmt.Fprintln(in)
	if !c.out.Scan() || c.out.Text() != "ready" {
		b.Fatalf("the clients wrote %q", c.out.Text())
	}
	c.perStream = float64(rss(b)-before) / float64(c.streams)
	return c
}

// warmUp opens and ends some streams, so that what the first ones make does not count as memory of streams.
func warmUp(b *testing.B, s *servertest.Server, tokens []string) {
	b.Helper()
	arrived := make(chan time.Duration)
	for _, token := range tokens {
		conn, err := openStream(s.Address, token, arrived)
		if err != nil {
			b.Fatal(err)
		}
		_ = conn.Close()
	}
	eventually(b, func() bool { return len(s.Notifications.Connected()) == 0 })
}

func (c *streamLoad) kill() {
	_ = c.process.Process.Kill()
	_ = c.process.Wait()
}

// rss returns the resident memory of this process after a garbage collection.
func rss(b *testing.B) int {
	b.Helper()
	runtime.GC()
	debug.FreeOSMemory()
	status, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		b.Skip("needs /proc")
	}
	pages, err := strconv.Atoi(strings.Fields(string(status))[1])
	if err != nil {
		b.Fatal(err)
	}
	return pages * os.Getpagesize()
}
