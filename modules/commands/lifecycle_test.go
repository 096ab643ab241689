package commands

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// fakeServer serves until it is shut down. A shutdown takes the time in takes.
type fakeServer struct {
	takes   time.Duration
	serve   error // the result of Serve
	crashed bool  // Serve returns at once
	stopped chan struct{}
}

func (f *fakeServer) Serve(net.Listener) error {
	if !f.crashed {
		<-f.stopped
	}
	return f.serve
}

func (f *fakeServer) Shutdown(ctx context.Context) error {
	defer close(f.stopped)
	select {
	case <-time.After(f.takes):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

type fakeListener struct{ net.Listener }

func (fakeListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

func TestServeUntil(t *testing.T) {
	for _, c := range []struct {
		name   string
		server fakeServer
		took   time.Duration
		fails  string
	}{
		{"requests finish", fakeServer{takes: 3 * time.Second}, 3 * time.Second, ""},
		{"requests are aborted in time to close the database", fakeServer{takes: time.Hour}, 8 * time.Second, ""},
		{"the listener breaks", fakeServer{crashed: true, serve: errors.New("broken")}, 0, "serve 127.0.0.1:1: broken"},
		{"the server ends unexpectedly", fakeServer{crashed: true}, 0, "the server ended unexpectedly"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.server.stopped = make(chan struct{})
				ctx, stop := context.WithCancel(t.Context())
				if c.server.crashed {
					defer stop()
				} else {
					stop()
				}
				began := time.Now()
				err := serveUntil(ctx, &c.server, fakeListener{}, 10*time.Second, slog.New(slog.DiscardHandler))
				if took := time.Since(began); took != c.took {
					t.Errorf("took %v, want %v", took, c.took)
				}
				if c.fails == "" && err != nil || c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)) {
					t.Errorf("got %v, want %q", err, c.fails)
				}
			})
		})
	}
}

func TestListen_ReportsTheCause(t *testing.T) {
	first, err := listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	_, err = listen(t.Context(), first.Addr().String())
	if want := "cannot listen on " + first.Addr().String() + ": address already in use; end the other program, or choose another address with --server.listen or --metrics.listen"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
