package notifications_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/server/settings"
)

// loadClientsEnv makes the test binary run the clients of a benchmark, so that they are not measured with the server.
const loadClientsEnv = "KONTOR_TEST_SWARM"

func TestMain(m *testing.M) {
	if os.Getenv(loadClientsEnv) != "" {
		if err := runLoadClients(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// streamLoad is a running server with many streams, whose clients run in another process.
type streamLoad struct {
	*servertest.Server
	users   []string
	process *exec.Cmd
	out     *bufio.Scanner

	streams   int
	sent      int     // events
	perStream float64 // bytes of memory
}

// send sends an event to all streams.
func (c *streamLoad) send(b *testing.B) {
	b.Helper()
	n := customerEvent(c.users...)
	c.sent++
	n.Kind, n.Content = "measured", fmt.Sprintf("%s%d %d", loadContent, c.sent, time.Now().UnixNano())
	notify(b, c.DB, c.Notifications, n)
}

// received waits until the clients have received the next event that was sent.
func (c *streamLoad) received(b *testing.B) (r receivedEvent) {
	b.Helper()
	if !c.out.Scan() {
		b.Fatal("the clients have ended")
	}
	if _, err := fmt.Sscan(c.out.Text(), &r.sent, &r.last, &r.p99, &r.clients); err != nil {
		b.Fatal(err)
	}
	return r
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
	for _, token := range tokens {
		socket, err := openStream(s.Address, token)
		if err != nil {
			b.Fatal(err)
		}
		_ = unix.Close(socket)
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
		b.Fatal(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(status))[1])
	if err != nil {
		b.Fatal(err)
	}
	return pages * os.Getpagesize()
}
