package sse

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kontor/store/testenv"
)

// wrapped is a connection of a server that wraps its connections, and counts how often a deadline is set.
type wrapped struct {
	*net.TCPConn
	deadlines atomic.Int64
}

func (w *wrapped) SetWriteDeadline(at time.Time) error {
	w.deadlines.Add(1)
	return w.TCPConn.SetWriteDeadline(at)
}

// Frames go to the socket itself, with no deadline for each, also when the server wraps its connections.
func TestSend_SetsNoDeadline(t *testing.T) {
	p := newPolled(t)
	socket, client := pair(t)
	server := &wrapped{TCPConn: socket}
	s := p.attach("a", server)
	for i := range 10 {
		p.send("a", fmt.Sprintln(i))
		expect(t, client, fmt.Sprintln(i))
	}
	if n := server.deadlines.Load(); n != 0 {
		t.Errorf("%d deadlines were set", n)
	}
	s.End()
	if _, err := client.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("after the end: %v", err)
	}
}

// With TLS every frame goes through the connection, never past it.
func TestSend_LeavesTLSToItsConnection(t *testing.T) {
	p := newPolled(t)
	socket, plain := pair(t)
	server, client := overTLS(t, &wrapped{TCPConn: socket}, plain)
	if s := p.attach("a", server); s.raw != nil {
		t.Fatal("frames would be sent without TLS")
	}
	for i := range 10 {
		p.send("a", fmt.Sprintln(i))
		expect(t, client, fmt.Sprintln(i))
	}
}

// A client that has reset its connection ends its own stream only. The process gets no signal.
func TestSend_EndsAStreamWhoseConnectionIsReset(t *testing.T) {
	p := newPolled(t)
	p.poller.closed = true // only the write can notice it
	socket, client := pair(t)
	p.attach("a", &wrapped{TCPConn: socket})
	goodSocket, good := pair(t)
	p.attach("good", &wrapped{TCPConn: goodSocket})
	if err := client.SetLinger(0); err != nil {
		t.Fatal(err)
	}
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	testenv.Wait(t, "the end of the stream", func() bool { // the reset may arrive after a write
		p.send("a", "one\n")
		return len(p.ends) > 0
	})
	p.send("good", "one\n")
	expect(t, good, "one\n")
	if stats := p.Stats(); stats.Left != 1 || stats.Open != 1 {
		t.Errorf("got %+v", stats)
	}
}

// A frame that does not fit into the buffers of the system is continued where it was cut off. The frames behind it follow.
func TestSend_ContinuesAFrameThatWasCutOff(t *testing.T) {
	p := newPolled(t)
	socket, client := pair(t)
	if err := socket.SetWriteBuffer(32 << 10); err != nil {
		t.Fatal(err)
	}
	if err := client.SetReadBuffer(32 << 10); err != nil {
		t.Fatal(err)
	}
	p.attach("a", &wrapped{TCPConn: socket})
	goodSocket, good := pair(t)
	p.attach("good", goodSocket)
	var want strings.Builder
	for i := range 40 {
		frame := strings.Repeat(fmt.Sprint(i%10), 16<<10) + "\n"
		want.WriteString(frame)
		p.send("a", frame)
		p.send("good", "now\n")
		expect(t, good, "now\n") // it does not wait for the other
	}
	expect(t, client, want.String())
	if stats := p.Stats(); stats.Open != 2 || stats.Slow != 0 {
		t.Errorf("got %+v", stats)
	}
}

// Many events to many streams at once, from several publishers, while some clients close and the hub drains: each stream that stays
// gets every frame of its user once and in order, and the close frame last.
func TestSend_DeliversABurstInOrder(t *testing.T) {
	const users, each, events = 20, 10, 100
	p := newPolled(t)
	names := make([]string, users)
	var reading, publishing sync.WaitGroup
	for u := range users {
		names[u] = fmt.Sprint("user ", u)
		for i := range each {
			socket, client := pair(t)
			p.attach(names[u], &wrapped{TCPConn: socket})
			leaves := i == 0
			reading.Go(func() {
				if leaves {
					expectStart(t, client)
					_ = client.Close()
					return
				}
				checkBurst(t, client, names[u], events)
			})
		}
	}
	var mu sync.Mutex // events are published in the order of their positions
	at := int64(0)
	for range 4 {
		publishing.Go(func() {
			for range events / 4 {
				mu.Lock()
				at++
				p.Publish(names, func(i int, _ *Stream) Frame {
					return Frame{Position: Position{At: at, ID: names[i]}, Own: []byte(names[i]), Shared: fmt.Appendf(nil, " %d\n", at)}
				})
				mu.Unlock()
			}
		})
	}
	publishing.Wait()
	p.Drain()
	<-p.Drained()
	reading.Wait()
}

// expectStart reads the first bytes.
func expectStart(t *testing.T, client io.Reader) {
	if _, err := io.ReadFull(client, make([]byte, 3)); err != nil {
		t.Error(err)
	}
}

// checkBurst reads all frames of a user up to the end of the stream.
func checkBurst(t *testing.T, client io.Reader, user string, events int) {
	var want strings.Builder
	for n := range events {
		fmt.Fprintf(&want, "%s %d\n", user, n+1)
	}
	want.WriteString("bye\n")
	got, err := io.ReadAll(client)
	if err != nil || string(got) != want.String() {
		t.Errorf("%s: got %d bytes, %v, want %d", user, len(got), err, want.Len())
	}
}
