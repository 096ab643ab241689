package bus_test

import (
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
)

// PostgreSQL may deliver a notification before its answer to LISTEN. The empty key, which says that announcements were missed,
// must come first even then.
func TestListen_IsFollowedByTheEmptyKey(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		serveListen(pgproto3.NewBackend(conn, conn))
	}()
	t.Cleanup(func() { listener.Close(); <-served })
	c := &clock{} // no heartbeat after the first
	n := listen(t, "postgres://kontor@"+listener.Addr().String()+"/kontor?sslmode=disable", options{time: c})
	if got := n.received(); !slices.Equal(got, []string{"", "early"}) {
		t.Errorf("got %q, want the empty key first, once", got)
	}
}

// serveListen plays a server that sends a notification before its answer to LISTEN.
func serveListen(client *pgproto3.Backend) {
	if _, err := client.ReceiveStartupMessage(); err != nil {
		return
	}
	client.Send(&pgproto3.AuthenticationOk{})
	client.Send(&pgproto3.BackendKeyData{ProcessID: 7, SecretKey: []byte{1, 2, 3, 4}})
	ready := &pgproto3.ReadyForQuery{TxStatus: 'I'}
	client.Send(ready)
	statement, node := "", ""
	for client.Flush() == nil {
		message, err := client.Receive()
		if err != nil {
			return
		}
		switch m := message.(type) {
		case *pgproto3.Query:
			if channel, listens := strings.CutPrefix(m.String, "LISTEN "); listens {
				client.Send(&pgproto3.NotificationResponse{PID: 8, Channel: channel, Payload: `{"v":1,"n":"A","t":"B","l":true,"p":[["changes","early"]]}`})
			} else {
				client.Send(texts("7", "1", "f", "t", "1000000"))
			}
			client.Send(ready)
		case *pgproto3.Bind:
			if statement = m.PreparedStatement; statement == "beat" {
				node = string(m.Parameters[0])
			}
		case *pgproto3.Sync:
			if statement == "beat" {
				client.Send(texts("1000000", "7", "t", "t", "0", node, "1", node, "X", "name", "1", "1000", "1", "7"))
			}
			statement = ""
			client.Send(ready)
		}
	}
}

// texts returns a row.
func texts(columns ...string) *pgproto3.DataRow {
	r := &pgproto3.DataRow{}
	for _, column := range columns {
		r.Values = append(r.Values, []byte(column))
	}
	return r
}
