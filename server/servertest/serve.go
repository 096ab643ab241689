package servertest

import (
	"context"
	"net"
	"testing"

	"kontor/server"
	"kontor/server/endpoint"
)

// Serve runs a server with an endpoint table of the test until the test ends. The address is host:port.
func Serve(t testing.TB, o server.Options) (web *server.Server, address string) {
	t.Helper()
	web, err := server.New(o)
	if err != nil {
		t.Fatal(err)
	}
	address, stop := Listen(t, web)
	t.Cleanup(stop)
	return web, address
}

// AllRights lets every caller hold the rights of all users, for the tests of modules without the module rbac.
type AllRights struct{}

// CheckSubject returns nil.
func (AllRights) CheckSubject(context.Context, *endpoint.Endpoint, string) error { return nil }

// Listen runs a server on a free port until stop is called.
func Listen(t testing.TB, web *server.Server) (address string, stop func()) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(listener) }()
	return listener.Addr().String(), func() {
		now, cancel := context.WithCancel(context.Background())
		cancel() // no grace period: all clients have ended
		_ = web.Shutdown(now)
		_ = listener.Close()
		<-ended
	}
}
