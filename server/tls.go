package server

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strconv"
)

// tlsListener speaks TLS on the connections of another listener. A handshake happens in the goroutine of the connection, within
// the limits of connections and of readTimeout.
type tlsListener struct {
	net.Listener
	config *tls.Config
}

// Accept returns the next connection.
func (l tlsListener) Accept() (net.Conn, error) {
	connection, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &tlsConnection{Conn: tls.Server(connection, l.config)}, nil
}

// tlsConnection answers a client that does not speak TLS.
type tlsConnection struct {
	*tls.Conn
	carried
	framing framing
}

// Read reads what has arrived, or waits for it until the deadline.
func (c *tlsConnection) Read(b []byte) (int, error) { return c.framing.read(c.Conn, b) }

// Handshake runs the handshake, unless it has run.
func (c *tlsConnection) Handshake() error {
	err := c.Conn.Handshake() //nolint:noctx // the engine calls it, with a deadline
	if plain, ok := errors.AsType[tls.RecordHeaderError](err); ok && plain.Conn != nil && looksLikeHTTP(plain.RecordHeader) {
		_, _ = io.WriteString(plain.Conn, plainAnswer) // the connection is closed in any case
	}
	return err
}

// SetWriteBuffer sets the size of the buffer of the operating system.
func (c *tlsConnection) SetWriteBuffer(bytes int) error {
	if tcp, ok := c.NetConn().(interface{ SetWriteBuffer(bytes int) error }); ok {
		return tcp.SetWriteBuffer(bytes)
	}
	return nil
}

func looksLikeHTTP(start [5]byte) bool {
	switch string(start[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "PATCH", "DELET", "OPTIO":
		return true
	}
	return false
}

const plainText = "This address expects HTTPS.\n"

var plainAnswer = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: " + strconv.Itoa(len(plainText)) +
	"\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n" + plainText
