package postgrestest

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"
)

// A Proxy forwards TCP connections to a server and plays the network between: it delays, cuts, holds and refuses them.
type Proxy struct {
	listener net.Listener
	target   string
	running  sync.WaitGroup

	mu      sync.Mutex
	changed *sync.Cond // held has changed, or the proxy ends
	delay   time.Duration
	held    [2]bool // by direction: what arrives waits
	refuse  bool
	ended   bool
	links   map[*link]bool
	opened  int
	before  before
}

// before is a function to call once, before bytes with a text are forwarded to the server.
type before struct {
	text string
	f    func(port int)
}

// A link is one forwarded connection.
type link struct{ client, server *net.TCPConn }

// The directions of a connection.
const (
	toServer = iota
	toClient
)

// NewProxy starts a proxy in front of an address. It ends with the test.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: listener, target: target, links: map[*link]bool{}}
	p.changed = sync.NewCond(&p.mu)
	p.running.Go(p.accept)
	t.Cleanup(func() {
		listener.Close()
		p.mu.Lock()
		p.ended = true
		p.mu.Unlock()
		p.changed.Broadcast()
		p.Cut()
		p.running.Wait()
	})
	return p
}

// Through returns the URL of a database with the address of the proxy.
func (p *Proxy) Through(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		panic(err) // an error in the test
	}
	u.Host = p.listener.Addr().String()
	return u.String()
}

// Delay delays all bytes that arrive from now on, in each direction. A round trip takes twice as long.
func (p *Proxy) Delay(each time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = each
}

// Cut resets all connections at both ends. New ones are accepted.
func (p *Proxy) Cut() {
	for _, l := range p.all() {
		reset(l.client)
		reset(l.server)
	}
}

// Refuse resets new connections at once, or accepts them again. Existing connections stay.
func (p *Proxy) Refuse(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = on
}

// Hold keeps all bytes of both directions back, as a network does that has lost its route: neither end gets an error. New
// connections are accepted and wait as well. Release forwards what was held.
func (p *Proxy) Hold() { p.hold(true, true) }

// HoldAnswers keeps only the bytes back that the server sends.
func (p *Proxy) HoldAnswers() { p.hold(false, true) }

// Release ends a hold.
func (p *Proxy) Release() { p.hold(false, false) }

func (p *Proxy) hold(requests, answers bool) {
	p.mu.Lock()
	p.held = [2]bool{toServer: requests, toClient: answers}
	p.mu.Unlock()
	p.changed.Broadcast()
}

// HalfOpen closes all connections at the server's end. The clients do not hear of it: what they send is lost.
func (p *Proxy) HalfOpen() {
	for _, l := range p.all() {
		p.mu.Lock()
		p.links[l] = false
		p.mu.Unlock()
		reset(l.server)
	}
}

// Opened returns the number of connections that were forwarded so far.
func (p *Proxy) Opened() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.opened
}

// Before calls f once, before bytes that contain a text are forwarded to the server. f is given the port of the connection at this end, as in
// client_port of pg_stat_activity.
func (p *Proxy) Before(text string, f func(port int)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.before = before{text, f}
}

// announce calls the function of Before if its time has come.
func (p *Proxy) announce(l *link, data []byte) {
	p.mu.Lock()
	due := p.before
	found := due.f != nil && bytes.Contains(data, []byte(due.text))
	if found {
		p.before = before{}
	}
	p.mu.Unlock()
	if found {
		due.f(l.server.LocalAddr().(*net.TCPAddr).Port)
	}
}

func (p *Proxy) all() []*link {
	p.mu.Lock()
	defer p.mu.Unlock()
	links := make([]*link, 0, len(p.links))
	for l := range p.links {
		links = append(links, l)
	}
	return links
}

// reset closes a connection so that its other end gets an error instead of an orderly end.
func reset(c *net.TCPConn) {
	_ = c.SetLinger(0) // it may be closed
	_ = c.Close()
}

func (p *Proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		client := c.(*net.TCPConn)
		p.mu.Lock()
		refuse := p.refuse
		p.mu.Unlock()
		if refuse {
			reset(client)
			continue
		}
		p.running.Go(func() { p.forward(client) })
	}
}

// forward connects a client with the server until one of them ends the connection.
func (p *Proxy) forward(client *net.TCPConn) {
	p.wait(toServer)
	s, err := net.Dial("tcp", p.target)
	if err != nil {
		reset(client)
		return
	}
	l := &link{client: client, server: s.(*net.TCPConn)}
	p.mu.Lock()
	p.links[l] = true
	p.opened++
	ended := p.ended
	p.mu.Unlock()
	if ended {
		reset(l.client)
		reset(l.server)
	}
	var both sync.WaitGroup
	both.Go(func() { p.pump(l, toServer, l.client, l.server) })
	both.Go(func() { p.pump(l, toClient, l.server, l.client) })
	both.Wait()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

// piece is a number of bytes and when they are due at the other end.
type piece struct {
	data []byte
	due  time.Time
}

// pump copies bytes in one direction. At the end it closes the other side, unless the connection is half-open.
func (p *Proxy) pump(l *link, direction int, from, to *net.TCPConn) {
	pieces := make(chan piece, 1024)
	var writing sync.WaitGroup
	writing.Go(func() {
		for next := range pieces {
			time.Sleep(time.Until(next.due))
			p.wait(direction)
			if direction == toServer {
				p.announce(l, next.data)
			}
			if _, err := to.Write(next.data); err != nil {
				p.drop(l, from)
			}
		}
	})
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			p.mu.Lock()
			delay := p.delay
			p.mu.Unlock()
			pieces <- piece{append([]byte(nil), buffer[:n]...), time.Now().Add(delay)}
		}
		if err != nil {
			close(pieces)
			writing.Wait()
			if errors.Is(err, io.EOF) {
				_ = to.CloseWrite() // it may be closed
			} else {
				p.drop(l, to)
			}
			return
		}
	}
}

// drop resets one end of a connection whose other end has failed. The client of a half-open connection stays connected.
func (p *Proxy) drop(l *link, end *net.TCPConn) {
	p.mu.Lock()
	whole := p.links[l]
	p.mu.Unlock()
	if whole || end == l.server {
		reset(end)
	}
}

// wait returns when nothing is held in a direction, or the proxy ends.
func (p *Proxy) wait(direction int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.held[direction] && !p.ended {
		p.changed.Wait()
	}
}
