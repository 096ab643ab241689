package postgrestest

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// pool is a connection pool between clients and one connection to the server.
type pool struct {
	server *pgproto3.Frontend
	conn   net.Conn
	mu     sync.Mutex // held by the client to which the server's connection is lent
}

// NewPool starts a connection pool in front of a database, in transaction or in session mode, and returns the address of the
// database through the pool. It accepts every user, and ends with the test.
func NewPool(t testing.TB, address string, transactionMode bool) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var clients sync.WaitGroup
	t.Cleanup(func() {
		listener.Close()
		clients.Wait()
	})
	shared := newServerConnection(t, address)
	clients.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			server := shared
			if !transactionMode {
				server = newServerConnection(t, address)
			}
			clients.Go(func() { server.serve(conn, transactionMode) })
		}
	})
	c, err := pgconn.ParseConfig(address)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Replace(address, fmt.Sprintf("%s:%d", c.Host, c.Port), listener.Addr().String(), 1)
}

func newServerConnection(t testing.TB, address string) *pool {
	t.Helper()
	conn, err := pgconn.Connect(context.Background(), address)
	if err != nil {
		t.Fatal(err)
	}
	h, err := conn.Hijack()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Conn.Close() })
	return &pool{server: h.Frontend, conn: h.Conn}
}

// serve passes the requests of a client on, each up to the end of its transaction, and the answers back.
func (p *pool) serve(conn net.Conn, transactionMode bool) {
	defer conn.Close()
	if !transactionMode {
		defer p.conn.Close()
	}
	client := pgproto3.NewBackend(conn, conn)
	if _, err := client.ReceiveStartupMessage(); err != nil {
		return
	}
	client.Send(&pgproto3.AuthenticationOk{})
	client.Send(&pgproto3.BackendKeyData{ProcessID: 4711, SecretKey: []byte{1, 2, 3, 4}})
	client.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	if client.Flush() != nil {
		return
	}
	if !transactionMode { // in which notifications arrive at any time
		go func() {
			for p.answer(client) == nil {
			}
		}()
	}
	for p.request(client, transactionMode) == nil {
	}
}

// request passes messages of a client on, up to the end of a transaction.
func (p *pool) request(client *pgproto3.Backend, transactionMode bool) error {
	message, err := client.Receive()
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		p.server.Send(message)
		switch message.(type) {
		case *pgproto3.Query, *pgproto3.Sync:
			if err := p.server.Flush(); err != nil || !transactionMode {
				return err
			}
			return p.answer(client)
		}
		if message, err = client.Receive(); err != nil {
			return err
		}
	}
}

// answer passes messages of the server on, up to the end of a transaction.
func (p *pool) answer(client *pgproto3.Backend) error {
	for {
		message, err := p.server.Receive()
		if err != nil {
			return err
		}
		client.Send(message)
		_, ready := message.(*pgproto3.ReadyForQuery)
		_, notification := message.(*pgproto3.NotificationResponse)
		if ready || notification {
			if err := client.Flush(); err != nil || ready {
				return err
			}
		}
	}
}
